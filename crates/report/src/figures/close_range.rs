//! Axes that begin near the values: a difference of 2 % is invisible on an axis from 0.

use model::{Figure, Point, Scale, Series};

/// Values of which the lowest is below this share of the highest stay on an axis from 0, where they are apart anyway.
const FAR_FROM_ZERO: f64 = 0.5;
/// Room beyond the values, as a share of their range.
const AIR: f64 = 0.08;
/// The range around values that are all the same, as a share of them.
const LEAST: f64 = 0.02;

/// Fits the vertical axis to the values and their intervals if zero is far below them, and says so in the subtitle: their differences are
/// what the figure is about.
pub(super) fn close_range(figure: &mut Figure) {
    if figure.y.scale != Scale::Linear {
        return;
    }
    if let Some([low, high]) = range(&figure.series) {
        (figure.y.low, figure.y.high) = (Some(low), Some(high));
        figure.subtitle += "; the axis does not begin at 0";
    }
}

fn range(series: &[Series]) -> Option<[f64; 2]> {
    let points = || series.iter().filter(|series| !series.reference).flat_map(|series| &series.points);
    let values = || points().map(|point| point.y).filter(|y| y.is_finite());
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    if low < FAR_FROM_ZERO * high || low <= 0.0 {
        return None;
    }
    // An interval that is far wider than the differences would hide them.
    let ends = points().flat_map(|Point { low, high, .. }| [*low, *high]).flatten();
    let ends = || ends.clone().filter(|end| (FAR_FROM_ZERO * low..=high / FAR_FROM_ZERO).contains(end));
    let (low, high) = (ends().fold(low, f64::min), ends().fold(high, f64::max));
    let room = (high - low).max(LEAST * high) * AIR;
    let middle = (LEAST * high - (high - low)).max(0.0) / 2.0;
    Some([(low - middle - room).max(0.0), high + middle + room])
}

#[cfg(test)]
mod tests {
    use model::Axis;

    use super::*;

    fn shown(values: &[(f64, f64)]) -> Figure {
        let point = |(y, arm): &(f64, f64)| Point { x: 0.0, y: *y, low: Some(y - arm), high: Some(y + arm) };
        let series = vec![Series { points: values.iter().map(point).collect(), ..Series::default() }];
        let y = Axis::new("goodput", "bit/s", Scale::Linear);
        let mut figure = Figure { y, series, ..Figure::default() };
        close_range(&mut figure);
        figure
    }

    #[test]
    fn values_close_to_each_other_fill_the_axis_and_the_subtitle_says_so() {
        let figure = shown(&[(45.6, 0.2), (46.8, 0.3)]);
        let (low, high) = (figure.y.low.unwrap(), figure.y.high.unwrap());
        assert!((45.0..45.4).contains(&low) && (47.1..47.5).contains(&high), "{low} {high}");
        assert!(figure.subtitle.contains("does not begin at 0"));
        let same = shown(&[(10.0, 0.0), (10.0, 0.0)]);
        assert!(same.y.low < Some(9.95) && same.y.high > Some(10.05), "{:?}", same.y);
        let wide = shown(&[(45.6, 1e9), (46.8, 0.1)]);
        assert!(wide.y.low > Some(40.0), "an interval of any width is cut: {:?}", wide.y);
    }

    #[test]
    fn values_far_apart_and_times_on_a_logarithmic_axis_keep_it() {
        assert_eq!(shown(&[(1.0, 0.0), (10.0, 0.0)]).y.low, None);
        assert_eq!(shown(&[(0.0, 0.0), (0.0, 0.0)]).y.low, None);
        let mut figure = shown(&[(1.0, 0.0), (10.0, 0.0)]);
        figure.y.scale = Scale::Log;
        close_range(&mut figure);
        assert_eq!((figure.y.low, figure.subtitle.as_str()), (None, ""));
    }
}

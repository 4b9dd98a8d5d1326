//! Maps values to positions along an axis.

use model::{Axis, Figure, Point, Scale, Series};
use serde::Serialize;

/// The range of values that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Span {
    /// Its scale.
    pub scale: Scale,
    /// The value at its beginning.
    pub low: f64,
    /// The value at its end.
    pub high: f64,
}

impl Span {
    /// Larger magnitudes are left out: arithmetic on them could overflow, and no measurement has them.
    const LIMIT: f64 = 1e100;

    /// The range of all `values` with a margin of `air`; without values 1 to 10 (0 to 10 if linear).
    #[must_use]
    pub fn fit(scale: Scale, values: impl Iterator<Item = f64>, air: f64) -> Self {
        let (low, high) = values
            .filter(|value| Self::drawable(scale, *value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            _ if low > high => Self { scale, low: if scale == Scale::Log { 1.0 } else { 0.0 }, high: 10.0 },
            Scale::Linear => {
                let low = low.min(0.0);
                let high = if high > low { high } else { low + 1.0 };
                Self { scale, low: if low < 0.0 { low * (1.0 + air) } else { low }, high: high + (high - low) * air }
            }
            Scale::Names => Self { scale, low: low - 0.5, high: high + 0.5 },
            // A single time has an hour around it.
            Scale::Date => {
                let room = if high > low { (high - low) * air } else { 1.8e12 };
                Self { scale, low: low - room, high: high + room }
            }
            // At least a factor of two, so that a single value has an axis around it.
            Scale::Log => {
                let widen = (2.0 / (high / low)).sqrt().max(1.0);
                let ratio = (high / low * widen * widen).powf(air);
                Self { scale, low: low / widen / ratio, high: high * widen * ratio }
            }
        }
    }

    /// The linear range of `values` with a margin, which need not begin at zero.
    fn around(values: impl Iterator<Item = f64>, air: f64) -> Self {
        let span = Self::fit(Scale::Names, values, air);
        let (low, high) = (span.low + 0.5, span.high - 0.5);
        let room = if high > low { (high - low) * air } else { (low.abs() * air).max(f64::MIN_POSITIVE.sqrt()) };
        Self { scale: Scale::Linear, low: low - room, high: high + room }
    }

    /// Whether this kind of axis can show the value.
    #[must_use]
    pub fn drawable(scale: Scale, value: f64) -> bool {
        match scale {
            Scale::Linear | Scale::Names | Scale::Date => value.abs() < Self::LIMIT,
            Scale::Log => value > 1.0 / Self::LIMIT && value < Self::LIMIT,
        }
    }

    /// The position of `value` as a share of the axis, 0 at the low end; outside 0 to 1 for values out of range. `None` for values
    /// that this axis cannot show: not finite, or not above zero on a log axis.
    #[must_use]
    pub fn position(&self, value: f64) -> Option<f64> {
        if !Self::drawable(self.scale, value) {
            return None;
        }
        let share = match self.scale {
            Scale::Linear | Scale::Names | Scale::Date => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        share.is_finite().then_some(share)
    }

    /// The span of an axis of `count` categories.
    pub(crate) fn names(count: usize) -> Self {
        Self { scale: Scale::Names, low: -0.5, high: count.max(1) as f64 - 0.5 }
    }

    /// The span with the ends that the axis requests, if it can show them.
    fn requested(self, axis: &Axis) -> Self {
        let end = |value: Option<f64>| value.filter(|value| Self::drawable(self.scale, *value));
        let (low, high) = (end(axis.low), end(axis.high));
        let mut span = Self { low: low.unwrap_or(self.low), high: high.unwrap_or(self.high), ..self };
        // One requested end may be beyond all values: the other one gives way.
        if span.low >= span.high {
            let wide = |value: f64| if self.scale == Scale::Log { value * 9.0 } else { value.abs().max(1.0) };
            match high {
                Some(high) if self.scale == Scale::Log => span.low = high / 10.0,
                Some(high) => span.low = high - wide(high),
                None => span.high = span.low + wide(span.low),
            }
        }
        span
    }

    /// The value at a share of the axis.
    pub(crate) fn value(&self, share: f64) -> f64 {
        match self.scale {
            Scale::Log => self.low * (self.high / self.low).powf(share),
            Scale::Linear | Scale::Names | Scale::Date => self.low + share * (self.high - self.low),
        }
    }

    /// Like [`position`](Self::position), limited to the axis.
    #[must_use]
    pub fn clamped(&self, value: f64) -> Option<f64> {
        self.position(value).map(|share| share.clamp(0.0, 1.0))
    }
}

/// How far above the highest measured point a ceiling is still drawn. A much higher one would flatten the measured curve.
pub const CEILING_ROOM: f64 = 1.25;

/// The ranges of both axes of the first panel.
#[must_use]
pub fn spans(figure: &Figure) -> (Span, Span) {
    let x = x_span(figure);
    (x, y_span(figure, &x, 0))
}

/// The references or the measured ones among these series; all of them if nothing was measured.
fn wanted<'a>(series: &[&'a Series], is_reference: bool) -> Vec<&'a Series> {
    let some_measured = series.iter().any(|series| !series.reference && !series.points.is_empty());
    series.iter().copied().filter(|series| !some_measured || series.reference == is_reference).collect()
}

/// Whether axes of these scales can show a point.
fn is_shown(x: Scale, y: Scale, point: &Point) -> bool {
    Span::drawable(x, point.x) && Span::drawable(y, point.y)
}

/// The horizontal values of these series that the axes can show; of points in order, of which there may be a million, the first and the last.
fn xs(figure: &Figure, x: &Axis, series: &[&Series]) -> Vec<f64> {
    let of = |series: &&Series| -> Vec<f64> {
        let y = figure.y_axis(series).scale;
        let mut shown = series.points.iter().filter(|point| is_shown(x.scale, y, point)).map(|point| point.x);
        if series.points.is_sorted_by(|a, b| a.x <= b.x) {
            [shown.next(), shown.next_back()].into_iter().flatten().collect()
        } else {
            shown.collect()
        }
    };
    series.iter().flat_map(of).collect()
}

/// The range of the horizontal axis: what was requested, otherwise all measured points. References have no part in it.
#[must_use]
pub fn x_span(figure: &Figure) -> Span {
    x_span_on(&figure.x, figure, &figure.series.iter().collect::<Vec<_>>())
}

/// The same for some series of a figure on another axis.
pub(crate) fn x_span_on(axis: &Axis, figure: &Figure, series: &[&Series]) -> Span {
    let stacked = series.iter().any(|series| series.stacked);
    // Around the bars of a single size, the ticks of a narrow logarithmic axis would be parts of a byte.
    let room = stacked && axis.scale == Scale::Log;
    let measured = wanted(series, false);
    let all = xs(figure, axis, &measured);
    let xs = || all.iter().copied();
    let widest = xs().filter(|_| room).map(|x| 8.0 * x).reduce(f64::min);
    let span = match axis.scale {
        Scale::Names => Span::names(axis.ticks.len()),
        scale => Span::fit(scale, xs().chain(widest), if room { 0.08 } else { 0.02 }),
    };
    span.requested(axis)
}

/// The range of a panel's vertical axis: what was requested, otherwise all measured points of the panels with this axis within the
/// horizontal range, with their intervals unless those are far wider than the values. A reference far above has no part in it.
#[must_use]
pub fn y_span(figure: &Figure, x: &Span, panel: usize) -> Span {
    let is_own = |panel: usize| figure.panels.get(panel).is_some_and(|panel| panel.y.is_some());
    let axis = figure.y_of(panel);
    if axis.scale == Scale::Names {
        // The first category is at the top.
        let Span { scale, low, high } = Span::names(axis.ticks.len());
        return Span { scale, low: high, high: low };
    }
    let shares = |series: &&Series| match series.panel {
        Some(other) if is_own(panel) => other == panel,
        Some(other) => !is_own(other),
        None => !is_own(panel),
    };
    let series: Vec<&Series> = figure.series.iter().filter(shares).collect();
    let stacked = series.iter().any(|series| series.stacked);
    let within = |series: Vec<&Series>| -> Vec<Point> {
        let inside =
            |point: &&Point| (x.low..=x.high).contains(&point.x) && is_shown(figure.x.scale, axis.scale, point);
        series.into_iter().flat_map(|series| &series.points).filter(inside).copied().collect()
    };
    let points = within(wanted(&series, false));
    let ys = || points.iter().map(|point| point.y);
    let (low, high) = ys().fold((f64::INFINITY, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    let sensible = |end: &f64| *end >= low / 3.0 && *end <= high * 1.5;
    let ends = points.iter().flat_map(|point| [point.low, point.high]).flatten();
    let ends = ends.filter(|end| stacked || sensible(end));
    let references = within(wanted(&series, true));
    let ceilings = references.iter().map(|point| point.y).filter(|y| *y <= high * CEILING_ROOM);
    let values = ys().chain(ends).chain(ceilings);
    let span = if axis.fitted && axis.scale == Scale::Linear {
        Span::around(values, 0.1)
    } else {
        Span::fit(axis.scale, values, 0.1)
    };
    span.requested(axis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn figure(log: bool, values: &[(f64, f64)], reference: &[(f64, f64)]) -> Figure {
        let scale = if log { Scale::Log } else { Scale::Linear };
        let point = |(x, y): &(f64, f64)| Point { x: *x, y: *y, ..Point::default() };
        let series = |points: &[(f64, f64)], reference| Series {
            points: points.iter().map(point).collect(),
            reference,
            ..Series::default()
        };
        Figure {
            x: Axis::new("x", "ns", Scale::Log),
            y: Axis::new("y", "bit/s", scale),
            series: vec![series(values, false), series(reference, true)],
            ..Figure::default()
        }
    }

    #[test]
    fn a_ceiling_stretches_no_axis() {
        let figure = figure(false, &[(10e3, 1e9), (1e6, 9e9)], &[(10.0, 8e9), (100.0, 90e9)]);
        let (x, y) = spans(&figure);
        assert!(x.low > 9e3 && x.high < 1.2e6, "{x:?}");
        assert!(y.high < 11e9, "{y:?}");
    }

    #[test]
    fn a_requested_range_is_shown_and_the_other_axis_fits_it() {
        let mut figure = figure(false, &[(1e3, 1e9), (1e4, 2e9), (1e6, 9e9)], &[]);
        figure.x.high = Some(2e4);
        let (x, y) = spans(&figure);
        assert_eq!(x.high, 2e4);
        assert!((2e9..2.5e9).contains(&y.high), "{y:?}");
        figure.y.low = Some(5e9);
        let (_, y) = spans(&figure);
        assert!(y.low == 5e9 && y.high > 5e9, "{y:?}");
        // A logarithmic axis has no 0.
        figure.x.low = Some(0.0);
        assert!(spans(&figure).0.low > 0.0);
    }

    #[test]
    fn categories_have_half_a_step_at_either_end_and_rows_begin_at_the_top() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let (x, y) = spans(&Figure { x: Axis::names("x", &names), y: Axis::names("y", &names), ..Figure::default() });
        assert_eq!([0.0, 1.0, 2.0].map(|at| (6.0 * x.position(at).unwrap()).round()), [1.0, 3.0, 5.0]);
        assert_eq!([0.0, 1.0, 2.0].map(|at| (6.0 * y.position(at).unwrap()).round()), [5.0, 3.0, 1.0]);
    }

    proptest! {
        #[test]
        fn every_value_is_placed_within_the_axis_or_refused(
            values in prop::collection::vec(prop_oneof![any::<f64>(), 1e-3..1e12f64, Just(0.0), Just(-5.0)], 0..6),
            log in any::<bool>(),
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let span = Span::fit(scale, values.iter().copied(), 0.05);
            prop_assert!(span.low.is_finite() && span.high.is_finite() && span.low < span.high);
            for value in values {
                match span.position(value) {
                    Some(share) => prop_assert!((0.0..=1.0).contains(&share), "{} at {}", value, share),
                    None => prop_assert!(!Span::drawable(scale, value)),
                }
            }
        }
    }
}

//! A figure as a reader of the page wants to see it now: a part of the horizontal range, some of the series, other scales.

use model::{Axis, Figure, Point, Scale, Series};
use serde::{Deserialize, Serialize};
use text::RateUnit;

use crate::keys::{groups, sample};
use crate::layout::Sheet;
use crate::look::{look, shift};
use crate::plot::Plot;
use crate::span::{Span, x_span_on};
use crate::svg::Svg;
use crate::{Use, draw};

/// What a reader chose.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct View {
    /// The width of the place, px.
    pub width: f64,
    /// The horizontal range; null for all.
    pub range: Option<(f64, f64)>,
    /// Indexes of the series that are switched off.
    pub hidden: Vec<usize>,
    /// Whether the horizontal axis has the other of a linear and a logarithmic scale.
    pub other_x: bool,
    /// Whether the vertical axes have.
    pub other_y: bool,
    /// Whether rates are in bytes.
    pub in_bytes: bool,
}

/// What the page shows, and what it needs to find the places of values.
#[derive(Debug, Serialize)]
pub struct Shown {
    svg: String,
    width: f64,
    height: f64,
    plots: Vec<Plot>,
    /// The horizontal range of all that is switched on.
    whole: Span,
    /// How far each series is moved among categories; null of one that is switched off.
    shifts: Vec<Option<f64>>,
    keys: Vec<ShownKey>,
}

/// An entry of the legend.
#[derive(Debug, Serialize)]
struct ShownKey {
    name: String,
    /// The series that look so.
    series: Vec<usize>,
    /// A piece of their line.
    sample: String,
}

impl View {
    fn sheet(&self, is_bare: bool) -> Sheet {
        let rates = if self.in_bytes { RateUnit::Bytes } else { RateUnit::Bits };
        Sheet { width: self.width, rates, is_bare }
    }

    /// The figure for the page.
    #[must_use]
    pub fn shown(&self, figure: &Figure) -> Shown {
        let (own, indexes, whole) = self.of(figure);
        let drawing = draw(&own, Use::Page, self.sheet(true));
        let shift_of = |index: usize| indexes.iter().position(|own| *own == index).map(|at| shift(&own, at));
        Shown {
            svg: drawing.svg,
            width: drawing.size.0,
            height: drawing.size.1,
            plots: drawing.plots,
            whole,
            shifts: (0..figure.series.len()).map(shift_of).collect(),
            keys: groups(figure).into_iter().filter_map(|series| key(figure, series)).collect(),
        }
    }

    /// The figure as a file.
    #[must_use]
    pub fn file(&self, figure: &Figure) -> String {
        draw(&self.of(figure).0, Use::File, self.sheet(false)).svg
    }

    /// The figure with the series that are switched on, the index of each of them, and their whole horizontal range. It has no more points
    /// than the place can show.
    fn of(&self, figure: &Figure) -> (Figure, Vec<usize>, Span) {
        let other = |axis: &Axis, is_other: bool| Axis { scale: other_scale(axis.scale, is_other), ..axis.clone() };
        let mut panels = figure.panels.clone();
        for panel in &mut panels {
            panel.y = panel.y.as_ref().map(|y| other(y, self.other_y));
        }
        let mut x = other(&figure.x, self.other_x);
        let indexes: Vec<usize> = (0..figure.series.len()).filter(|index| !self.hidden.contains(index)).collect();
        let on: Vec<&Series> = indexes.iter().map(|index| &figure.series[*index]).collect();
        let whole = x_span_on(&x, figure, &on);
        let mut span = whole;
        if let Some((low, high)) = self.range {
            (x.low, x.high) = (Some(low), Some(high));
            span = Span { low, high, ..whole };
        }
        let without_points = |series: &Series| Series { name: series.name.clone(), points: Vec::new(), ..*series };
        let mut own = Figure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            subtitle: figure.subtitle.clone(),
            x,
            y: other(&figure.y, self.other_y),
            marks: figure.marks.clone(),
            panels,
            context: figure.context,
            matrix: figure.matrix.clone(),
            map: figure.map.clone(),
            series: Vec::new(),
        };
        own.series = indexes
            .iter()
            .map(|index| {
                let series = &figure.series[*index];
                let points = few(&series.points, &span, self.width.max(100.0) as usize);
                Series { points, look: Some(look(figure, *index)), ..without_points(series) }
            })
            .collect();
        (own, indexes, whole)
    }
}

/// The scale that an axis can have beside its own one.
fn other_scale(scale: Scale, is_other: bool) -> Scale {
    match scale {
        Scale::Linear if is_other => Scale::Log,
        Scale::Log if is_other => Scale::Linear,
        own => own,
    }
}

/// An entry of the legend. A series that has a panel and its title for itself needs none.
fn key(figure: &Figure, series: Vec<usize>) -> Option<ShownKey> {
    let first = *series.first()?;
    let mut svg = Svg::new(None);
    sample(&mut svg, figure, first, (1.0, 29.0), 7.0);
    let class = crate::look::class(look(figure, first));
    Some(ShownKey {
        name: figure.series[first].name.clone(),
        sample: format!("<g class=\"{class}\">{}</g>", svg.finish()),
        series,
    })
}

/// The points within a range and one on either side; where there are more than a place of so many pixels can show, the first, the lowest,
/// the highest and the last of each column of pixels, with the widest interval of the column: they draw the same picture.
fn few(points: &[Point], span: &Span, pixels: usize) -> Vec<Point> {
    // Points that go back cannot be taken by their place.
    if !points.is_sorted_by(|a, b| a.x <= b.x) {
        return points.to_vec();
    }
    let from = points.partition_point(|point| point.x < span.low);
    let to = points.partition_point(|point| point.x <= span.high);
    let (first, last) = (from.saturating_sub(1), (to + 1).min(points.len()));
    if last - first <= 4 * pixels {
        return points[first..last].to_vec();
    }
    let mut kept = points[first..from].to_vec();
    let mut start = from;
    for pixel in 1..=pixels {
        let edge = span.value(pixel as f64 / pixels as f64);
        let rest = &points[start..to];
        let end = if pixel == pixels { to } else { start + rest.partition_point(|point| point.x < edge) };
        kept.extend(column(&points[start..end]));
        start = end;
    }
    kept.extend_from_slice(&points[to..last]);
    kept
}

/// What one column of pixels shows of its points.
fn column(points: &[Point]) -> Vec<Point> {
    let Some(last) = points.len().checked_sub(1) else { return Vec::new() };
    let (mut least, mut most) = (0, 0);
    let mut ends: (Option<f64>, Option<f64>) = (None, None);
    for (at, point) in points.iter().enumerate() {
        if point.y < points[least].y {
            least = at;
        }
        if point.y > points[most].y {
            most = at;
        }
        let wider = |end: Option<f64>, other: Option<f64>, pick: fn(f64, f64) -> f64| match (end, other) {
            (Some(end), Some(other)) => Some(pick(end, other)),
            (end, other) => end.or(other),
        };
        ends = (wider(ends.0, point.low, f64::min), wider(ends.1, point.high, f64::max));
    }
    let mut wanted = [0, least.min(most), least.max(most), last].to_vec();
    wanted.dedup();
    wanted.into_iter().map(|at| Point { low: ends.0, high: ends.1, ..points[at] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: usize) -> Figure {
        let point = |at: usize| {
            let y = 5.0 + (at as f64 / 900.0).sin();
            Point { x: at as f64, y, low: Some(y - 1.0), high: Some(y + 1.0) }
        };
        let mut points: Vec<Point> = (0..points).map(point).collect();
        if let Some(point) = points.get_mut(54_321) {
            (point.y, point.low, point.high) = (9.5, Some(8.5), Some(10.5));
        }
        let series = |name: &str| Series { name: name.to_owned(), points: points.clone(), ..Series::default() };
        Figure {
            x: Axis::elapsed("time"),
            y: Axis::new("rate", "bit/s", Scale::Linear),
            series: vec![series("a"), series("b")],
            ..Figure::default()
        }
    }

    #[test]
    fn a_place_shows_the_extremes_of_more_points_than_it_has_pixels() {
        let figure = figure(100_000);
        let view = View { width: 500.0, ..View::default() };
        let (own, ..) = view.of(&figure);
        let points = &own.series[0].points;
        assert!(points.len() <= 2_000 && points.iter().any(|point| point.y == 9.5), "{}", points.len());
        assert!(points.windows(2).all(|pair| pair[0].x < pair[1].x));
        assert!(points.iter().all(|point| point.low < Some(point.y) && point.high > Some(point.y)));
        let near = View { range: Some((50_000.0, 50_100.0)), ..view };
        let (own, ..) = near.of(&figure);
        let points = &own.series[0].points;
        assert_eq!((points.len(), points[0].x, points[102].x), (103, 49_999.0, 50_101.0));
        assert_eq!(own.x.high, Some(50_100.0));
    }

    #[test]
    fn a_series_keeps_its_colour_when_others_are_hidden() {
        let figure = figure(10);
        let view = View { width: 500.0, hidden: vec![0], ..View::default() };
        let (own, indexes, _) = view.of(&figure);
        assert_eq!((own.series.len(), indexes, look(&own, 0).colour), (1, vec![1], 1));
        let shown = view.shown(&figure);
        assert_eq!((shown.keys.len(), shown.shifts), (2, vec![None, Some(0.0)]));
    }

    #[test]
    fn scales_and_units_are_those_that_were_chosen() {
        let figure = figure(10);
        let view = View { width: 500.0, other_y: true, in_bytes: true, ..View::default() };
        assert_eq!(view.of(&figure).0.y.scale, Scale::Log);
        assert!(view.file(&figure).contains(" B/s<"), "{}", view.file(&figure));
        assert!(!view.shown(&figure).svg.contains("<title"), "the page has its own texts at a point");
    }
}

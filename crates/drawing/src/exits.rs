//! Where lines and intervals leave a plot: each such place has an arrow, so that nothing seems to end at the frame.

use model::{Figure, Series};

use crate::look;
use crate::plot::{Plot, Rect, Segment};

/// Arrows of a series on the same side are at least this far apart.
const APART: f64 = 14.0;

/// A side of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Above.
    Top,
    /// Below.
    Bottom,
    /// At the left.
    Left,
    /// At the right.
    Right,
}

/// Where something continues beyond the frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exit {
    /// Where, on the frame.
    pub at: (f64, f64),
    /// The side of the frame.
    pub side: Side,
}

/// All places where a series leaves the plot.
#[must_use]
pub fn exits(plot: &Plot, figure: &Figure, index: usize) -> Vec<Exit> {
    let series = &figure.series[index];
    let shift = look::shift(figure, index);
    let frame = plot.frame;
    let mut all: Vec<Exit> = Vec::new();
    let points: Vec<Option<(f64, f64)>> = series.points.iter().map(|point| plot.at(point.x + shift, point.y)).collect();
    if look::joined(figure) && !series.stacked {
        for pair in points.windows(2) {
            if let [Some(a), Some(b)] = pair {
                all.extend(crossings(&frame, (*a, *b)));
            }
        }
    }
    let outside = || points.iter().flatten().filter(|at| !frame.has(**at)).filter_map(|at| beyond(&frame, *at));
    if !look::joined(figure) {
        all.extend(outside());
    } else if all.is_empty() && !points.iter().flatten().any(|at| frame.has(*at)) {
        // A line that is wholly outside has one arrow, best where it passes above or below the frame.
        let passes = |exit: &Exit| exit.at.0 > frame.left && exit.at.0 < frame.right;
        all.extend(outside().find(passes).or_else(|| outside().next()));
    }
    all.extend(interval_ends(plot, series, &points));
    thinned(all)
}

/// The ends of intervals that the frame cuts.
fn interval_ends(plot: &Plot, series: &Series, points: &[Option<(f64, f64)>]) -> Vec<Exit> {
    let mut all = Vec::new();
    for (point, at) in series.points.iter().zip(points).filter(|_| !series.reference) {
        let Some((x, y)) = *at else { continue };
        // An interval without a bound above is cut even if its point is not shown.
        if !(plot.frame.left..=plot.frame.right).contains(&x) || !plot.frame.has((x, y)) {
            continue;
        }
        for end in [point.low, point.high].into_iter().flatten() {
            if let Some((edge, true)) = plot.edge(end) {
                let side = if edge <= plot.frame.top { Side::Top } else { Side::Bottom };
                all.push(Exit { at: (x, edge), side });
            }
        }
    }
    all
}

/// The nearest place of the frame to a point outside.
fn beyond(frame: &Rect, (x, y): (f64, f64)) -> Option<Exit> {
    let at = (x.clamp(frame.left, frame.right), y.clamp(frame.top, frame.bottom));
    let side = match () {
        () if y < frame.top => Side::Top,
        () if y > frame.bottom => Side::Bottom,
        () if x < frame.left => Side::Left,
        () if x > frame.right => Side::Right,
        () => return None,
    };
    Some(Exit { at, side })
}

/// Where a segment crosses the frame; none for a segment wholly within or outside.
fn crossings(frame: &Rect, (a, b): Segment) -> Vec<Exit> {
    if frame.has(a) && frame.has(b) {
        return Vec::new();
    }
    let along = |t: f64| (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1));
    let sides = [
        (Side::Left, frame.left - a.0, b.0 - a.0),
        (Side::Right, frame.right - a.0, b.0 - a.0),
        (Side::Top, frame.top - a.1, b.1 - a.1),
        (Side::Bottom, frame.bottom - a.1, b.1 - a.1),
    ];
    let grown = frame.grown(1e-6);
    sides
        .into_iter()
        .filter(|(_, _, length)| *length != 0.0)
        .map(|(side, to, length)| (side, to / length))
        .filter(|(_, t)| (0.0..=1.0).contains(t))
        .map(|(side, t)| Exit { side, at: along(t) })
        .filter(|exit| grown.has(exit.at))
        .collect()
}

fn thinned(all: Vec<Exit>) -> Vec<Exit> {
    let mut kept: Vec<Exit> = Vec::new();
    for exit in all {
        let near =
            |other: &Exit| other.side == exit.side && (other.at.0 - exit.at.0).hypot(other.at.1 - exit.at.1) < APART;
        if !kept.iter().any(near) {
            kept.push(exit);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use model::{Axis, Point, Scale};

    use super::*;
    use crate::span::{Span, spans};

    fn plot(figure: &Figure) -> Plot {
        let (x, y) = spans(figure);
        Plot { frame: Rect { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 }, x, y }
    }

    fn figure(points: Vec<Point>) -> Figure {
        Figure {
            x: Axis { low: Some(0.0), high: Some(10.0), ..Axis::new("x", "", Scale::Linear) },
            y: Axis { low: Some(0.0), high: Some(10.0), ..Axis::new("y", "", Scale::Linear) },
            series: vec![Series { points, ..Series::default() }],
            ..Figure::default()
        }
    }

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }

    #[test]
    fn a_line_that_leaves_has_an_arrow_where_it_does() {
        let figure = figure(vec![point(5.0, 5.0), point(5.0, 15.0), point(15.0, 25.0)]);
        let found = exits(&plot(&figure), &figure, 0);
        assert_eq!(found, [Exit { at: (50.0, 0.0), side: Side::Top }]);
        let aside = Figure {
            series: vec![Series { points: vec![point(8.0, 2.0), point(12.0, 2.0)], ..Series::default() }],
            ..figure
        };
        assert_eq!(exits(&plot(&aside), &aside, 0), [Exit { at: (100.0, 80.0), side: Side::Right }]);
    }

    #[test]
    fn a_line_wholly_outside_has_one_arrow() {
        let figure = figure(vec![point(2.0, 15.0), point(5.0, 15.0), point(8.0, 15.0)]);
        assert_eq!(exits(&plot(&figure), &figure, 0), [Exit { at: (20.0, 0.0), side: Side::Top }]);
        // Its first point may be beside the frame.
        let points = vec![point(-5.0, 15.0), point(5.0, 15.0)];
        let beside = Figure { series: vec![Series { points, ..Series::default() }], ..figure };
        assert_eq!(exits(&plot(&beside), &beside, 0), [Exit { at: (50.0, 0.0), side: Side::Top }]);
    }

    #[test]
    fn what_is_within_has_none() {
        let figure = figure(vec![point(0.0, 0.0), point(10.0, 10.0)]);
        assert_eq!(exits(&plot(&figure), &figure, 0), []);
    }

    #[test]
    fn intervals_that_are_cut_have_one_at_each_end_that_is() {
        let wide = Point { low: Some(-3.0), high: Some(f64::INFINITY), ..point(4.0, 5.0) };
        let figure = figure(vec![wide]);
        let sides: Vec<Side> = exits(&plot(&figure), &figure, 0).iter().map(|exit| exit.side).collect();
        assert_eq!(sides, [Side::Bottom, Side::Top]);
        let whole = Point { low: Some(0.0), high: Some(10.0), ..point(4.0, 5.0) };
        let figure = Figure { series: vec![Series { points: vec![whole], ..Series::default() }], ..figure };
        assert_eq!(exits(&plot(&figure), &figure, 0), []);
    }

    #[test]
    fn on_a_logarithmic_axis_an_end_at_zero_is_below() {
        let mut figure = figure(vec![Point { low: Some(0.0), high: Some(20.0), ..point(4.0, 5.0) }]);
        figure.y = Axis::new("y", "ns", Scale::Log);
        let y = Span { scale: Scale::Log, low: 1.0, high: 100.0 };
        let found = exits(&Plot { y, ..plot(&figure) }, &figure, 0);
        assert_eq!(found.iter().map(|exit| exit.side).collect::<Vec<_>>(), [Side::Bottom]);
    }
}

//! Lines, markers and intervals.

use model::{Figure, Point, Series};
use text::RateUnit;

use crate::exits::{Side, exits};
use crate::plot::{Plot, Segment};
use crate::svg::{Svg, px};
use crate::{Use, look, marker, quantity};

/// Series with more points have bands and sparse markers.
pub const MANY: usize = 130;
/// With at most this many points in each series intervals are bars.
const FEW: usize = 16;

/// Where a series is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) plot: &'a Plot,
    pub(crate) figure: &'a Figure,
    /// The id of the clip path of the plot's frame.
    pub(crate) clip: &'a str,
    pub(crate) usage: Use<'a>,
    pub(crate) rates: RateUnit,
}

/// Draws a series and returns its segments, which labels avoid.
pub(crate) fn series(svg: &mut Svg<'_>, place: Place<'_>, index: usize) -> Vec<Segment> {
    let Place { plot, figure, clip, .. } = place;
    let series = &figure.series[index];
    let look = look::look(figure, index);
    let shift = look::shift(figure, index);
    // A segment's tooltip is at its middle.
    let height = |point: &Point| match (point.low, point.high) {
        (Some(low), Some(high)) if series.stacked => (low + high) / 2.0,
        _ => point.y,
    };
    let coordinates: Vec<Option<(f64, f64)>> =
        series.points.iter().map(|point| plot.at(point.x + shift, height(point))).collect();
    svg.open("g", &[("class", &look::class(look))]);
    if series.stacked {
        stack(svg, place, series, &coordinates);
        svg.close();
        return Vec::new();
    }
    if !series.reference {
        intervals(svg, place, series, &coordinates);
    }
    let (path, segments) = path(&coordinates, series.steps);
    let joined = look::joined(figure) && !segments.is_empty();
    if joined {
        let class = if series.reference { "ceiling" } else { "line" };
        svg.leaf("path", &[("class", class), ("d", &path), ("clip-path", clip)]);
    }
    // Where a counter does not change there is nothing to mark.
    if !(series.reference || series.steps) || !joined {
        markers(svg, place, index, &coordinates);
    }
    for exit in exits(plot, figure, index) {
        svg.leaf("path", &[("class", "exit"), ("d", &arrow(exit.at, exit.side))]);
    }
    svg.close();
    if joined { segments } else { Vec::new() }
}

/// A series of another panel, behind those of this one.
pub(crate) fn faint(svg: &mut Svg<'_>, place: Place<'_>, index: usize) {
    let Place { plot, figure, clip, .. } = place;
    let points = figure.series[index].points.iter();
    let coordinates: Vec<Option<(f64, f64)>> = points.map(|point| plot.at(point.x, point.y)).collect();
    if look::joined(figure) {
        svg.leaf(
            "path",
            &[("class", "faint"), ("d", &path(&coordinates, figure.series[index].steps).0), ("clip-path", clip)],
        );
        return;
    }
    for (x, y) in coordinates.into_iter().flatten().filter(|at| plot.frame.has(*at)) {
        svg.leaf("circle", &[("class", "faint"), ("cx", &px(x)), ("cy", &px(y)), ("r", "2")]);
    }
}

/// The line through the points, and its segments; in steps it stays at a value until the next point.
fn path(coordinates: &[Option<(f64, f64)>], steps: bool) -> (String, Vec<Segment>) {
    let mut path = String::new();
    let mut segments = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for at in coordinates {
        if let Some(here) = at {
            match before {
                None => path.push_str(&format!("M{} {}", px(here.0), px(here.1))),
                Some(_) if steps => path.push_str(&format!("H{}V{}", px(here.0), px(here.1))),
                Some(_) => path.push_str(&format!("L{} {}", px(here.0), px(here.1))),
            }
            match before {
                Some(before) if steps => {
                    let corner = (here.0, before.1);
                    segments.extend([(before, corner), (corner, *here)]);
                }
                before => segments.extend(before.map(|before| (before, *here))),
            }
        }
        before = *at;
    }
    (path, segments)
}

/// A triangle at the frame that points outwards.
fn arrow((x, y): (f64, f64), side: Side) -> String {
    let [tip, left, right] = match side {
        Side::Top => [(0.0, -9.0), (-5.0, 0.0), (5.0, 0.0)],
        Side::Bottom => [(0.0, 9.0), (-5.0, 0.0), (5.0, 0.0)],
        Side::Left => [(-9.0, 0.0), (0.0, -5.0), (0.0, 5.0)],
        Side::Right => [(9.0, 0.0), (0.0, -5.0), (0.0, 5.0)],
    };
    let corner = |(dx, dy): (f64, f64)| format!("{} {}", px(x + dx), px(y + dy));
    format!("M{}L{}L{}z", corner(tip), corner(left), corner(right))
}

/// Half the width of a bar of segments.
const HALF_BAR: f64 = 16.0;

/// The segments of bars.
fn stack(svg: &mut Svg<'_>, place: Place<'_>, series: &Series, coordinates: &[Option<(f64, f64)>]) {
    let Place { plot, figure, usage, rates, .. } = place;
    for (point, at) in series.points.iter().zip(coordinates) {
        let ends = point.low.and_then(|low| plot.edge(low)).zip(point.high.and_then(|high| plot.edge(high)));
        let (Some((x, _)), Some(((bottom, _), (top, _)))) = (*at, ends) else { continue };
        if !(plot.frame.left..=plot.frame.right).contains(&x) {
            continue;
        }
        let (left, width) = (px(x - HALF_BAR), px(2.0 * HALF_BAR));
        let (y, height) = (px(top), px(bottom - top));
        let attributes =
            [("class", "segment"), ("x", left.as_str()), ("y", &y), ("width", width.as_str()), ("height", &height)];
        if matches!(usage, Use::Page) {
            svg.leaf("rect", &attributes);
            continue;
        }
        let [size, value, _] = quantity::tooltip(figure, series, point, rates);
        svg.open("rect", &attributes);
        svg.with_text("title", &[], &format!("{}, {size}: {value}", series.name));
        svg.close();
    }
}

/// Whether intervals are bands: those of one figure look the same, also of a series with fewer points.
#[must_use]
pub fn has_bands(figure: &Figure) -> bool {
    look::joined(figure) && figure.series.iter().any(|series| !series.reference && series.points.len() > FEW)
}

/// Bands for many points, bars with caps for few, and for a point alone among others without an interval.
fn intervals(svg: &mut Svg<'_>, place: Place<'_>, series: &Series, coordinates: &[Option<(f64, f64)>]) {
    let Place { plot, figure, clip, .. } = place;
    let ends: Vec<Option<Ends>> = series
        .points
        .iter()
        .zip(coordinates)
        .map(|(point, at)| Some(Ends { x: at.as_ref()?.0, low: plot.edge(point.low?)?, high: plot.edge(point.high?)? }))
        .collect();
    if !has_bands(figure) {
        ends.into_iter().flatten().for_each(|ends| bar(svg, plot, ends));
        return;
    }
    for run in ends.split(Option::is_none) {
        let run: Vec<Ends> = run.iter().copied().flatten().collect();
        match run.as_slice() {
            [] => {}
            [alone] => bar(svg, plot, *alone),
            run => {
                let upper = run.iter().map(|ends| (ends.x, ends.high.0));
                let lower = run.iter().rev().map(|ends| (ends.x, ends.low.0));
                let corners: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{} {}", px(x), px(y))).collect();
                let path = format!("M{}z", corners.join("L"));
                svg.leaf("path", &[("class", "band"), ("d", &path), ("clip-path", clip)]);
            }
        }
    }
}

/// An interval: its place, and the height of each end with whether the frame cuts it.
#[derive(Clone, Copy)]
struct Ends {
    x: f64,
    low: (f64, bool),
    high: (f64, bool),
}

/// A bar with a cap at each end; where the frame cuts it, it has an arrow instead.
fn bar(svg: &mut Svg<'_>, plot: &Plot, Ends { x, low, high }: Ends) {
    if !(plot.frame.left..=plot.frame.right).contains(&x) {
        return;
    }
    let cap = |(y, cut): (f64, bool)| {
        if cut { String::new() } else { format!("M{} {}L{} {}", px(x - 4.0), px(y), px(x + 4.0), px(y)) }
    };
    let path = format!("M{} {}L{} {}{}{}", px(x), px(low.0), px(x), px(high.0), cap(low), cap(high));
    svg.leaf("path", &[("class", "bar"), ("d", &path)]);
}

fn markers(svg: &mut Svg<'_>, place: Place<'_>, index: usize, coordinates: &[Option<(f64, f64)>]) {
    let Place { plot, figure, usage, rates, .. } = place;
    let series = &figure.series[index];
    let look = look::look(figure, index);
    let count = series.points.len();
    let every = if count > MANY && look::joined(figure) { count / 14 } else { 1 };
    let radius = if count > 40 { 2.6 } else { 3.8 };
    let some_interval = series.points.iter().any(|point| point.low.is_some());
    for (point, at) in series.points.iter().zip(coordinates).step_by(every) {
        let Some((x, y)) = (*at).filter(|at| plot.frame.has(*at)) else { continue };
        let (class, path) = marker::marker(look.colour + 2 * look.dash, x, y, radius);
        // Beside points with intervals, one without is hollow.
        let class = if some_interval && point.low.is_none() && class == "dot" { "hollow" } else { class };
        let attributes = [("class", class), ("d", path.as_str())];
        if matches!(usage, Use::Page) {
            svg.leaf("path", &attributes);
            continue;
        }
        let [size, value, interval] = quantity::tooltip(figure, series, point, rates);
        let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
        svg.open("path", &attributes);
        svg.with_text("title", &[], &format!("{}, {size}: {value}{interval}", series.name));
        svg.close();
    }
}

#[cfg(test)]
mod tests {
    use model::{Axis, Scale};

    use super::*;
    use crate::{Sheet, WIDTH, draw};

    fn drawn(x: Axis, points: &[(f64, Option<f64>, Option<f64>)]) -> String {
        let points =
            (0..).zip(points).map(|(at, (y, low, high))| Point { x: f64::from(at), y: *y, low: *low, high: *high });
        let series = Series { points: points.collect(), ..Series::default() };
        let y = Axis::new("y", "", Scale::Linear);
        draw(&Figure { x, y, series: vec![series], ..Figure::default() }, Use::File, Sheet::new(WIDTH)).svg
    }

    fn count(svg: &str, class: &str) -> usize {
        svg.matches(&format!("class=\"{class}\"")).count()
    }

    #[test]
    fn categories_are_not_joined_and_numbers_are() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let points = [(1.0, Some(0.5), Some(1.5)), (2.0, Some(1.5), Some(2.5)), (3.0, Some(2.5), Some(3.5))];
        let apart = drawn(Axis::names("name", &names), &points);
        // The only line is none; the legend of a single series has a marker, too.
        assert_eq!((count(&apart, "line"), count(&apart, "bar"), count(&apart, "dot")), (0, 3, 4));
        let joined = drawn(Axis::new("x", "", Scale::Linear), &points);
        assert_eq!(count(&joined, "line"), 2, "the line, and its key");
    }

    #[test]
    fn a_counter_goes_in_steps() {
        let at = |x: f64, y: f64| Some((x, y));
        let (steps, segments) = path(&[at(0.0, 9.0), at(5.0, 7.0), None, at(8.0, 7.0)], true);
        assert_eq!((steps.as_str(), segments.len()), ("M0 9H5V7M8 7", 2));
    }

    #[test]
    fn the_widest_interval_is_drawn_to_the_frame_with_an_arrow() {
        let mut points = vec![(10.0, Some(9.0), Some(11.0)); 40];
        points[20] = (10.0, Some(0.0), Some(f64::INFINITY));
        let svg = drawn(Axis::new("x", "", Scale::Linear), &points);
        assert_eq!((count(&svg, "band"), count(&svg, "exit")), (1, 1), "one band without a gap");
        // Between points without an interval, the interval of one is a bar; the others are hollow.
        let mut points = vec![(10.0, None, None); 40];
        points[20] = (10.0, Some(9.0), Some(11.0));
        let svg = drawn(Axis::new("x", "", Scale::Linear), &points);
        assert_eq!((count(&svg, "band"), count(&svg, "bar"), count(&svg, "hollow")), (0, 1, 39));
    }
}

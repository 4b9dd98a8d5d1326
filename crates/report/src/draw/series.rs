//! Lines, markers and intervals.

use model::{Figure, Point, Series};

use super::layout::{Layout, Segment};
use super::svg::{Svg, px};
use super::{Use, marker, theme, tooltips};

/// Series with more points have bands and sparse markers.
const MANY: usize = 130;
/// Series with at most this many points show intervals as bars.
const FEW: usize = 16;

/// Draws a series and returns its segments, which labels avoid.
pub(super) fn series(svg: &mut Svg, layout: &Layout, figure: &Figure, index: usize, usage: Use) -> Vec<Segment> {
    let series = &figure.series[index];
    // A segment's tooltip is at its middle.
    let height = |point: &Point| match (point.low, point.high) {
        (Some(low), Some(high)) if series.stacked => (low + high) / 2.0,
        _ => point.y,
    };
    let coordinates: Vec<Option<(f64, f64)>> =
        series.points.iter().map(|point| layout.at(point.x, height(point))).collect();
    let class = format!("series s{}", index % theme::SERIES);
    let tips = if usage == Use::Inline { tooltips_json(figure, series, &coordinates) } else { String::new() };
    let mut attributes = vec![("class", class.as_str())];
    if usage == Use::Inline {
        attributes.extend([("data-name", series.name.as_str()), ("data-tips", tips.as_str())]);
    }
    svg.open("g", &attributes);
    if series.stacked {
        stack(svg, layout, figure, series, &coordinates, usage);
        svg.close();
        return Vec::new();
    }
    if !series.reference {
        intervals(svg, layout, series, &coordinates);
    }
    let mut path = String::new();
    let mut segments = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for at in &coordinates {
        if let Some(here) = at {
            let step = if before.is_some() { 'L' } else { 'M' };
            path.push_str(&format!("{step}{} {}", px(here.0), px(here.1)));
            segments.extend(before.map(|before| (before, *here)));
        }
        before = *at;
    }
    if !segments.is_empty() {
        let class = if series.reference { "ceiling" } else { "line" };
        svg.leaf("path", &[("class", class), ("d", &path)]);
    }
    if !series.reference || segments.is_empty() {
        markers(svg, figure, index, series, &coordinates, usage);
    }
    svg.close();
    segments
}

/// Half the width of a bar of segments.
const HALF_BAR: f64 = 16.0;

/// The segments of bars.
fn stack(
    svg: &mut Svg,
    layout: &Layout,
    figure: &Figure,
    series: &Series,
    coordinates: &[Option<(f64, f64)>],
    usage: Use,
) {
    for (point, at) in series.points.iter().zip(coordinates) {
        let ends = point.low.and_then(|low| layout.edge(low)).zip(point.high.and_then(|high| layout.edge(high)));
        let (Some((x, _)), Some((bottom, top))) = (*at, ends) else { continue };
        let (left, width) = (px(x - HALF_BAR), px(2.0 * HALF_BAR));
        let (y, height) = (px(top), px(bottom - top));
        let attributes =
            [("class", "segment"), ("x", left.as_str()), ("y", &y), ("width", width.as_str()), ("height", &height)];
        if usage == Use::Inline {
            svg.leaf("rect", &attributes);
            continue;
        }
        let [size, value, _] = tooltips::tooltip(figure, point);
        svg.open("rect", &attributes);
        svg.with_text("title", &[], &format!("{}, {size}: {value}", series.name));
        svg.close();
    }
}

/// The coordinates and texts of all points, for the page's script: `[x, y, size, value, interval]` each.
fn tooltips_json(figure: &Figure, series: &Series, coordinates: &[Option<(f64, f64)>]) -> String {
    let tips: Vec<serde_json::Value> = series
        .points
        .iter()
        .zip(coordinates)
        .filter_map(|(point, at)| {
            let (x, y) = (*at)?;
            let [size, value, interval] = tooltips::tooltip(figure, point);
            Some(serde_json::json!([(x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0, size, value, interval]))
        })
        .collect();
    serde_json::Value::from(tips).to_string()
}

/// Bands for many points, bars with caps for few.
fn intervals(svg: &mut Svg, layout: &Layout, series: &Series, coordinates: &[Option<(f64, f64)>]) {
    let ends: Vec<Option<(f64, f64, f64)>> = series
        .points
        .iter()
        .zip(coordinates)
        .map(|(point, at)| Some((at.as_ref()?.0, layout.edge(point.low?)?, layout.edge(point.high?)?)))
        .collect();
    if series.points.len() <= FEW {
        for (x, low, high) in ends.into_iter().flatten() {
            let cap = |y: f64| format!("M{} {}L{} {}", px(x - 4.0), px(y), px(x + 4.0), px(y));
            let path = format!("M{} {}L{} {}{}{}", px(x), px(low), px(x), px(high), cap(low), cap(high));
            svg.leaf("path", &[("class", "bar"), ("d", &path)]);
        }
        return;
    }
    for run in ends.split(Option::is_none) {
        let run: Vec<(f64, f64, f64)> = run.iter().copied().flatten().collect();
        if run.len() > 1 {
            let upper = run.iter().map(|(x, _, high)| (x, high));
            let lower = run.iter().rev().map(|(x, low, _)| (x, low));
            let corners: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
            svg.leaf("path", &[("class", "band"), ("d", &format!("M{}z", corners.join("L")))]);
        }
    }
}

fn markers(
    svg: &mut Svg,
    figure: &Figure,
    index: usize,
    series: &Series,
    coordinates: &[Option<(f64, f64)>],
    usage: Use,
) {
    let count = series.points.len();
    let every = if count > MANY { count / 14 } else { 1 };
    let radius = if count > 40 { 2.6 } else { 3.8 };
    for (point, at) in series.points.iter().zip(coordinates).step_by(every) {
        let Some((x, y)) = *at else { continue };
        let (class, path) = marker::marker(index, x, y, radius);
        let attributes = [("class", class), ("d", path.as_str())];
        if usage == Use::Inline {
            svg.leaf("path", &attributes);
            continue;
        }
        let [size, value, interval] = tooltips::tooltip(figure, point);
        let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
        svg.open("path", &attributes);
        svg.with_text("title", &[], &format!("{}, {size}: {value}{interval}", series.name));
        svg.close();
    }
}

//! A figure as SVG.

mod axes;
mod layout;
mod marker;
mod notes;
mod series;
pub(crate) mod span;
pub(crate) mod svg;
mod text_width;
pub(crate) mod theme;
pub(crate) mod ticks;
mod tooltips;

use model::Figure;

use layout::{Layout, SAMPLE, Segment, WIDTH};
use svg::{Svg, px};

#[cfg(test)]
pub(crate) use text_width::text_width;
pub(crate) use text_width::{fit, wrap};

/// How a drawing will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A file: with style rules, and titles that viewers show as tooltips.
    File,
    /// A part of a page that has the style rules and a script for tooltips.
    Inline,
}

/// Draws `figure`. Values that an axis cannot show (not finite; zero or below on a log axis) are left out.
pub(crate) fn draw(figure: &Figure, usage: Use) -> String {
    let layout = Layout::new(figure);
    let mut svg = Svg::default();
    let size = format!("0 0 {} {}", px(WIDTH), px(layout.height));
    let (width, height) = (px(WIDTH), px(layout.height));
    let label = format!("{}: {}", figure.title, figure.subtitle);
    let mut attributes = vec![("viewBox", size.as_str()), ("role", "img"), ("aria-label", label.as_str())];
    if usage == Use::File {
        attributes.extend([("xmlns", "http://www.w3.org/2000/svg"), ("width", &width), ("height", &height)]);
    }
    svg.open("svg", &attributes);
    if usage == Use::File {
        svg.with_text("style", &[], &theme::LIGHT.rules("").replace('\'', ""));
        svg.leaf("rect", &[("class", "paper"), ("width", &width), ("height", &height)]);
    }
    axes::axes(&mut svg, &layout);
    let mut segments = Vec::new();
    for index in 0..figure.series.len() {
        segments.extend(series::series(&mut svg, &layout, figure, index, usage));
    }
    if !figure.series.iter().flat_map(|series| &series.points).any(|point| layout.at(point.x, point.y).is_some()) {
        let middle = (px(layout.across(0.5)), px(layout.down(0.5)));
        text(&mut svg, "axis", &middle.0, &middle.1, "middle", "no value can be shown on these axes");
    }
    marks(&mut svg, &layout, figure, &segments);
    legend(&mut svg, &layout, figure);
    svg.finish()
}

fn text(svg: &mut Svg, class: &str, x: &str, y: &str, anchor: &str, content: &str) {
    svg.with_text("text", &[("class", class), ("x", x), ("y", y), ("text-anchor", anchor)], content);
}

fn line(svg: &mut Svg, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let path = format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2));
    svg.leaf("path", &[("class", class), ("d", &path)]);
}

fn marks(svg: &mut Svg, layout: &Layout, figure: &Figure, segments: &[Segment]) {
    let notes = notes::place_labels(layout, &figure.marks, segments);
    for note in &notes {
        line(svg, "lead", note.point, notes::anchor(&note.area, note.point));
    }
    for (x, y) in figure.marks.iter().filter_map(|mark| layout.at(mark.x, mark.y)) {
        svg.leaf("circle", &[("class", "ring"), ("cx", &px(x)), ("cy", &px(y)), ("r", "4.5")]);
    }
    for note in &notes {
        let area = note.area;
        let (x, y) = (px(area.left), px(area.top));
        let (width, height) = (px(area.right - area.left), px(area.bottom - area.top));
        svg.leaf(
            "rect",
            &[("class", "note"), ("x", &x), ("y", &y), ("width", &width), ("height", &height), ("rx", "4")],
        );
        let (x, y) = (px((area.left + area.right) / 2.0), px(area.bottom - 5.5));
        text(svg, "mark", &x, &y, "middle", &note.text);
    }
}

fn legend(svg: &mut Svg, layout: &Layout, figure: &Figure) {
    for key in &layout.keys {
        let Some(series) = figure.series.get(key.series) else { continue };
        svg.open("g", &[("class", &format!("s{}", key.series % theme::SERIES))]);
        let y = key.y - 4.5;
        if series.stacked {
            let (x, top) = (px(key.x), px(y - 6.0));
            let width = px(SAMPLE);
            svg.leaf("rect", &[("class", "segment"), ("x", &x), ("y", &top), ("width", &width), ("height", "12")]);
        } else {
            let class = if series.reference { "ceiling" } else { "line" };
            line(svg, class, (key.x, y), (key.x + SAMPLE, y));
        }
        if !series.reference && !series.stacked {
            let (class, path) = marker::marker(key.series, key.x + SAMPLE / 2.0, y, 3.8);
            svg.leaf("path", &[("class", class), ("d", &path)]);
        }
        text(svg, "key", &px(key.x + SAMPLE + 8.0), &px(key.y), "start", &key.text);
        svg.close();
    }
}

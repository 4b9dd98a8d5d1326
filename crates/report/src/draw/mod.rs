//! A figure as SVG.

mod axes;
pub(crate) mod dates;
mod end_labels;
mod exits;
mod label;
mod layout;
mod look;
mod map;
mod map_places;
mod marker;
pub(crate) mod matrix;
mod notes;
mod outlines;
mod plot;
mod series;
pub(crate) mod span;
pub(crate) mod svg;
mod text_width;
pub(crate) mod theme;
pub(crate) mod ticks;
mod tooltips;

use model::Figure;
use resvg::tiny_skia::Pixmap;

use end_labels::{EndLabels, LEAD, LINE};
use label::{TextAt, label};
use layout::SAMPLE;
use plot::Segment;
use series::Place;
use svg::{Svg, px};

pub(crate) use exits::{Side, exits};
pub(crate) use layout::{Key, Layout, NARROW, NARROWEST, WIDTH, is_dense};
pub(crate) use look::{joined, look, shift};
pub(crate) use plot::{Plot, Rect};
pub(crate) use series::{FEW, MANY};
pub(crate) use text_width::{fit, wrap};

/// How a drawing will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A file: with style rules, and titles that viewers show as tooltips.
    File,
    /// A picture: the same, for a renderer without fonts.
    Picture,
    /// A part of a page that has the style rules and a script for tooltips.
    Inline,
}

/// The images within a figure that is drawn in a place of so many pixels, and where they are: of a matrix of many hosts.
pub(crate) fn images(figure: &Figure, width: f64) -> Vec<(Rect, Pixmap)> {
    let Some(of) = figure.matrix.as_ref().filter(|_| is_dense(figure)) else { return Vec::new() };
    let layout = Layout::new(figure, width.clamp(NARROWEST, WIDTH));
    matrix::images(&layout, figure, of, width / layout.width)
}

/// Draws `figure`, laid out for a place of this width. Values that an axis cannot show (not finite; zero or below on a log axis) are
/// left out.
pub(crate) fn draw(figure: &Figure, usage: Use, width: f64) -> String {
    let width = width.clamp(NARROWEST, WIDTH);
    if let Some(map) = &figure.map {
        return map::draw(figure, map, usage, width);
    }
    let layout = Layout::new(figure, width);
    let mut svg = begun(figure, usage, width, layout.height);
    axes::head(&mut svg, &layout.head);
    axes::axes(&mut svg, &layout, figure);
    match &figure.matrix {
        Some(matrix) => matrix::draw(&mut svg, &layout, figure, matrix, usage),
        None => lines(&mut svg, &layout, figure, usage),
    }
    svg.finish()
}

/// The document's root, with what its use needs.
fn begun(figure: &Figure, usage: Use, width: f64, height: f64) -> Svg {
    let mut svg = Svg::new(usage == Use::Picture);
    let size = format!("0 0 {} {}", px(width), px(height));
    // A page shows the wide or the narrow one.
    let class = if width < WIDTH { "narrow" } else { "broad" };
    let (width, height) = (px(width), px(height));
    let label = format!("{}: {}", figure.title, figure.subtitle);
    let mut attributes = vec![("viewBox", size.as_str()), ("role", "img"), ("aria-label", label.as_str())];
    match usage {
        Use::File | Use::Picture => {
            attributes.extend([("xmlns", "http://www.w3.org/2000/svg"), ("width", &width), ("height", &height)]);
        }
        Use::Inline => attributes.push(("class", class)),
    }
    svg.open("svg", &attributes);
    if usage != Use::Inline {
        svg.with_text("style", &[], &theme::LIGHT.rules("").replace('\'', ""));
        svg.leaf("rect", &[("class", "paper"), ("width", &width), ("height", &height)]);
    }
    svg
}

fn lines(svg: &mut Svg, layout: &Layout, figure: &Figure, usage: Use) {
    let mut segments = Vec::new();
    for (panel, plot) in layout.plots.iter().enumerate() {
        let id = clip(svg, layout, figure, plot, panel);
        let place = Place { plot, figure, clip: &id, usage };
        let here = |index: &usize| figure.series[*index].is_in(panel);
        let all = 0..figure.series.len();
        if figure.context {
            all.clone().filter(|index| !here(index)).for_each(|index| series::faint(svg, place, index));
        }
        for index in all.filter(here) {
            segments.extend(series::series(svg, place, index));
        }
    }
    let drawn = |plot: &Plot| {
        figure.series.iter().flat_map(|series| &series.points).any(|point| plot.at(point.x, point.y).is_some())
    };
    let Some(first) = layout.plots.first() else { return };
    if !drawn(first) {
        let middle = (px(first.across(0.5)), px(first.down(0.5)));
        text(svg, "axis", &middle.0, &middle.1, "middle", "no value can be shown on these axes");
    }
    marks(svg, first, figure, &segments);
    if let Some(ends) = &layout.ends {
        end_names(svg, ends, figure);
    }
    legend(svg, layout, figure);
}

/// Defines the clip path of a plot, with an id that is unique in a page of many figures.
fn clip(svg: &mut Svg, layout: &Layout, figure: &Figure, plot: &Plot, panel: usize) -> String {
    let kept: String = figure.id.chars().filter(char::is_ascii_alphanumeric).collect();
    let id = format!("c-{kept}-{}-{panel}", px(layout.width));
    let frame = plot.frame.grown(1.0);
    let (x, y) = (px(frame.left), px(frame.top));
    let (width, height) = (px(frame.right - frame.left), px(frame.bottom - frame.top));
    svg.open("clipPath", &[("id", &id)]);
    svg.leaf("rect", &[("x", &x), ("y", &y), ("width", &width), ("height", &height)]);
    svg.close();
    format!("url(#{id})")
}

fn text(svg: &mut Svg, class: &str, x: &str, y: &str, anchor: &str, content: &str) {
    label(svg, TextAt { class, x, y, anchor }, &[], content);
}

fn line(svg: &mut Svg, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let path = format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2));
    svg.leaf("path", &[("class", class), ("d", &path)]);
}

fn marks(svg: &mut Svg, plot: &Plot, figure: &Figure, segments: &[Segment]) {
    let notes = notes::place_labels(plot, &figure.marks, segments);
    for note in &notes {
        line(svg, "lead", note.point, notes::anchor(&note.area, note.point));
    }
    for (_, (x, y)) in notes::shown(plot, &figure.marks) {
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

/// The names at the ends of the lines.
fn end_names(svg: &mut Svg, ends: &EndLabels, figure: &Figure) {
    for name in &ends.labels {
        svg.open("g", &[("class", &look::class(look(figure, name.series)))]);
        match name.from {
            Some((x, y)) => line(svg, "tail", (x + 5.0, y), (ends.left - 3.0, name.middle)),
            None => sample(svg, figure, name.series, (ends.left - LEAD + 2.0, ends.left - 4.0), name.middle),
        }
        let first = name.middle - LINE * (name.lines.len() as f64 - 1.0) / 2.0 + 4.5;
        for (row, content) in name.lines.iter().enumerate() {
            text(svg, "end", &px(ends.left), &px(first + LINE * row as f64), "start", content);
        }
        svg.close();
    }
}

fn legend(svg: &mut Svg, layout: &Layout, figure: &Figure) {
    for key in &layout.keys {
        svg.open("g", &[("class", &look::class(look(figure, key.series)))]);
        let y = key.y - 4.5;
        sample(svg, figure, key.series, (key.x, key.x + SAMPLE), y);
        text(svg, "key", &px(key.x + SAMPLE + 8.0), &px(key.y), "start", &key.text);
        svg.close();
    }
}

/// A piece of what a series looks like, between two places at a height.
fn sample(svg: &mut Svg, figure: &Figure, index: usize, (left, right): (f64, f64), y: f64) {
    let series = &figure.series[index];
    if series.stacked {
        let (x, top, width) = (px(left), px(y - 6.0), px(right - left));
        svg.leaf("rect", &[("class", "segment"), ("x", &x), ("y", &top), ("width", &width), ("height", "12")]);
    } else if joined(figure) {
        let class = if series.reference { "ceiling" } else { "line" };
        line(svg, class, (left, y), (right, y));
    }
    if !series.reference && !series.stacked {
        let look = look(figure, index);
        let (class, path) = marker::marker(look.colour + 2 * look.dash, (left + right) / 2.0, y, 3.8);
        svg.leaf("path", &[("class", class), ("d", &path)]);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use model::{Axis, Figure, Matrix, MatrixCell};

    /// The goodput from each of so many hosts to each other one, which grows with the numbers of both.
    pub(crate) fn matrix_of(hosts: usize) -> Figure {
        let names: Vec<String> = (0..hosts).map(|host| format!("n{host}")).collect();
        let of =
            |(row, column): (usize, usize)| MatrixCell { panel: 0, row, column, value: 1e9 + (row + column) as f64 };
        let pairs = (0..hosts).flat_map(|row| (0..hosts).map(move |column| (row, column)));
        let cells = pairs.filter(|(row, column)| row != column).map(of).collect();
        Figure {
            id: "plan-goodput-hosts".into(),
            title: "Goodput from host to host".into(),
            x: Axis::names("to", &names),
            y: Axis::names("from", &names),
            matrix: Some(Matrix { label: "goodput".into(), unit: "bit/s".into(), cells }),
            ..Figure::default()
        }
    }
}

//! Figures as drawings. A [`Figure`] says what is shown; this crate decides where: scales, ticks with their texts, panels, legend,
//! labels of marks and ends of lines, for a width. Files and the page of reports are drawn by the same code: the page has it as
//! WebAssembly (`crates/page-drawing`).

mod axes;
pub mod dates;
mod end_labels;
mod exits;
mod image;
mod keys;
mod label;
mod layout;
mod look;
mod map;
mod map_places;
mod marker;
pub mod matrix;
mod notes;
mod plot;
mod quantity;
mod series;
pub mod span;
mod svg;
mod text_width;
pub mod theme;
pub mod ticks;
pub mod view;
mod widths;

use model::Figure;

use keys::sample;
use label::{TextAt, label};
use layout::SAMPLE;
use series::Place;
use svg::Svg;

pub use end_labels::{EndLabel, EndLabels};
pub use exits::{Exit, Side, exits};
pub use image::Image;
pub use layout::{Key, Layout, NARROW, Sheet, WIDTH, is_dense};
pub use look::{joined, look, shift};
pub use plot::{Plot, Rect};
pub use quantity::quantity;
pub use series::{MANY, has_bands};
pub use svg::{Glyphs, escape, px};
pub use text_width::{fit, wrap};

/// Unit of the horizontal axis of latencies: 1/(1-q) for quantile q, on a log scale. 1 is the shortest round trip, 2 the median, 10 the
/// 90th percentile, 100 the 99th. Its ticks are in percent.
pub const TAIL_UNIT: &str = "1/(1-q)";

/// How a drawing will be used.
#[derive(Clone, Copy)]
pub enum Use<'a> {
    /// A file: with style rules, and titles that viewers show as tooltips.
    File,
    /// A picture: the same, for a renderer without fonts.
    Picture(&'a dyn Glyphs),
    /// A part of a page that has the style rules, the title and the legend.
    Page,
}

/// A figure that has been drawn.
#[derive(Debug)]
pub struct Drawing {
    /// The drawing.
    pub svg: String,
    /// Its size, px.
    pub size: (f64, f64),
    /// The plots, one for each panel; none of a map.
    pub plots: Vec<Plot>,
}

/// The images within a figure that is drawn this many pixels wide, and where they are. Only a matrix of many hosts has some.
#[must_use]
pub fn images(figure: &Figure, sheet: Sheet) -> Vec<(Rect, Image)> {
    let Some(of) = figure.matrix.as_ref().filter(|_| is_dense(figure)) else { return Vec::new() };
    let layout = Layout::new(figure, sheet);
    matrix::images(&layout, figure, of, sheet.width / layout.width)
}

/// Draws `figure` on a sheet. Values that an axis cannot show (not finite; zero or below on a log axis) are left out.
#[must_use]
pub fn draw(figure: &Figure, usage: Use<'_>, sheet: Sheet) -> Drawing {
    if let Some(map) = &figure.map {
        return map::draw(figure, map, usage, sheet);
    }
    let layout = Layout::new(figure, sheet);
    let mut svg = begun(figure, usage, layout.width, layout.height);
    axes::head(&mut svg, &layout.head);
    axes::axes(&mut svg, &layout, figure);
    match &figure.matrix {
        Some(matrix) => matrix::draw(&mut svg, &layout, figure, matrix, usage),
        None => lines(&mut svg, &layout, figure, usage),
    }
    Drawing { svg: svg.finish(), size: (layout.width, layout.height), plots: layout.plots }
}

/// The document's root, with what its use needs.
fn begun<'a>(figure: &Figure, usage: Use<'a>, width: f64, height: f64) -> Svg<'a> {
    let mut svg = Svg::new(if let Use::Picture(glyphs) = usage { Some(glyphs) } else { None });
    let size = format!("0 0 {} {}", px(width), px(height));
    let (width, height) = (px(width), px(height));
    let label = format!("{}: {}", figure.title, figure.subtitle);
    let mut attributes = vec![("viewBox", size.as_str()), ("role", "img"), ("aria-label", label.as_str())];
    match usage {
        Use::File | Use::Picture(_) => {
            attributes.extend([("xmlns", "http://www.w3.org/2000/svg"), ("width", &width), ("height", &height)]);
        }
        Use::Page => attributes.push(("class", "drawing")),
    }
    svg.open("svg", &attributes);
    if !matches!(usage, Use::Page) {
        svg.with_text("style", &[], &theme::LIGHT.rules("").replace('\'', ""));
        svg.leaf("rect", &[("class", "paper"), ("width", &width), ("height", &height)]);
    }
    svg
}

fn lines(svg: &mut Svg<'_>, layout: &Layout, figure: &Figure, usage: Use<'_>) {
    let mut segments = Vec::new();
    let mut is_empty = true;
    for (panel, plot) in layout.plots.iter().enumerate() {
        let id = clip(svg, layout, figure, plot, panel);
        let place = Place { plot, figure, clip: &id, usage, rates: layout.rates };
        let here = |index: &usize| figure.series[*index].is_in(panel);
        let all = 0..figure.series.len();
        if figure.context {
            all.clone().filter(|index| !here(index)).for_each(|index| series::faint(svg, place, index));
        }
        for index in all.filter(here) {
            let points = &figure.series[index].points;
            is_empty &= !points.iter().any(|point| plot.at(point.x, point.y).is_some());
            let own = series::series(svg, place, index);
            // Marks are in the first panel.
            if panel == 0 {
                segments.extend(own);
            }
        }
    }
    let Some(first) = layout.plots.first() else { return };
    if is_empty {
        let middle = (px(first.across(0.5)), px(first.down(0.5)));
        text(svg, "axis", &middle.0, &middle.1, "middle", "no value can be shown on these axes");
    }
    notes::marks(svg, first, figure, &segments);
    if let Some(ends) = &layout.ends {
        end_labels::draw(svg, ends, figure);
    }
    for key in &layout.keys {
        svg.open("g", &[("class", &look::class(look(figure, key.series)))]);
        sample(svg, figure, key.series, (key.x, key.x + SAMPLE), key.y - 4.5);
        text(svg, "key", &px(key.x + SAMPLE + 8.0), &px(key.y), "start", &key.text);
        svg.close();
    }
}

/// Defines the clip path of a plot, with an id that is unique in a page of many figures.
fn clip(svg: &mut Svg<'_>, layout: &Layout, figure: &Figure, plot: &Plot, panel: usize) -> String {
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

fn text(svg: &mut Svg<'_>, class: &str, x: &str, y: &str, anchor: &str, content: &str) {
    label(svg, TextAt { class, x, y, anchor }, &[], content);
}

fn line(svg: &mut Svg<'_>, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let path = format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2));
    svg.leaf("path", &[("class", class), ("d", &path)]);
}

#[cfg(test)]
pub(crate) mod testing {
    use model::{Axis, Figure, Matrix, MatrixCell};

    /// The goodput from each of `hosts` hosts to each other one, which grows with the numbers of both.
    pub(crate) fn matrix_of(hosts: usize) -> Figure {
        let names: Vec<String> = (0..hosts).map(|host| format!("n{host}")).collect();
        let of = |(row, column): (usize, usize)| MatrixCell {
            row,
            column,
            value: 1e9 + (row + column) as f64,
            ..MatrixCell::default()
        };
        let pairs = (0..hosts).flat_map(|row| (0..hosts).map(move |column| (row, column)));
        let cells = pairs.filter(|(row, column)| row != column).map(of).collect();
        Figure {
            id: "plan-goodput-hosts".into(),
            title: "Goodput from host to host".into(),
            x: Axis::names("to", &names),
            y: Axis::names("from", &names),
            matrix: Some(Matrix { label: "goodput".into(), unit: "bit/s".into(), cells, ..Matrix::default() }),
            ..Figure::default()
        }
    }
}

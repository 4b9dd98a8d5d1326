//! Title, grid, ticks and frames.

use model::Figure;

use crate::label::{TextAt, label};
use crate::layout::{Head, Layout};
use crate::plot::Plot;
use crate::svg::{Svg, px};
use crate::text_width::fit;
use crate::{line, text};

/// Title and subtitle.
pub(crate) fn head(svg: &mut Svg<'_>, head: &Head) {
    let (left, size) = (px(head.edge), px(head.size));
    for (row, content) in head.title.iter().enumerate() {
        let y = px(36.0 + 21.0 * row as f64);
        let at = TextAt { class: "title", x: &left, y: &y, anchor: "start" };
        label(svg, at, &[("font-size", &size)], content);
    }
    let first = 38.0 + 21.0 * head.title.len() as f64;
    for (row, content) in head.subtitle.iter().enumerate() {
        text(svg, "subtitle", &left, &px(first + 17.0 * row as f64), "start", content);
    }
}

/// Grid, ticks and frame of each plot, and the axes' labels.
pub(crate) fn axes(svg: &mut Svg<'_>, layout: &Layout, figure: &Figure) {
    let left = layout.plots.iter().map(|plot| plot.frame.left).fold(f64::INFINITY, f64::min);
    for (index, plot) in layout.plots.iter().enumerate() {
        // The cells of a matrix fill the grid.
        if figure.matrix.is_none() {
            grid(svg, layout, index);
        }
        // The texts are at the outer plots: below the lowest of each column, and left of the first one.
        let lower = |other: &Plot| other.frame.left == plot.frame.left && other.frame.top > plot.frame.top;
        if !layout.plots.iter().any(lower) {
            x_texts(svg, layout, plot);
        }
        if plot.frame.left == left {
            y_texts(svg, layout, index, left - layout.head.edge - 30.0);
        }
        frame(svg, plot);
        if let Some(panel) = figure.panels.get(index) {
            let room = plot.frame.right - plot.frame.left;
            let title = fit(&panel.title, 13.0 * 1.15, room);
            text(svg, "panel", &px(plot.frame.left), &px(plot.frame.top - 11.0), "start", &title);
        }
        if layout.has_own_axes {
            y_title(svg, layout, index, (plot.frame.top, plot.frame.bottom));
        }
    }
    let right = layout.plots.iter().map(|plot| plot.frame.right).fold(0.0, f64::max);
    let middle = px((left + right) / 2.0);
    text(svg, "axis", &middle, &px(layout.x_label), "middle", &fit(&layout.x_ticks.title, 13.5 * 1.1, right));
    if !layout.has_own_axes {
        let top = layout.plots.iter().map(|plot| plot.frame.top).fold(f64::INFINITY, f64::min);
        let bottom = layout.plots.iter().map(|plot| plot.frame.bottom).fold(0.0, f64::max);
        y_title(svg, layout, 0, (top, bottom));
    }
}

/// The title of a vertical axis, which reads upwards.
fn y_title(svg: &mut Svg<'_>, layout: &Layout, panel: usize, (top, bottom): (f64, f64)) {
    let Some(lines) = layout.y_titles.get(panel) else { return };
    for (line, content) in lines.iter().enumerate() {
        let (x, y) = (px(layout.head.edge + 11.0 + 16.0 * line as f64), px((top + bottom) / 2.0));
        let turn = format!("rotate(-90 {x} {y})");
        let at = TextAt { class: "axis", x: &x, y: &y, anchor: "middle" };
        label(svg, at, &[("transform", &turn)], content);
    }
}

/// The positions of ticks within a plot.
fn inside(layout: &Layout, index: usize) -> [Vec<f64>; 4] {
    let plot = &layout.plots[index];
    let columns = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        values.filter_map(|value| plot.x.position(value)).map(|share| plot.across(share)).collect()
    };
    let rows = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        values.filter_map(|value| plot.y.position(value)).map(|share| plot.down(share)).collect()
    };
    let (x, y) = (&layout.x_ticks, &layout.y_ticks[index]);
    [
        columns(&mut x.minor.iter().copied()),
        rows(&mut y.minor.iter().copied()),
        columns(&mut x.major.iter().map(|(value, _)| *value)),
        rows(&mut y.major.iter().map(|(value, _)| *value)),
    ]
}

fn grid(svg: &mut Svg<'_>, layout: &Layout, index: usize) {
    let frame = layout.plots[index].frame;
    let [minor_columns, minor_rows, columns, rows] = inside(layout, index);
    for (class, xs, ys) in [("minor", minor_columns, minor_rows), ("grid", columns, rows)] {
        xs.iter().for_each(|x| line(svg, class, (*x, frame.top), (*x, frame.bottom)));
        ys.iter().for_each(|y| line(svg, class, (frame.left, *y), (frame.right, *y)));
    }
}

fn x_texts(svg: &mut Svg<'_>, layout: &Layout, plot: &Plot) {
    let bottom = plot.frame.bottom;
    for (value, content) in &layout.x_ticks.major {
        let Some(share) = plot.x.position(*value) else { continue };
        let x = plot.across(share);
        line(svg, "frame", (x, bottom), (x, bottom + 5.0));
        let Some(slope) = layout.slope else {
            text(svg, "tick", &px(x), &px(bottom + 20.0), "middle", content);
            continue;
        };
        let (x, y) = (px(x + 4.0), px(bottom + 16.0));
        let turn = format!("rotate({} {x} {y})", px(-slope));
        let at = TextAt { class: "tick", x: &x, y: &y, anchor: "end" };
        let content = fit(content, 12.5 * 1.1, Layout::SLOPED);
        label(svg, at, &[("transform", &turn)], &content);
    }
}

fn y_texts(svg: &mut Svg<'_>, layout: &Layout, index: usize, room: f64) {
    let plot = &layout.plots[index];
    let left = plot.frame.left;
    for (value, content) in &layout.y_ticks[index].major {
        if let Some(share) = plot.y.position(*value) {
            let y = plot.down(share);
            line(svg, "frame", (left - 5.0, y), (left, y));
            let content = fit(content, 12.5, room);
            text(svg, "tick", &px(left - 9.0), &px(y + 4.5), "end", &content);
        }
    }
}

fn frame(svg: &mut Svg<'_>, plot: &Plot) {
    let frame = plot.frame;
    let (width, height) = (px(frame.right - frame.left), px(frame.bottom - frame.top));
    let corner = (px(frame.left), px(frame.top));
    svg.leaf("rect", &[("class", "frame"), ("x", &corner.0), ("y", &corner.1), ("width", &width), ("height", &height)]);
}

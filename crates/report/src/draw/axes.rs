//! Title, grid, ticks and frame.

use super::layout::Layout;
use super::svg::{Svg, px};
use super::{line, text};

/// Title, subtitle, grid, ticks and frame.
pub(super) fn axes(svg: &mut Svg, layout: &Layout) {
    let frame = layout.frame;
    let left = px(Layout::LEFT);
    text(svg, "title", &left, "36", "start", &layout.title);
    for (row, content) in layout.subtitle.iter().enumerate() {
        text(svg, "subtitle", &left, &px(59.0 + 17.0 * row as f64), "start", content);
    }
    let columns = |values: &[f64]| -> Vec<f64> {
        values.iter().filter_map(|value| layout.x.position(*value)).map(|share| layout.across(share)).collect()
    };
    let rows = |values: &[f64]| -> Vec<f64> {
        values.iter().filter_map(|value| layout.y.position(*value)).map(|share| layout.down(share)).collect()
    };
    let values = |ticks: &[(f64, String)]| -> Vec<f64> { ticks.iter().map(|(value, _)| *value).collect() };
    for (class, xs, ys) in [
        ("minor", columns(&layout.x_ticks.minor), rows(&layout.y_ticks.minor)),
        ("grid", columns(&values(&layout.x_ticks.major)), rows(&values(&layout.y_ticks.major))),
    ] {
        xs.iter().for_each(|x| line(svg, class, (*x, frame.top), (*x, frame.bottom)));
        ys.iter().for_each(|y| line(svg, class, (frame.left, *y), (frame.right, *y)));
    }
    for (value, content) in &layout.x_ticks.major {
        if let Some(share) = layout.x.position(*value) {
            let x = layout.across(share);
            line(svg, "frame", (x, frame.bottom), (x, frame.bottom + 5.0));
            text(svg, "tick", &px(x), &px(frame.bottom + 20.0), "middle", content);
        }
    }
    for (value, content) in &layout.y_ticks.major {
        if let Some(share) = layout.y.position(*value) {
            let y = layout.down(share);
            line(svg, "frame", (frame.left - 5.0, y), (frame.left, y));
            text(svg, "tick", &px(frame.left - 9.0), &px(y + 4.5), "end", content);
        }
    }
    let (width, height) = (px(frame.right - frame.left), px(frame.bottom - frame.top));
    let corner = (px(frame.left), px(frame.top));
    svg.leaf("rect", &[("class", "frame"), ("x", &corner.0), ("y", &corner.1), ("width", &width), ("height", &height)]);
    let (middle, low) = (px(layout.across(0.5)), px(frame.bottom + 44.0));
    text(svg, "axis", &middle, &low, "middle", &layout.x_ticks.title);
    let (x, y) = (px(Layout::LEFT + 10.0), px(layout.down(0.5)));
    let turn = format!("rotate(-90 {x} {y})");
    let attributes = [("class", "axis"), ("x", x.as_str()), ("y", y.as_str()), ("text-anchor", "middle")];
    svg.with_text("text", &[attributes.as_slice(), &[("transform", &turn)]].concat(), &layout.y_ticks.title);
}

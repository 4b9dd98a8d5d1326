//! Marker shapes, which distinguish series without colours.

use crate::svg::px;

/// Number of shapes. It shares no factor with the number of colours, so that pairs of shape and colour repeat late.
const SHAPES: usize = 6;

/// The class and the path of marker number `index`, of about radius `r` around (`x`, `y`).
pub(crate) fn marker(index: usize, x: f64, y: f64, r: f64) -> (&'static str, String) {
    let to = |dx: f64, dy: f64| format!("{} {}", px(x + dx * r), px(y + dy * r));
    match index % SHAPES {
        0 => {
            let (radius, across) = (px(r), px(2.0 * r));
            let arc = |sweep: &str| format!("a{radius} {radius} 0 1 0 {sweep}{across} 0");
            ("dot", format!("M{}{}{}z", to(-1.0, 0.0), arc(""), arc("-")))
        }
        1 => polygon(&[to(-0.9, -0.9), to(0.9, -0.9), to(0.9, 0.9), to(-0.9, 0.9)]),
        2 => polygon(&[to(0.0, -1.2), to(1.1, 0.8), to(-1.1, 0.8)]),
        3 => polygon(&[to(0.0, -1.3), to(1.3, 0.0), to(0.0, 1.3), to(-1.3, 0.0)]),
        4 => polygon(&[to(0.0, 1.2), to(1.1, -0.8), to(-1.1, -0.8)]),
        _ => ("stroke", format!("M{}L{}M{}L{}", to(-1.0, -1.0), to(1.0, 1.0), to(-1.0, 1.0), to(1.0, -1.0))),
    }
}

fn polygon(corners: &[String]) -> (&'static str, String) {
    ("dot", format!("M{}z", corners.join("L")))
}

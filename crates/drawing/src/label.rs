//! Texts of a figure.

use crate::svg::Svg;
use crate::theme;

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextAt<'a> {
    /// Its class, which tells size and weight.
    pub(crate) class: &'a str,
    pub(crate) x: &'a str,
    /// Of the line on which its letters stand.
    pub(crate) y: &'a str,
    /// Which part of it is at `x`: `start`, `middle` or `end`.
    pub(crate) anchor: &'a str,
}

/// Writes a text; `more` are attributes that it has beside its place.
pub(crate) fn label(svg: &mut Svg<'_>, at: TextAt<'_>, more: &[(&str, &str)], text: &str) {
    let TextAt { class, x, y, anchor } = at;
    let Some(glyphs) = svg.glyphs() else {
        let place = [("class", class), ("x", x), ("y", y), ("text-anchor", anchor)];
        return svg.with_text("text", &[&place, more].concat(), text);
    };
    let (size, is_bold) = theme::face(class);
    let given = more.iter().find(|(key, _)| *key == "font-size").and_then(|(_, size)| size.parse().ok());
    let size = given.unwrap_or(size);
    let part = match anchor {
        "middle" => 0.5,
        "end" => 1.0,
        _ => 0.0,
    };
    let left = x.parse().unwrap_or(0.0) - glyphs.width(text, is_bold, size) * part;
    let path = glyphs.path(text, is_bold, size, (left, y.parse().unwrap_or(0.0)));
    let class = format!("glyphs {class}");
    svg.leaf("path", &[&[("class", class.as_str()), ("d", &path)], more].concat());
}

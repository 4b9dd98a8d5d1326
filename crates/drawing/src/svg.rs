//! A writer of well-formed SVG: all texts and attributes are escaped.

use std::fmt::Write as _;

/// A font: texts as outlines, one glyph after the other.
pub trait Glyphs {
    /// Path data that begins at a place, in a size.
    fn path(&self, text: &str, is_bold: bool, size: f64, at: (f64, f64)) -> String;

    /// The width in a size.
    fn width(&self, text: &str, is_bold: bool, size: f64) -> f64;
}

/// SVG text under construction.
#[derive(Default)]
pub(crate) struct Svg<'a> {
    out: String,
    open: Vec<&'static str>,
    /// Draws texts as outlines, for renderers without fonts.
    glyphs: Option<&'a dyn Glyphs>,
}

impl<'a> Svg<'a> {
    /// An empty document; with outlines in place of texts.
    pub(crate) fn new(glyphs: Option<&'a dyn Glyphs>) -> Self {
        Self { glyphs, ..Self::default() }
    }

    /// Opens an element; [`close`](Self::close) ends the innermost.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.out.push('>');
        self.open.push(name);
    }

    /// Ends the innermost open element.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = write!(self.out, "</{name}>");
        }
        self.out.push('\n');
    }

    /// An element without content.
    pub(crate) fn leaf(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.out.push_str("/>\n");
    }

    /// An element whose content is `text`.
    pub(crate) fn with_text(&mut self, name: &'static str, attributes: &[(&str, &str)], text: &str) {
        self.start(name, attributes);
        let _ = writeln!(self.out, ">{}</{name}>", escape(text));
    }

    /// What draws texts as outlines.
    pub(crate) fn glyphs(&self) -> Option<&'a dyn Glyphs> {
        self.glyphs
    }

    /// The text so far, with everything closed.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn start(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.out, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.out, " {key}=\"{}\"", escape(value));
        }
    }
}

/// A length or coordinate with two decimals; values that are not finite become 0.
#[must_use]
pub fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `text` for XML content and for attributes in either quotes. Characters that XML cannot hold become U+FFFD.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' | '\r' => out.push(' '),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_break_the_document() {
        assert_eq!([f64::NAN, f64::INFINITY, -0.001, 1.5, 20.0].map(px), ["0", "0", "0", "1.5", "20"]);
    }

    #[test]
    fn text_cannot_leave_its_place() {
        let mut svg = Svg::default();
        svg.open("g", &[("data", "\"'><script>")]);
        svg.with_text("text", &[], "</text>\u{0}&");
        let text = svg.finish();
        assert_eq!(text.matches('<').count(), 4, "{text}");
        assert!(!text.contains("script>") && !text.contains('\u{0}'), "{text}");
    }
}

//! Texts as outlines of included fonts, so that a picture needs no installed font. One glyph follows the other in the direction of
//! reading from left to right; characters that the fonts do not have are boxes.

use std::fmt::Write as _;
use std::sync::LazyLock;

use drawing::{Glyphs, px};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Noto Sans in two weights.
static REGULAR: LazyLock<Option<Font>> = LazyLock::new(|| Font::read(notosans::REGULAR_TTF));
static BOLD: LazyLock<Option<Font>> = LazyLock::new(|| Font::read(notosans::BOLD_TTF));

/// Draws texts in Noto Sans.
pub(crate) struct NotoSans;

impl Glyphs for NotoSans {
    fn path(&self, text: &str, is_bold: bool, size: f64, (left, base): (f64, f64)) -> String {
        let Some(font) = font(is_bold) else { return String::new() };
        let scale = size / font.units;
        let mut pen = Pen { out: String::new(), scale, left, base };
        for glyph in font.glyphs(text) {
            font.face.outline_glyph(glyph, &mut pen);
            pen.left += font.advance(glyph) * scale;
        }
        pen.out
    }

    fn width(&self, text: &str, is_bold: bool, size: f64) -> f64 {
        let Some(font) = font(is_bold) else { return 0.0 };
        font.glyphs(text).map(|glyph| font.advance(glyph)).sum::<f64>() * size / font.units
    }
}

/// A font that has been read.
struct Font {
    face: Face<'static>,
    /// Of a font's square.
    units: f64,
}

fn font(is_bold: bool) -> Option<&'static Font> {
    if is_bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

impl Font {
    fn read(bytes: &'static [u8]) -> Option<Self> {
        let face = Face::parse(bytes, 0).ok()?;
        Some(Self { units: f64::from(face.units_per_em()), face })
    }

    /// Of the characters that can be seen or have a width.
    fn glyphs(&self, text: &str) -> impl Iterator<Item = GlyphId> {
        let seen = text.chars().filter(|c| !c.is_control() || c.is_whitespace());
        seen.map(|c| self.face.glyph_index(if c.is_control() { ' ' } else { c }).unwrap_or_default())
    }

    /// In units of the font.
    fn advance(&self, glyph: GlyphId) -> f64 {
        f64::from(self.face.glyph_hor_advance(glyph).unwrap_or_default())
    }
}

/// Writes outlines as path data.
struct Pen {
    out: String,
    scale: f64,
    /// Where the glyph begins.
    left: f64,
    base: f64,
}

impl Pen {
    fn to(&mut self, command: char, points: &[(f32, f32)]) {
        self.out.push(command);
        for (index, (x, y)) in points.iter().enumerate() {
            let (x, y) = (self.left + f64::from(*x) * self.scale, self.base - f64::from(*y) * self.scale);
            let gap = if index == 0 { "" } else { " " };
            let _ = write!(self.out, "{gap}{} {}", px(x), px(y));
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.to('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.to('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.to('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.out.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_stand_on_their_line_from_left_to_right() {
        // The stem of a capital I: its height is that of capitals, 0.714 of the size in Noto Sans.
        let stem = NotoSans.path("I", false, 100.0, (10.0, 200.0));
        let numbers = |text: &str| -> Vec<f64> {
            text.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter_map(|part| part.parse().ok()).collect()
        };
        let [xs, ys] = [0, 1].map(|at| numbers(&stem).into_iter().skip(at).step_by(2).collect::<Vec<f64>>());
        assert!(xs.iter().all(|x| (10.0..50.0).contains(x)), "{stem}");
        let (top, bottom) = ys.iter().fold((f64::MAX, 0.0_f64), |(low, high), y| (low.min(*y), high.max(*y)));
        assert!((bottom - 200.0).abs() < 0.01 && (bottom - top - 71.4).abs() < 0.5, "{stem}");
        let two = NotoSans.path("II", false, 100.0, (10.0, 200.0));
        assert!(two.starts_with(&stem) && two.matches('Z').count() == 2 * stem.matches('Z').count());
    }

    #[test]
    fn what_the_font_lacks_is_a_box_and_what_cannot_be_seen_is_nothing() {
        assert!(!NotoSans.path("\u{4e2d}", false, 10.0, (0.0, 0.0)).is_empty());
        assert!(NotoSans.path("\0\u{7}\n ", false, 10.0, (0.0, 0.0)).is_empty());
        assert!((NotoSans.width("\n", false, 10.0) - NotoSans.width(" ", false, 10.0)).abs() < 1e-9);
        assert!(NotoSans.width("bold", true, 20.0) > NotoSans.width("bold", false, 20.0));
    }
}

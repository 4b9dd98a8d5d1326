//! Colours and type of the figures, as style rules.

use std::fmt::Write as _;

use serde::Serialize;

/// The colours of one appearance.
#[derive(Debug, Serialize)]
pub(crate) struct Theme {
    background: &'static str,
    pub(crate) ink: &'static str,
    muted: &'static str,
    pub(crate) grid: &'static str,
    minor: &'static str,
    pub(crate) series: [&'static str; SERIES],
    /// The same colours for names, with enough contrast to be read.
    names: [&'static str; SERIES],
}

/// Number of colours.
pub(crate) const SERIES: usize = 7;

/// The texts of a figure by their class: size, px, and whether they are bold. A title's size is that of its room.
const FACES: [(&str, Option<f64>, bool); 9] = [
    ("title", None, true),
    ("panel", Some(13.0), true),
    ("subtitle", Some(12.5), false),
    ("tick", Some(12.5), false),
    ("axis", Some(13.5), false),
    ("key", Some(13.0), false),
    ("end", Some(13.0), false),
    ("value", Some(12.5), false),
    ("mark", Some(12.5), false),
];

/// Size, px, and weight of the texts of a class: whether they are bold.
pub(super) fn face(class: &str) -> (f64, bool) {
    let known = FACES.iter().find(|(name, ..)| *name == class);
    known.map_or((DEFAULT_SIZE, false), |(_, size, is_bold)| (size.unwrap_or(DEFAULT_SIZE), *is_bold))
}

/// Of texts without a size, px.
const DEFAULT_SIZE: f64 = 16.0;

/// Fonts by preference; the first is that of PNG files.
pub(crate) const FONTS: &str = "'Noto Sans', 'DejaVu Sans', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";

/// On paper and light screens. Source of the series' colours: Okabe and Ito, "Color Universal Design" (2008), which people
/// with any colour vision can distinguish; its yellow is left out because of its low contrast.
pub(crate) const LIGHT: Theme = Theme {
    background: "#ffffff",
    ink: "#1b1f24",
    muted: "#57606a",
    grid: "#d9dee4",
    minor: "#eff2f5",
    series: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"],
    names: ["#005f96", "#a84700", "#00754f", "#9c4a77", "#8a5e00", "#1d6f9c", "#4d4d4d"],
};

/// On dark screens: the same hues, lighter.
pub(crate) const DARK: Theme = Theme {
    background: "#161b22",
    ink: "#e6edf3",
    muted: "#9aa5b1",
    grid: "#353d47",
    minor: "#222932",
    series: ["#4fa8e0", "#ff8a4c", "#2fc99b", "#e79fc9", "#f2b83f", "#a5d8fb", "#c9d1d9"],
    names: ["#4fa8e0", "#ff8a4c", "#2fc99b", "#e79fc9", "#f2b83f", "#a5d8fb", "#c9d1d9"],
};

impl Theme {
    /// The rules for the elements of [`draw`](super::draw), each under `scope` (such as `.figure`, or empty).
    pub(crate) fn rules(&self, scope: &str) -> String {
        let Self { background, ink, muted, grid, minor, series, names } = self;
        let mut css = String::new();
        for (selector, rule) in [
            ("text", format!("font-family:{FONTS};fill:{ink}")),
            (".paper", format!("fill:{background}")),
            (".glyphs", format!("fill:{ink}")),
            (".subtitle", format!("fill:{muted}")),
            (".tick", format!("fill:{muted}")),
            (".grid", format!("stroke:{grid};stroke-width:1;fill:none")),
            (".minor", format!("stroke:{minor};stroke-width:1;fill:none")),
            (".frame", format!("stroke:{muted};stroke-width:1.2;fill:none")),
            (
                ".line",
                "stroke:currentColor;stroke-width:1.8;fill:none;stroke-linejoin:round;stroke-linecap:round".into(),
            ),
            (".ceiling", "stroke:currentColor;stroke-width:1.1;fill:none;stroke-dasharray:6 4".to_owned()),
            (".faint", format!("stroke:{grid};stroke-width:1.2;fill:none")),
            (".tail", "stroke:currentColor;stroke-width:1;fill:none;stroke-opacity:0.6".to_owned()),
            (".exit", "fill:currentColor;stroke:none".to_owned()),
            (".hollow", format!("fill:{background};stroke:currentColor;stroke-width:1.5")),
            (".box", format!("fill:{background};stroke:{ink};stroke-width:1.4")),
            (".wire", format!("stroke:{muted};stroke-width:1.6;fill:none")),
            (".bar", "stroke:currentColor;stroke-width:1.3;fill:none".to_owned()),
            (".band", "fill:currentColor;fill-opacity:0.22;stroke:none".to_owned()),
            (".segment", format!("fill:currentColor;stroke:{background};stroke-width:0.6")),
            (".dot", format!("fill:currentColor;stroke:{background};stroke-width:0.6")),
            (".stroke", "fill:none;stroke:currentColor;stroke-width:1.7".to_owned()),
            (".ring", format!("fill:{background};stroke:{ink};stroke-width:1.8")),
            (".lead", format!("stroke:{ink};stroke-width:1;fill:none")),
            (".note", format!("fill:{background};fill-opacity:0.88;stroke:{grid};stroke-width:1")),
        ] {
            let _ = writeln!(css, "{scope} {selector}{{{rule}}}");
        }
        for (class, size, is_bold) in FACES {
            let size = size.map_or(String::new(), |size| format!("font-size:{size}px;"));
            let weight = if is_bold { "font-weight:bold" } else { "" };
            let _ = writeln!(css, "{scope} .{class}{{{size}{weight}}}");
        }
        for (dash, pattern) in [(1, "7 4"), (2, "2 4"), (3, "9 3 2 3")] {
            let _ = writeln!(css, "{scope} .d{dash} .line{{stroke-dasharray:{pattern}}}");
        }
        for (index, colour) in series.iter().enumerate() {
            let _ = writeln!(css, "{scope} .s{index}{{color:{colour}}}");
        }
        for (index, colour) in names.iter().enumerate() {
            let _ = writeln!(css, "{scope} .s{index} .end{{fill:{colour}}}");
        }
        css
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn names_and_texts_have_the_contrast_that_reading_needs() {
        for theme in [&LIGHT, &DARK] {
            for colour in theme.names.iter().chain([&theme.ink, &theme.muted]) {
                let (a, b) = (luminance(colour), luminance(theme.background));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{colour} on {}: {contrast:.2}", theme.background);
            }
        }
    }
}

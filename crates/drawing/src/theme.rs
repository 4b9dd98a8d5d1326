//! Colours and type of the figures, as style rules.

use std::fmt::Write as _;

use serde::Serialize;

/// The colours of one appearance.
#[derive(Debug, Serialize)]
pub struct Theme {
    background: &'static str,
    /// Of texts.
    pub ink: &'static str,
    muted: &'static str,
    /// Of lines at ticks.
    pub grid: &'static str,
    minor: &'static str,
    /// Of series.
    pub series: [&'static str; SERIES],
    /// The same colours for names, with enough contrast to be read.
    names: [&'static str; SERIES],
}

/// Number of colours.
pub const SERIES: usize = 7;

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
pub(crate) fn face(class: &str) -> (f64, bool) {
    let class = class.split(' ').next();
    let known = FACES.iter().find(|(name, ..)| Some(*name) == class);
    known.map_or((DEFAULT_SIZE, false), |(_, size, is_bold)| (size.unwrap_or(DEFAULT_SIZE), *is_bold))
}

/// Of texts without a size, px.
const DEFAULT_SIZE: f64 = 16.0;

/// Fonts by preference; the first is that of PNG files.
pub const FONTS: &str = "'Noto Sans', 'DejaVu Sans', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";

/// On paper and light screens. The colours of the series were searched for: each has a contrast of at least 3:1 to the background (WCAG
/// 2.2, 1.4.11), and any two differ for any colour vision by more than the closest two of Okabe and Ito, "Color Universal Design" (2008),
/// whose amber and sky blue are too light for lines on white.
pub const LIGHT: Theme = Theme {
    background: "#ffffff",
    ink: "#1b1f24",
    muted: "#57606a",
    grid: "#d9dee4",
    minor: "#eff2f5",
    series: ["#0f3aa7", "#a92f0e", "#04a154", "#d86697", "#b68d00", "#1a70ff", "#3d3d3d"],
    names: ["#0f3aa7", "#a92f0e", "#007a3d", "#b0366c", "#7f6200", "#0f5ad6", "#3d3d3d"],
};

/// On dark screens: the same hues, lighter.
pub const DARK: Theme = Theme {
    background: "#161b22",
    ink: "#e6edf3",
    muted: "#9aa5b1",
    grid: "#353d47",
    minor: "#222932",
    series: ["#4b94d4", "#eb7d4b", "#19dd98", "#ee8fbf", "#d7c32a", "#a4dffe", "#e4ede0"],
    names: ["#4b94d4", "#eb7d4b", "#19dd98", "#ee8fbf", "#d7c32a", "#a4dffe", "#e4ede0"],
};

impl Theme {
    /// The rules for the elements of [`draw`](super::draw), each under `scope` (such as `.figure`, or empty).
    #[must_use]
    pub fn rules(&self, scope: &str) -> String {
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
            (".value.dark", format!("fill:{}", LIGHT.ink)),
            (".value.light", "fill:#ffffff".to_owned()),
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

    /// The light of the part of a colour that is at this place of its name.
    fn linear(colour: &str, at: usize) -> f64 {
        let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    }

    /// Relative luminance (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        0.2126 * linear(colour, 1) + 0.7152 * linear(colour, 3) + 0.0722 * linear(colour, 5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn names_and_texts_have_the_contrast_that_reading_needs() {
        for theme in [&LIGHT, &DARK] {
            for colour in theme.names.iter().chain([&theme.ink, &theme.muted]) {
                let contrast = contrast(colour, theme.background);
                assert!(contrast >= 4.5, "{colour} on {}: {contrast:.2}", theme.background);
            }
        }
    }

    #[test]
    fn lines_have_the_contrast_that_seeing_them_needs() {
        for theme in [&LIGHT, &DARK] {
            for colour in theme.series {
                let contrast = contrast(colour, theme.background);
                assert!(contrast >= 3.0, "{colour} on {}: {contrast:.2}", theme.background);
            }
        }
    }

    /// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009): none, and wholly
    /// without one of the three kinds of cones.
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    /// A colour as it is seen, in CIELAB, where distances are those that people notice.
    fn seen(colour: &str, vision: &[[f64; 3]; 3]) -> [f64; 3] {
        let light = [1, 3, 5].map(|at| linear(colour, at));
        let [red, green, blue] =
            vision.map(|row| row.iter().zip(light).map(|(part, light)| part * light).sum::<f64>().clamp(0.0, 1.0));
        let curve = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = curve((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505);
        let y = curve(0.2126 * red + 0.7152 * green + 0.0722 * blue);
        let z = curve((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn any_two_colours_differ_for_any_colour_vision() {
        for theme in [&LIGHT, &DARK] {
            for vision in &VISIONS {
                let all = theme.series.map(|colour| seen(colour, vision));
                for (at, one) in all.iter().enumerate() {
                    for (before, other) in all[..at].iter().enumerate() {
                        let distance = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(distance > 20.0, "{} and {}: {distance:.1}", theme.series[at], theme.series[before]);
                    }
                }
            }
        }
    }
}

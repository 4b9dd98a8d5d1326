//! A matrix: a colour and a number for each pair; of many hosts an image with a pixel for each pair.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Figure, Matrix, MatrixCell};
use text::RateUnit;

use crate::image::Image;
use crate::layout::{Layout, is_dense};
use crate::plot::{Plot, Rect};
use crate::svg::{Svg, px};
use crate::text_width::text_width;
use crate::ticks::prefix;
use crate::{Use, line, text};

/// The colours from the lowest to the highest value, light to dark, which remain ordered in grey and for any colour vision (the
/// blues of ColorBrewer, without the lightest, which paper would hide).
const RAMP: [[f64; 3]; 5] =
    [[222.0, 235.0, 247.0], [158.0, 202.0, 225.0], [107.0, 174.0, 214.0], [33.0, 113.0, 181.0], [8.0, 48.0, 107.0]];

/// The colours of standings from far worse to far better, by way of usual, which any colour vision tells apart (the oranges and blues of
/// ColorBrewer).
const STANDINGS: [[f64; 3]; 7] = [
    [140.0, 45.0, 4.0],
    [230.0, 97.0, 1.0],
    [253.0, 184.0, 99.0],
    [236.0, 238.0, 241.0],
    [158.0, 202.0, 225.0],
    [49.0, 130.0, 189.0],
    [8.0, 69.0, 148.0],
];

/// Most pixels for each unit of the layout in an SVG file. Screens have up to two; the others show when it is enlarged.
const SHARP: f64 = 4.0;

/// From this share of the range on, a cell is so dark that its number is light.
pub const DARK: f64 = 0.55;

/// The colours of the scale from its lowest to its highest value, at equal distances.
#[must_use]
pub fn colours() -> Vec<String> {
    RAMP.iter().map(|rgb| hex(rgb.map(|part| part as u8))).collect()
}

/// How the values of a matrix become colours.
struct Colours {
    low: f64,
    high: f64,
    /// Whether colours show standings.
    by_standing: bool,
}

impl Colours {
    fn of(matrix: &Matrix) -> Self {
        let (low, high) = range(matrix);
        Self { low, high, by_standing: !matrix.usual.is_empty() }
    }

    /// The place of a cell on the scale, from 0 to 1.
    fn share(&self, cell: &MatrixCell) -> f64 {
        if self.by_standing {
            (cell.standing.clamp(-1.0, 1.0) + 1.0) / 2.0
        } else {
            share(cell.value, self.low, self.high)
        }
    }

    fn rgb(&self, share: f64) -> [u8; 3] {
        if self.by_standing { mixed(&STANDINGS, share) } else { mixed(&RAMP, share) }
    }

    /// Whether a number on this colour is light.
    fn is_dark(&self, share: f64) -> bool {
        if self.by_standing { (share - 0.5).abs() > DARK_STANDING } else { share > DARK }
    }
}

/// How far from the middle of the scale a cell is so dark.
const DARK_STANDING: f64 = 0.32;

/// The lowest and the highest value; infinite without any.
#[must_use]
pub fn range(matrix: &Matrix) -> (f64, f64) {
    let values = matrix.cells.iter().map(|cell| cell.value).filter(|value| value.is_finite());
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The divisor of the values, and what they are with their unit.
#[must_use]
pub fn title(matrix: &Matrix, rates: RateUnit) -> (f64, String) {
    let (factor, unit) = prefix(range(matrix).1, &matrix.unit, rates);
    (factor, if unit.is_empty() { matrix.label.clone() } else { format!("{} ({unit})", matrix.label) })
}

/// The cells of all panels, and the scale.
pub(crate) fn draw(svg: &mut Svg<'_>, layout: &Layout, figure: &Figure, matrix: &Matrix, usage: Use<'_>) {
    let colours = Colours::of(matrix);
    let (low, high) = (colours.low, colours.high);
    let (factor, title) = title(matrix, layout.rates);
    for (frame, pixels) in images(layout, figure, matrix, SHARP) {
        // The renderer of pictures is without images.
        let Some(png) = pixels.png().filter(|_| !matches!(usage, Use::Picture(_))) else { continue };
        let (x, y) = (px(frame.left), px(frame.top));
        let (width, height) = (px(frame.right - frame.left), px(frame.bottom - frame.top));
        let data = format!("data:image/png;base64,{}", STANDARD.encode(png));
        let attributes = [("x", x.as_str()), ("y", &y), ("width", &width), ("height", &height)];
        // Pixels have sharp edges; of more of them than units a viewer would leave some out.
        let wide = pixels.width as f64 > frame.right - frame.left;
        let rendering = if wide { "auto" } else { "optimizeSpeed" };
        let look = [("preserveAspectRatio", "none"), ("image-rendering", rendering), ("href", &data)];
        svg.leaf("image", &[attributes.as_slice(), &look].concat());
    }
    for (panel, plot) in layout.plots.iter().enumerate().filter(|_| !is_dense(figure)) {
        for cell in matrix.cells.iter().filter(|cell| cell.panel == panel) {
            one(svg, plot, cell, &colours, &number(cell.value / factor));
        }
        borders(svg, plot, figure);
    }
    if low <= high {
        let ends = [number(low / factor), number(high / factor)];
        scale(svg, layout, &explained(matrix, &title, factor), ends, &colours, matrix.unit == "ns");
    }
}

/// The frame of each panel of a matrix of many hosts, and what fills it: a pixel for each pair, or with more pairs than pixels, where a
/// unit of the layout has `scale` of them, the mean of those that share one. Empty for other figures.
pub(crate) fn images(layout: &Layout, figure: &Figure, matrix: &Matrix, scale: f64) -> Vec<(Rect, Image)> {
    if !is_dense(figure) {
        return Vec::new();
    }
    let colours = Colours::of(matrix);
    let (columns, rows) = (figure.x.ticks.len(), figure.y.ticks.len());
    let image = |(panel, plot): (usize, &Plot)| {
        let size = |hosts: usize, length: f64| hosts.min((length * scale).round().max(1.0) as usize);
        let width = size(columns, plot.frame.right - plot.frame.left);
        let height = size(rows, plot.frame.bottom - plot.frame.top);
        let mut means = vec![(0.0, 0.0); width * height];
        for cell in matrix.cells.iter().filter(|cell| cell.panel == panel && cell.value.is_finite()) {
            if cell.column < columns && cell.row < rows {
                let (sum, count) = &mut means[cell.row * height / rows * width + cell.column * width / columns];
                *sum += colours.share(cell);
                *count += 1.0;
            }
        }
        // A picture needs no more levels than the palette of its file has.
        let level = |share: f64| (share * f64::from(Image::COLOURS - 1)).round() / f64::from(Image::COLOURS - 1);
        let pixel = |(sum, count): (f64, f64)| (count > 0.0).then(|| colours.rgb(level(sum / count)));
        (plot.frame, Image { width, pixels: means.into_iter().map(pixel).collect() })
    };
    layout.plots.iter().enumerate().map(image).collect()
}

fn share(value: f64, low: f64, high: f64) -> f64 {
    if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.3 }
}

/// Three digits.
fn number(value: f64) -> String {
    model::units::three_digits(value)
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The colour at a share of a scale.
fn mixed(scale: &[[f64; 3]], share: f64) -> [u8; 3] {
    let at = share * (scale.len() - 1) as f64;
    let index = (at.floor() as usize).min(scale.len() - 2);
    let (from, to, part) = (scale[index], scale[index + 1], at - index as f64);
    [0, 1, 2].map(|n| (from[n] + part * (to[n] - from[n])).round() as u8)
}

/// Lines between the groups of both axes.
fn borders(svg: &mut Svg<'_>, plot: &Plot, figure: &Figure) {
    let ends = |groups: &[(String, usize)]| -> Vec<f64> {
        let sums = groups.iter().scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum as f64 - 0.5)
        });
        sums.take(groups.len().saturating_sub(1)).collect()
    };
    let frame = plot.frame;
    for x in ends(&figure.x.groups).into_iter().filter_map(|at| plot.x.position(at)).map(|share| plot.across(share)) {
        line(svg, "frame", (x, frame.top), (x, frame.bottom));
    }
    for y in ends(&figure.y.groups).into_iter().filter_map(|at| plot.y.position(at)).map(|share| plot.down(share)) {
        line(svg, "frame", (frame.left, y), (frame.right, y));
    }
}

fn one(svg: &mut Svg<'_>, plot: &Plot, cell: &MatrixCell, colours: &Colours, number: &str) {
    let share = colours.share(cell);
    let (column, row) = (cell.column as f64, cell.row as f64);
    let corners = [plot.at(column - 0.5, row - 0.5), plot.at(column + 0.5, row + 0.5)];
    let [Some((left, top)), Some((right, bottom))] = corners else { return };
    let (x, y) = (px(left + 1.0), px(top + 1.0));
    let (width, height) = (px(right - left - 2.0), px(bottom - top - 2.0));
    let fill = hex(colours.rgb(share));
    svg.leaf("rect", &[("x", &x), ("y", &y), ("width", &width), ("height", &height), ("fill", &fill)]);
    if text_width(number, 12.5) * 1.1 + 4.0 <= right - left && bottom - top >= 16.0 {
        let class = if colours.is_dark(share) { "value light" } else { "value dark" };
        let (x, y) = (px((left + right) / 2.0), px((top + bottom) / 2.0 + 4.5));
        text(svg, class, &x, &y, "middle", number);
    }
}

/// Names the values and says which of them are usual.
fn explained(matrix: &Matrix, title: &str, factor: f64) -> String {
    match matrix.usual.as_slice() {
        [] => title.to_owned(),
        [[low, high]] => format!("{title}: grey is usual, {} to {}", number(low / factor), number(high / factor)),
        _ => format!("{title}: grey is usual in its panel"),
    }
}

/// The colours from lowest to highest, with both values and what they are.
fn scale(
    svg: &mut Svg<'_>,
    layout: &Layout,
    title: &str,
    [low, high]: [String; 2],
    colours: &Colours,
    low_is_good: bool,
) {
    const STEPS: usize = 40;
    let width = (layout.width * 0.4).min(260.0);
    let left = layout.head.edge + 8.0 + text_width(&low, 12.5) * 1.1;
    let top = layout.below() - 10.0;
    text(svg, "tick", &px(left - 6.0), &px(top + 11.0), "end", &low);
    for step in 0..STEPS {
        let share = step as f64 / (STEPS - 1) as f64;
        // The lowest value is at the left, be it good or bad.
        let turned = colours.by_standing && low_is_good;
        let fill = hex(colours.rgb(if turned { 1.0 - share } else { share }));
        let x = px(left + width * step as f64 / STEPS as f64);
        let part = px(width / STEPS as f64 + 0.5);
        svg.leaf("rect", &[("x", &x), ("y", &px(top)), ("width", &part), ("height", "14"), ("fill", &fill)]);
    }
    text(svg, "tick", &px(left + width + 6.0), &px(top + 11.0), "start", &high);
    text(svg, "key", &px(layout.head.edge), &px(top + 32.0), "start", title);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sheet;

    #[test]
    fn higher_values_are_darker() {
        let light = |share: f64| mixed(&RAMP, share).map(u32::from).iter().sum::<u32>();
        let all: Vec<u32> = (0..=20).map(|n| light(f64::from(n) / 20.0)).collect();
        assert!(all.windows(2).all(|pair| pair[0] > pair[1]), "{all:?}");
        assert_eq!(share(5.0, 5.0, 5.0), 0.3);
    }

    fn pixel(image: &Image, x: usize, y: usize) -> Option<[u8; 3]> {
        image.pixels[y * image.width + x]
    }

    #[test]
    fn many_hosts_are_an_image_with_a_pixel_for_each_pair() {
        let figure = crate::testing::matrix_of(300);
        let layout = Layout::new(&figure, Sheet::new(960.0));
        let (frame, pixels) = images(&layout, &figure, figure.matrix.as_ref().unwrap(), 1.0).remove(0);
        assert_eq!((pixels.width, pixels.pixels.len() / pixels.width), (300, 300));
        let at = |x, y| pixel(&pixels, x, y);
        assert_eq!(
            (at(7, 7), at(0, 1), at(298, 299)),
            (None, Some(mixed(&RAMP, 0.0)), Some(mixed(&RAMP, 1.0))),
            "no host measures to itself"
        );
        assert!((frame.right - frame.left - (frame.bottom - frame.top)).abs() < 1.0, "{frame:?}");
        let svg = crate::draw(&figure, Use::File, Sheet::new(960.0)).svg;
        assert_eq!(svg.matches("<image ").count(), 1);
        assert!(svg.matches("class=\"tick\"").count() < 120 && svg.len() < 1_000_000, "{}", svg.len());
    }

    #[test]
    fn pairs_that_share_a_pixel_have_the_colour_of_their_mean() {
        let mut figure = crate::testing::matrix_of(300);
        let layout = Layout::new(&figure, Sheet::new(960.0));
        let frame = layout.plots[0].frame;
        let matrix = figure.matrix.as_mut().unwrap();
        for cell in &mut matrix.cells {
            // One slow sender, which shares its pixels with another one.
            cell.value = if cell.row == 100 { 0.0 } else { 8.0 };
        }
        let scale = 150.0 / (frame.right - frame.left).max(frame.bottom - frame.top);
        let (_, pixels) = images(&layout, &figure, figure.matrix.as_ref().unwrap(), scale).remove(0);
        assert_eq!((pixels.width, pixels.pixels.len() / pixels.width), (150, 150));
        let at = |x, y| pixel(&pixels, x, y);
        assert_eq!(
            (at(20, 49), at(20, 50), at(20, 51)),
            (Some(mixed(&RAMP, 1.0)), Some(mixed(&RAMP, 127.0 / 253.0)), Some(mixed(&RAMP, 1.0)))
        );
        assert_eq!(at(70, 70), Some(mixed(&RAMP, 1.0)), "two of its four pairs are no pairs");
    }
}

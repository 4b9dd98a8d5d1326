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
use crate::{Use, text};

/// The colours from the lowest to the highest value, light to dark, which remain ordered in grey and for any colour vision (the
/// blues of ColorBrewer, without the lightest, which paper would hide).
const RAMP: [[f64; 3]; 5] =
    [[222.0, 235.0, 247.0], [158.0, 202.0, 225.0], [107.0, 174.0, 214.0], [33.0, 113.0, 181.0], [8.0, 48.0, 107.0]];

/// Most pixels for each unit of the layout in an SVG file. Screens have up to two; the others show when it is enlarged.
const SHARP: f64 = 4.0;

/// From this share of the range on, a cell is so dark that its number is light.
pub const DARK: f64 = 0.55;

/// The colours of the scale from its lowest to its highest value, at equal distances.
#[must_use]
pub fn colours() -> [String; RAMP.len()] {
    std::array::from_fn(|index| colour(index as f64 / (RAMP.len() - 1) as f64))
}

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
    let (low, high) = range(matrix);
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
            one(svg, plot, cell, share(cell.value, low, high), &number(cell.value / factor));
        }
    }
    if low <= high {
        scale(svg, layout, &title, [number(low / factor), number(high / factor)]);
    }
}

/// The frame of each panel of a matrix of many hosts, and what fills it: a pixel for each pair, or with more pairs than pixels, where a
/// unit of the layout has `scale` of them, the mean of those that share one. Empty for other figures.
pub(crate) fn images(layout: &Layout, figure: &Figure, matrix: &Matrix, scale: f64) -> Vec<(Rect, Image)> {
    if !is_dense(figure) {
        return Vec::new();
    }
    let (low, high) = range(matrix);
    let (columns, rows) = (figure.x.ticks.len(), figure.y.ticks.len());
    let image = |(panel, plot): (usize, &Plot)| {
        let size = |hosts: usize, length: f64| hosts.min((length * scale).round().max(1.0) as usize);
        let width = size(columns, plot.frame.right - plot.frame.left);
        let height = size(rows, plot.frame.bottom - plot.frame.top);
        let mut means = vec![(0.0, 0.0); width * height];
        for cell in matrix.cells.iter().filter(|cell| cell.panel == panel && cell.value.is_finite()) {
            if cell.column < columns && cell.row < rows {
                let (sum, count) = &mut means[cell.row * height / rows * width + cell.column * width / columns];
                *sum += cell.value;
                *count += 1.0;
            }
        }
        // A picture needs no more levels than the palette of its file has.
        let level = |share: f64| (share * f64::from(Image::COLOURS - 1)).round() / f64::from(Image::COLOURS - 1);
        let pixel = |(sum, count): (f64, f64)| (count > 0.0).then(|| rgb(level(share(sum / count, low, high))));
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

/// The colour of a share of the range.
fn colour(share: f64) -> String {
    let [red, green, blue] = rgb(share);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn rgb(share: f64) -> [u8; 3] {
    let at = share * (RAMP.len() - 1) as f64;
    let index = (at.floor() as usize).min(RAMP.len() - 2);
    let (from, to, part) = (RAMP[index], RAMP[index + 1], at - index as f64);
    [0, 1, 2].map(|n| (from[n] + part * (to[n] - from[n])).round() as u8)
}

fn one(svg: &mut Svg<'_>, plot: &Plot, cell: &MatrixCell, share: f64, number: &str) {
    let (column, row) = (cell.column as f64, cell.row as f64);
    let corners = [plot.at(column - 0.5, row - 0.5), plot.at(column + 0.5, row + 0.5)];
    let [Some((left, top)), Some((right, bottom))] = corners else { return };
    let (x, y) = (px(left + 1.0), px(top + 1.0));
    let (width, height) = (px(right - left - 2.0), px(bottom - top - 2.0));
    let fill = colour(share);
    svg.leaf("rect", &[("x", &x), ("y", &y), ("width", &width), ("height", &height), ("fill", &fill)]);
    if text_width(number, 12.5) * 1.1 + 4.0 <= right - left && bottom - top >= 16.0 {
        let class = if share > DARK { "value light" } else { "value dark" };
        let (x, y) = (px((left + right) / 2.0), px((top + bottom) / 2.0 + 4.5));
        text(svg, class, &x, &y, "middle", number);
    }
}

/// The colours from lowest to highest, with both values and what they are.
fn scale(svg: &mut Svg<'_>, layout: &Layout, title: &str, [low, high]: [String; 2]) {
    const STEPS: usize = 40;
    let width = (layout.width * 0.4).min(260.0);
    let left = layout.head.edge + 8.0 + text_width(&low, 12.5) * 1.1;
    let top = layout.below() - 10.0;
    text(svg, "tick", &px(left - 6.0), &px(top + 11.0), "end", &low);
    for step in 0..STEPS {
        let (x, fill) = (px(left + width * step as f64 / STEPS as f64), colour(step as f64 / (STEPS - 1) as f64));
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
        let light = |share: f64| {
            let text = colour(share);
            (0..3).map(|n| u32::from_str_radix(&text[1 + 2 * n..3 + 2 * n], 16).unwrap()).sum::<u32>()
        };
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
            (None, Some(rgb(0.0)), Some(rgb(1.0))),
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
        assert_eq!((at(20, 49), at(20, 50), at(20, 51)), (Some(rgb(1.0)), Some(rgb(127.0 / 253.0)), Some(rgb(1.0))));
        assert_eq!(at(70, 70), Some(rgb(1.0)), "two of its four pairs are no pairs");
    }
}

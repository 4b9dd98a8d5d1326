//! A figure in Braille characters, each of two by four dots.

use model::{Figure, Scale};
use text::RateUnit;

use drawing::span::Span;
use drawing::ticks::Ticks;

/// Dots of a Braille cell by column and row, as bits above U+2800 (the Unicode standard's dot numbering).
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
const EDGE: usize = 13;

/// Of several lines, the first is solid and each further one has its dots this many columns of dots further apart.
const SPARSER: i64 = 3;

/// Draws all series of `figure` except ceilings in `columns` by `rows` characters, with axes, and with a legend if there are several;
/// empty if no point can be shown, if there is no room, and for categories and small multiples.
pub(super) fn plot(figure: &Figure, columns: usize, rows: usize) -> String {
    // A ceiling would need a second kind of line.
    let series = || figure.series.iter().filter(|series| !series.reference);
    let points = || series().flat_map(|series| &series.points);
    let shown = |x: f64, y: f64| Span::drawable(figure.x.scale, x) && Span::drawable(figure.y.scale, y);
    let inside = || points().filter(|point| shown(point.x, point.y));
    // Lines between categories would mean nothing, and the lines of several panels could not be told from each other.
    if figure.x.scale == Scale::Names || figure.panels.len() > 1 {
        return String::new();
    }
    if columns < EDGE + 20 || rows < 4 || inside().next().is_none() {
        return String::new();
    }
    let x = Span::fit(figure.x.scale, inside().map(|point| point.x), 0.0);
    let y = Span::fit(figure.y.scale, inside().map(|point| point.y), 0.02);
    let mut canvas = Canvas::new(columns - EDGE - 2, rows);
    for (number, series) in (0..).zip(series()) {
        let mut before = None;
        for point in &series.points {
            let dot = x.clamped(point.x).zip(y.clamped(point.y)).map(|(x, y)| canvas.dot(x, y));
            if let Some(here) = dot {
                canvas.line(before.unwrap_or(here), here, 1 + number * SPARSER);
            }
            before = dot;
        }
    }
    let x_ticks = Ticks::new(&figure.x, &x, canvas.width / 12, RateUnit::Bits);
    let y_ticks = Ticks::new(&figure.y, &y, rows / 2, RateUnit::Bits);
    let names: Vec<&str> = series().map(|series| series.name.as_str()).collect();
    let mut text = format!("{:>EDGE$}{}\n", y_ticks.title, legend(&names));
    let mut labels = vec![""; rows];
    for (value, label) in &y_ticks.major {
        if let Some(share) = y.position(*value).filter(|share| (0.0..=1.0).contains(share)) {
            labels[((1.0 - share) * (rows - 1) as f64).round() as usize] = label;
        }
    }
    for (row, label) in labels.iter().enumerate() {
        let axis = if label.is_empty() { '│' } else { '┤' };
        text.push_str(&format!("{label:>EDGE$} {axis}{}\n", canvas.row(row)));
    }
    text.push_str(&below(&x, &x_ticks, canvas.width));
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The names of several lines, each behind a piece of its line.
fn legend(names: &[&str]) -> String {
    if names.len() < 2 {
        return String::new();
    }
    let of = |(number, name): (i64, &&str)| {
        let mut canvas = Canvas::new(6, 1);
        canvas.line((0, 2), (11, 2), 1 + number * SPARSER);
        format!("   {} {name}", canvas.row(0))
    };
    (0..).zip(names).map(of).collect()
}

/// The horizontal axis with its ticks, their texts and its title.
fn below(x: &Span, ticks: &Ticks, width: usize) -> String {
    let mut axis = vec!['─'; width];
    let mut labels = vec![' '; width + 12];
    let mut free = 0;
    for (value, label) in &ticks.major {
        let Some(share) = x.position(*value).filter(|share| (0.0..=1.0).contains(share)) else { continue };
        let at = (share * (width - 1) as f64).round() as usize;
        axis[at] = '┬';
        let length = label.chars().count();
        let start = at.saturating_sub(length / 2).min(width + 12 - length.min(width + 12));
        if start >= free {
            labels.splice(start..start + length, label.chars());
            free = start + length + 1;
        }
    }
    let labels: String = labels.into_iter().collect();
    let left = " ".repeat(EDGE + 1);
    let axis: String = axis.into_iter().collect();
    let title = if ticks.title.is_empty() { String::new() } else { format!("{left} {:^width$}\n", ticks.title) };
    format!("{left}└{axis}\n{left} {}\n{title}", labels.trim_end())
}

struct Canvas {
    width: usize,
    height: usize,
    cells: Vec<u32>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![0; width * height] }
    }

    /// The dot at shares of the width and of the height (from below).
    fn dot(&self, x: f64, y: f64) -> (i64, i64) {
        let (right, bottom) = (self.width * 2 - 1, self.height * 4 - 1);
        ((x * right as f64).round() as i64, ((1.0 - y) * bottom as f64).round() as i64)
    }

    /// A line with a dot at every so many columns of dots.
    fn line(&mut self, (x0, y0): (i64, i64), (x1, y1): (i64, i64), every: i64) {
        let steps = (x1 - x0).abs().max((y1 - y0).abs()).max(1);
        for step in 0..=steps {
            let x = x0 + (x1 - x0) * step / steps;
            if x % every == 0 {
                self.set(x, y0 + (y1 - y0) * step / steps);
            }
        }
    }

    fn set(&mut self, x: i64, y: i64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if let Some(cell) = self.cells.get_mut(y / 4 * self.width + x / 2).filter(|_| x < self.width * 2) {
            *cell |= DOTS[x % 2][y % 4];
        }
    }

    fn row(&self, row: usize) -> String {
        let cells = &self.cells[row * self.width..(row + 1) * self.width];
        let text: String = cells
            .iter()
            .map(|dots| if *dots == 0 { ' ' } else { char::from_u32(0x2800 + dots).unwrap_or(' ') })
            .collect();
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn categories_and_small_multiples_are_not_drawn_in_characters() {
        let drawn = |runs: &[model::Run]| -> Vec<bool> {
            crate::figures(runs).iter().map(|figure| !plot(figure, 80, 10).is_empty()).collect()
        };
        assert_eq!(drawn(&[sample::categories()]), [false, true, false]);
        assert_eq!(drawn(&[sample::stream()]), [true, false]);
    }
}

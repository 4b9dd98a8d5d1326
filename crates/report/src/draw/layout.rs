//! The layout of a figure. Lengths are in the figure's units, pixels at its natural size.

use model::Figure;

use super::span::Span;
use super::text_width::{fit, text_width, wrap};
use super::ticks::Ticks;

/// Width of every figure.
pub(crate) const WIDTH: f64 = 960.0;
const EDGE: f64 = 22.0;
const PLOT_HEIGHT: f64 = 400.0;
/// Room between two legend rows.
pub(crate) const ROW: f64 = 22.0;
/// Length of the sample line in the legend.
pub(crate) const SAMPLE: f64 = 30.0;

/// The part of a line between two neighbouring points.
pub(crate) type Segment = ((f64, f64), (f64, f64));

/// A rectangle by its edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    /// The rectangle with `by` more on every side.
    pub(crate) fn grown(&self, by: f64) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    pub(crate) fn holds(&self, inner: &Self) -> bool {
        self.left <= inner.left && self.right >= inner.right && self.top <= inner.top && self.bottom >= inner.bottom
    }
}

/// A legend entry: its series, its text and the left end of its sample line.
pub(crate) struct Key {
    pub(crate) series: usize,
    pub(crate) text: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The layout of one figure.
pub(crate) struct Layout {
    pub(crate) height: f64,
    pub(crate) title: String,
    pub(crate) subtitle: Vec<String>,
    /// The area within the axes.
    pub(crate) frame: Rect,
    pub(crate) x: Span,
    pub(crate) y: Span,
    pub(crate) x_ticks: Ticks,
    pub(crate) y_ticks: Ticks,
    pub(crate) keys: Vec<Key>,
}

impl Layout {
    /// Lays `figure` out.
    pub(crate) fn new(figure: &Figure) -> Self {
        let (x, y) = spans(figure);
        let y_ticks = Ticks::new(&figure.y, &y, if y.scale == model::Scale::Log { 10 } else { 8 });
        let widest = y_ticks.major.iter().map(|(_, text)| text_width(text, 12.5)).fold(0.0, f64::max);
        // The axis' label, the ticks' texts with a margin for wider fonts, and the gap before the frame.
        let left = EDGE + 22.0 + (widest * 1.15).max(24.0) + 10.0;
        let right = WIDTH - EDGE - 12.0;
        // The widest text decides how many fit; none is wider than that of a large block size.
        let x_ticks = Ticks::new(&figure.x, &x, ((right - left) / 66.0) as usize);
        let subtitle = wrap(&figure.subtitle, 12.5, (WIDTH - 2.0 * EDGE) / 1.12, 2);
        let top = 62.0 + 17.0 * subtitle.len() as f64;
        let frame = Rect { left, top, right, bottom: top + PLOT_HEIGHT };
        let (keys, rows) = legend(figure, frame.bottom + 74.0);
        let height = frame.bottom + 74.0 + ROW * rows as f64 + 4.0;
        let title = fit(&figure.title, 19.0 * 1.08, WIDTH - 2.0 * EDGE);
        Self { height, title, subtitle, frame, x, y, x_ticks, y_ticks, keys }
    }

    /// Left edge of the texts above the plot.
    pub(crate) const LEFT: f64 = EDGE;

    /// The coordinates of a point in the figure; `None` if an axis cannot show it.
    pub(crate) fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(self.x.position(x)?), self.down(self.y.position(y)?)))
    }

    /// The height of an interval's end, limited to the frame; `None` for NaN.
    pub(crate) fn edge(&self, y: f64) -> Option<f64> {
        if y.is_nan() {
            return None;
        }
        let beyond = if y > 0.0 { 1.0 } else { 0.0 };
        Some(self.down(self.y.clamped(y).unwrap_or(beyond)))
    }

    pub(crate) fn across(&self, share: f64) -> f64 {
        self.frame.left + share * (self.frame.right - self.frame.left)
    }

    pub(crate) fn down(&self, share: f64) -> f64 {
        self.frame.bottom - share * (self.frame.bottom - self.frame.top)
    }
}

/// The ranges of both axes: all points, and the intervals unless they are far wider than the values.
fn spans(figure: &Figure) -> (Span, Span) {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let shown =
        |point: &&model::Point| Span::drawable(figure.x.scale, point.x) && Span::drawable(figure.y.scale, point.y);
    let xs = points().filter(shown).map(|point| point.x);
    let ys = || points().filter(shown).map(|point| point.y);
    let (low, high) = ys().fold((f64::INFINITY, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    let sensible = |end: &f64| *end >= low / 3.0 && *end <= high * 1.5;
    let stacked = figure.series.iter().any(|series| series.stacked);
    let ends = points().filter(shown).flat_map(|point| [point.low, point.high]).flatten();
    let ends = ends.filter(|end| stacked || sensible(end));
    // Around the bars of a single size, the ticks of a narrow logarithmic axis would be parts of a byte.
    let room = stacked && figure.x.scale == model::Scale::Log;
    let widest = xs.clone().filter(|_| room).map(|x| 8.0 * x).reduce(f64::min);
    (
        Span::fit(figure.x.scale, xs.chain(widest), if room { 0.04 } else { 0.02 }),
        Span::fit(figure.y.scale, ys().chain(ends), 0.1),
    )
}

/// The legend below the plot, in as many columns as the longest name allows.
fn legend(figure: &Figure, top: f64) -> (Vec<Key>, usize) {
    let room = WIDTH - 2.0 * EDGE;
    let longest = figure.series.iter().map(|series| text_width(&series.name, 13.0)).fold(0.0, f64::max);
    let column = (SAMPLE + 10.0 + longest * 1.15 + 26.0).min(room);
    let columns = ((room / column) as usize).clamp(1, figure.series.len().max(1));
    let keys = figure
        .series
        .iter()
        .enumerate()
        .map(|(index, series)| Key {
            series: index,
            text: fit(&series.name, 13.0 * 1.12, room - SAMPLE - 12.0),
            x: EDGE + column * (index % columns) as f64,
            y: top + ROW * (index / columns) as f64,
        })
        .collect();
    (keys, figure.series.len().div_ceil(columns))
}

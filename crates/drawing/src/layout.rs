//! The layout of a figure. Lengths are in the figure's units, pixels at its natural size.

use model::{Figure, Scale};
use text::RateUnit;

use crate::end_labels::{EndLabels, end_labels};
use crate::keys::groups;
use crate::look::is_named_by_axis;
use crate::plot::{Plot, Rect};
use crate::span::{Span, x_span, y_span};
use crate::text_width::{fit, text_width, wrap};
use crate::ticks::Ticks;

/// The natural width of a figure. Texts are never below 12 units, so that at these widths they are
/// readable.
pub const WIDTH: f64 = 960.0;
/// The width of a figure in narrow places.
pub const NARROW: f64 = 400.0;
/// Narrower figures are drawn at this width and shrunk.
const NARROWEST: f64 = 360.0;
/// Room between two legend rows.
const ROW: f64 = 22.0;
/// Length of the sample line in the legend.
pub(crate) const SAMPLE: f64 = 30.0;
/// Room between the bottom of the plots and the legend, with the ticks' texts and the axis' label.
const BELOW: f64 = 74.0;
/// Height of a matrix' scale of colours below the plots.
const SCALE_HEIGHT: f64 = 46.0;
/// Height of the title row of a panel.
const PANEL_TITLE: f64 = 22.0;
/// Slope of texts that do not fit beside each other, degrees.
const SLOPE: f64 = 35.0;
/// A matrix with more rows or columns is drawn as an image, and not all of its names are written.
const MOST_NAMES: usize = 128;
/// Room for each of these names.
const NAME: f64 = 18.0;

/// What a figure is drawn on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sheet {
    /// Width of the place, px.
    pub width: f64,
    /// The unit of rates.
    pub rates: RateUnit,
    /// Whether title and legend are elsewhere, so that all of the width is the plots'.
    pub is_bare: bool,
}

impl Sheet {
    /// A file of a width with rates in bits.
    #[must_use]
    pub fn new(width: f64) -> Self {
        Self { width, rates: RateUnit::Bits, is_bare: false }
    }

    /// The width of the layout.
    pub(crate) fn layout_width(&self) -> f64 {
        if self.is_bare { self.width.max(NARROWEST) } else { self.width.clamp(NARROWEST, WIDTH) }
    }
}

/// Whether a figure is a matrix of so many hosts that it is an image.
#[must_use]
pub fn is_dense(figure: &Figure) -> bool {
    figure.matrix.is_some() && figure.x.ticks.len().max(figure.y.ticks.len()) > MOST_NAMES
}

/// A legend entry: a series that looks so, its text and the left end of its sample line.
pub struct Key {
    /// The first series that looks so.
    pub series: usize,
    /// Its name.
    pub text: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Title and subtitle above what is drawn.
pub(crate) struct Head {
    /// Left edge of its texts, and margin of the figure.
    pub(crate) edge: f64,
    /// Font size of the title.
    pub(crate) size: f64,
    pub(crate) title: Vec<String>,
    pub(crate) subtitle: Vec<String>,
}

impl Head {
    pub(crate) fn new(figure: &Figure, sheet: Sheet) -> Self {
        if sheet.is_bare {
            return Self { edge: 2.0, size: 0.0, title: Vec::new(), subtitle: Vec::new() };
        }
        let width = sheet.layout_width();
        let narrow = is_narrow(width);
        let (edge, size) = if narrow { (10.0, 16.0) } else { (22.0, 19.0) };
        let title = wrap(&figure.title, size * 1.08, width - 2.0 * edge, if narrow { 3 } else { 1 });
        let subtitle = wrap(&figure.subtitle, 12.5, (width - 2.0 * edge) / 1.12, if narrow { 6 } else { 2 });
        Self { edge, size, title, subtitle }
    }

    /// Where it ends.
    pub(crate) fn bottom(&self) -> f64 {
        // An arrow above the frame needs some room.
        if self.title.is_empty() {
            return 12.0;
        }
        41.0 + 21.0 * self.title.len() as f64 + 17.0 * self.subtitle.len() as f64
    }
}

fn is_narrow(width: f64) -> bool {
    width < 620.0
}

/// The layout of one figure.
pub struct Layout {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    pub(crate) head: Head,
    pub(crate) rates: RateUnit,
    /// The plots, one for each panel.
    pub plots: Vec<Plot>,
    /// The ticks of the horizontal axis.
    pub x_ticks: Ticks,
    /// The ticks of each plot's vertical axis.
    pub y_ticks: Vec<Ticks>,
    /// The lines of their titles.
    pub(crate) y_titles: Vec<Vec<String>>,
    /// Whether each plot has a vertical axis of its own.
    pub has_own_axes: bool,
    /// The slope of the horizontal axis' texts, degrees.
    pub slope: Option<f64>,
    /// The baseline of the horizontal axis' label.
    pub(crate) x_label: f64,
    /// Names at the ends of the lines; otherwise there are keys.
    pub ends: Option<EndLabels>,
    /// The legend.
    pub keys: Vec<Key>,
}

impl Layout {
    /// The longest sloped text.
    pub(crate) const SLOPED: f64 = 110.0;

    /// Lays `figure` out on a sheet.
    #[must_use]
    pub fn new(figure: &Figure, sheet: Sheet) -> Self {
        let (width, rates) = (sheet.layout_width(), sheet.rates);
        let narrow = is_narrow(width);
        let head = Head::new(figure, sheet);
        let edge = head.edge;
        let count = figure.panels.len().max(1);
        let has_own_axes = figure.panels.iter().any(|panel| panel.y.is_some());
        let x = x_span(figure);
        let plot_height = (width * 0.42).clamp(230.0, 400.0);
        let y_spans: Vec<Span> = (0..count).map(|panel| y_span(figure, &x, panel)).collect();
        let cell_height = if has_own_axes { Grid::stacked_height(plot_height, count) } else { plot_height };
        let y_ticks = |panel: usize, y: &Span| {
            // In a low panel ticks are closer.
            let apart = if has_own_axes { 32.0 } else { 46.0 };
            let room = if y.scale == Scale::Log { 10 } else { (cell_height / apart) as usize };
            Ticks::new(figure.y_of(panel), y, room, rates)
        };
        let mut y_ticks: Vec<Ticks> = y_spans.iter().enumerate().map(|(panel, y)| y_ticks(panel, y)).collect();
        let longest = if narrow { 110.0 } else { 220.0 };
        let texts = y_ticks.iter().flat_map(|ticks| &ticks.major);
        let widest = texts.map(|(_, text)| text_width(text, 12.5)).fold(0.0, f64::max).min(longest);
        // The axis' label, the ticks' texts with a margin for wider fonts, and the gap before the frame.
        let y_titles: Vec<Vec<String>> =
            y_ticks.iter().map(|ticks| wrap(&ticks.title, 13.5 * 1.1, cell_height.max(130.0), 2)).collect();
        let title = 22.0 + if y_titles.iter().any(|lines| lines.len() > 1) { 16.0 } else { 0.0 };
        let left = edge + title + (widest * 1.15).max(24.0) + 10.0;
        let ends = end_labels(figure, width);
        // The text of a tick at the right end is centred at the frame.
        let last = figure.x.ticks.last().filter(|_| figure.x.scale != Scale::Names);
        let margin = last.map_or(0.0, |(_, text)| text_width(text, 12.5) * 1.15 / 2.0).max(12.0);
        let right = width - edge - ends.as_ref().map_or(margin, |ends| ends.width);
        let grid = Grid::new(figure, width, left, right, head.bottom(), plot_height);
        let room = (grid.cell_width / if narrow { 56.0 } else { 66.0 }) as usize;
        let mut x_ticks = Ticks::new(&figure.x, &x, room, rates);
        if figure.x.scale != Scale::Names {
            apart(&mut x_ticks, &x, grid.cell_width);
        }
        if is_dense(figure) {
            thin(&mut x_ticks, grid.cell_width / 1.5);
            y_ticks.iter_mut().for_each(|ticks| thin(ticks, grid.cell_height));
        }
        let (slope, extra) = slope(figure, &x_ticks, grid.cell_width);
        let plots: Vec<Plot> = grid.frames().zip(y_spans).map(|(frame, y)| Plot { frame, x, y }).collect();
        let bottom = grid.bottom() + extra;
        let ends = ends.map(|ends| ends.placed(figure, &plots[0], right));
        let keys_top = bottom + BELOW;
        let is_keyed = ends.is_none() && !sheet.is_bare;
        let (keys, rows) = if is_keyed { legend(figure, keys_top, width, edge) } else { (Vec::new(), 0) };
        let scale = if figure.matrix.is_some() { SCALE_HEIGHT } else { 0.0 };
        // Without a legend, below the axis' label is only the margin.
        let rest = if rows == 0 && scale == 0.0 { -16.0 } else { ROW * rows as f64 + scale + 4.0 };
        Self {
            width,
            height: keys_top + rest,
            head,
            rates,
            plots,
            x_ticks,
            y_ticks,
            y_titles,
            has_own_axes,
            slope,
            x_label: bottom + 44.0,
            ends,
            keys,
        }
    }

    /// Where what is below the plots begins.
    pub(crate) fn below(&self) -> f64 {
        self.x_label - 44.0 + BELOW
    }
}

/// Where the plots are.
struct Grid {
    left: f64,
    top: f64,
    columns: usize,
    count: usize,
    cell_width: f64,
    cell_height: f64,
    titled: bool,
}

impl Grid {
    const GAP: f64 = 16.0;

    fn new(figure: &Figure, width: f64, left: f64, right: f64, top: f64, plot_height: f64) -> Self {
        let count = figure.panels.len().max(1);
        let has_own_axes = figure.panels.iter().any(|panel| panel.y.is_some());
        let most = if width >= 1_400.0 {
            4
        } else if width >= 800.0 {
            3
        } else {
            2
        };
        let columns = match count {
            1 => 1,
            // What happens at the same time is below each other.
            _ if has_own_axes => 1,
            // A single column shows a few panels as large as possible.
            2 | 3 if is_narrow(width) => 1,
            4 => 2,
            _ => most.min(count),
        };
        // A matrix of many columns needs the whole width.
        let columns = if figure.matrix.is_some() && figure.x.ticks.len() > 12 / most { 1 } else { columns };
        let cell_width = ((right - left) - Self::GAP * (columns - 1) as f64) / columns as f64;
        let cell_height = match (&figure.matrix, count) {
            (Some(_), _) if is_dense(figure) => {
                let square = figure.y.ticks.len() as f64 / figure.x.ticks.len().max(1) as f64 * cell_width;
                square.clamp(60.0, 3.0 * cell_width)
            }
            (Some(_), _) => {
                let rows = figure.y.ticks.len().max(1) as f64;
                (rows * (cell_width / figure.x.ticks.len().max(1) as f64).clamp(24.0, 56.0)).max(60.0)
            }
            (None, 1) => plot_height,
            (None, _) if has_own_axes => Self::stacked_height(plot_height, count),
            (None, _) => (cell_width * 0.62).clamp(120.0, plot_height * 0.75),
        };
        Self { left, top, columns, count, cell_width, cell_height, titled: !figure.panels.is_empty() }
    }

    /// Height of each of several plots below each other.
    fn stacked_height(plot_height: f64, count: usize) -> f64 {
        (plot_height * 1.25 / count as f64).clamp(130.0, plot_height * 0.6)
    }

    /// Height of a row with its title.
    fn row(&self) -> f64 {
        self.cell_height + if self.titled { PANEL_TITLE + 12.0 } else { 0.0 }
    }

    fn frames(&self) -> impl Iterator<Item = Rect> + '_ {
        let title = if self.titled { PANEL_TITLE } else { 0.0 };
        (0..self.count).map(move |index| {
            let (column, row) = ((index % self.columns) as f64, (index / self.columns) as f64);
            let left = self.left + column * (self.cell_width + Self::GAP);
            let top = self.top + row * self.row() + title;
            Rect { left, top, right: left + self.cell_width, bottom: top + self.cell_height }
        })
    }

    fn bottom(&self) -> f64 {
        self.frames().map(|frame| frame.bottom).fold(0.0, f64::max)
    }
}

/// Keeps every k-th tick, so that a side of this length has room for their names.
fn thin(ticks: &mut Ticks, length: f64) {
    let every = (ticks.major.len() as f64 * NAME / length.max(NAME)).ceil().max(1.0) as usize;
    ticks.major = std::mem::take(&mut ticks.major).into_iter().step_by(every).collect();
}

/// Takes the texts of ticks that would overlap the next one; their lines stay.
fn apart(ticks: &mut Ticks, span: &Span, width: f64) {
    let mut free = f64::INFINITY;
    let mut kept = Vec::new();
    for (value, text) in std::mem::take(&mut ticks.major).into_iter().rev() {
        let half = text_width(&text, 12.5) * 1.1 / 2.0;
        let at = span.position(value).unwrap_or(0.0) * width;
        if at + half <= free {
            free = at - half - 4.0;
            kept.push((value, text));
        } else {
            ticks.minor.push(value);
        }
    }
    kept.reverse();
    ticks.major = kept;
}

/// The slope of categories that are too long for their places, and the height that it needs.
fn slope(figure: &Figure, ticks: &Ticks, cell_width: f64) -> (Option<f64>, f64) {
    if figure.x.scale != Scale::Names || ticks.major.is_empty() {
        return (None, 0.0);
    }
    let place = cell_width / ticks.major.len() as f64;
    let widest = ticks.major.iter().map(|(_, text)| text_width(text, 12.5) * 1.12).fold(0.0, f64::max);
    if widest + 8.0 <= place {
        return (None, 0.0);
    }
    (Some(SLOPE), (widest.min(Layout::SLOPED) * SLOPE.to_radians().sin() - 10.0).max(4.0))
}

/// The legend below the plots, in as many columns as the longest name allows. Series that look the same and have the same name, in
/// several panels, have one entry.
fn legend(figure: &Figure, top: f64, width: f64, edge: f64) -> (Vec<Key>, usize) {
    // The title of a panel that shows one series is its name.
    let named = is_named_by_axis(figure);
    let titled = |group: &&Vec<usize>| !named && (!figure.context || figure.series[group[0]].reference);
    let shown: Vec<usize> = groups(figure).iter().filter(titled).map(|group| group[0]).collect();
    let room = width - 2.0 * edge;
    let longest = shown.iter().map(|index| text_width(&figure.series[*index].name, 13.0)).fold(0.0, f64::max);
    let column = (SAMPLE + 10.0 + longest * 1.15 + 26.0).min(room);
    let columns = ((room / column) as usize).clamp(1, shown.len().max(1));
    let rows = shown.len().div_ceil(columns);
    let keys = shown.into_iter().enumerate().map(|(at, series)| Key {
        series,
        text: fit(&figure.series[series].name, 13.0 * 1.12, room - SAMPLE - 12.0),
        x: edge + column * (at % columns) as f64,
        y: top + ROW * (at / columns) as f64,
    });
    (keys.collect(), rows)
}

#[cfg(test)]
mod tests {
    use model::{Axis, Point, Series};

    use super::*;

    fn figure(panels: usize) -> Figure {
        let series = |panel: usize| Series {
            name: format!("level {}", panel % 2),
            points: vec![Point { x: 1.0, y: 1.0, ..Point::default() }, Point { x: 2.0, y: 3.0, ..Point::default() }],
            look: Some(model::Look { colour: panel % 2, dash: 0 }),
            panel: Some(panel),
            ..Series::default()
        };
        Figure {
            title: "Values".into(),
            subtitle: "of something".into(),
            x: Axis::new("x", "", Scale::Linear),
            y: Axis::new("y", "", Scale::Linear),
            panels: (0..panels).map(|panel| format!("panel {panel}").into()).collect(),
            series: (0..panels.max(1)).map(series).collect(),
            ..Figure::default()
        }
    }

    #[test]
    fn panels_do_not_overlap_and_stay_within_the_figure() {
        for (count, width) in [(0, 400.0), (1, 960.0), (2, 960.0), (4, 960.0), (7, 960.0), (7, 400.0), (24, 400.0)] {
            let layout = Layout::new(&figure(count), Sheet::new(width));
            assert_eq!(layout.plots.len(), count.max(1));
            let whole = Rect { left: 0.0, top: 0.0, right: width, bottom: layout.height };
            for (at, plot) in layout.plots.iter().enumerate() {
                assert!(whole.holds(&plot.frame) && plot.frame.right - plot.frame.left > 80.0, "{:?}", plot.frame);
                assert!(layout.plots[..at].iter().all(|other| !other.frame.overlaps(&plot.frame)), "{count}");
            }
        }
    }

    #[test]
    fn panels_with_their_own_axes_are_below_each_other_with_their_own_ticks() {
        let mut figure = figure(2);
        figure.panels[1].y = Some(Axis::new("round-trip time", "ns", Scale::Linear));
        figure.series[1].points.iter_mut().for_each(|point| point.y *= 1e6);
        let layout = Layout::new(&figure, Sheet::new(WIDTH));
        let [above, below] = [layout.plots[0], layout.plots[1]];
        assert!(above.frame.bottom < below.frame.top && above.frame.left == below.frame.left);
        assert!(above.y.high < 4.0 && below.y.high > 3e6, "{:?}", layout.plots);
        assert_eq!([&layout.y_ticks[0].title, &layout.y_ticks[1].title], ["y", "round-trip time (ms)"]);
    }

    #[test]
    fn texts_of_ticks_never_overlap() {
        let mut figure = figure(0);
        figure.x = Axis { ticks: [1.0, 1.01, 1.02, 2.0].map(|at| (at, format!("{at} units"))).to_vec(), ..figure.x };
        let layout = Layout::new(&figure, Sheet::new(NARROW));
        let texts: Vec<&str> = layout.x_ticks.major.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!((texts.as_slice(), layout.x_ticks.minor.len()), (&["1.02 units", "2 units"][..], 2));
    }

    #[test]
    fn panels_share_their_keys() {
        assert_eq!(Layout::new(&figure(8), Sheet::new(WIDTH)).keys.len(), 2);
    }

    #[test]
    fn long_categories_are_sloped_and_their_place_is_kept() {
        let mut figure = figure(0);
        let short = ["a", "b"].map(str::to_owned);
        figure.x = Axis::names("name", &short);
        assert_eq!(Layout::new(&figure, Sheet::new(WIDTH)).slope, None);
        let before = Layout::new(&figure, Sheet::new(NARROW)).height;
        let long: Vec<String> = (0..8).map(|n| format!("a long name of level {n}")).collect();
        figure.x = Axis::names("name", &long);
        let layout = Layout::new(&figure, Sheet::new(NARROW));
        assert!(layout.slope.is_some() && layout.height > before + 40.0);
    }
}

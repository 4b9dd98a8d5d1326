//! The script: one section for each figure.

use std::fmt::Write as _;

use drawing::span::Span;
use drawing::theme::{LIGHT, SERIES};
use drawing::ticks::Ticks;
use drawing::{Key, Layout, MANY, Sheet, Side, exits, fit, has_bands, joined, look, matrix, shift, wrap};
use model::units::three_digits;
use model::{Figure, Look, Scale, Series};

use super::{comment, quoted};
use crate::view::safe_name;

/// Of a matrix: its scale of colours, which are not mixed with the paper.
const MATRIX: &str = "set colorbox\nset style fill solid 1.0 noborder\n";
/// The bands of intervals.
const BANDS: &str = "set style fill transparent solid 0.22 noborder\n";
/// Patterns of dashes that gnuplot has.
const DASHES: usize = 5;
/// Markers on a line of many points, where they are all that distinguishes it.
const MARKERS: usize = 12;

/// gnuplot's numbers of the markers, in the order of the colours.
const POINTS: [usize; SERIES] = [7, 5, 9, 13, 11, 2, 6];

/// What all figures share.
pub(super) fn preamble(stem: &str) -> String {
    let name = safe_name(stem);
    let line = |((number, colour), point): ((usize, &&str), usize)| {
        format!("set linetype {number} lc rgb '{colour}' lw 1.5 pt {point}\n")
    };
    let dash = |number: usize| format!("dash{number} = mono ? {} : 1\n", (number - 1) % DASHES + 1);
    let dashes: String = (1..=SERIES).map(dash).collect();
    let lines: String = (1..).zip(&LIGHT.series).zip(POINTS).map(line).collect();
    let shade = |(number, colour): (usize, &String)| format!("{number} '{colour}'");
    let shades = (0..).zip(&matrix::colours()).map(shade).collect::<Vec<_>>().join(", ");
    format!(
        "# Figures of this measurement, for gnuplot 5 or newer. Run it in the folder of its .dat files:
#   gnuplot {name}.gp                        PNG files
#   gnuplot -e 'term=\"eps\"' {name}.gp        EPS files, for papers
#   gnuplot -e 'term=\"eps\"; mono=1' {name}.gp   the same in black
#   gnuplot -e 'term=\"screen\"' -p {name}.gp  windows
# Titles, sizes, colours and the position of the key are settings below.

if (!exists('term')) term = 'png'
if (!exists('mono')) mono = 0
set encoding utf8
set datafile missing '?'
pixels = strstrt(GPVAL_TERMINALS, 'pngcairo') > 0 ? 'pngcairo' : 'png'
# PostScript has no transparent areas: thin lines show the ends of the intervals there.
bands = (term ne 'eps')
# In black, dashes and markers distinguish what colours do otherwise.
{dashes}set pointsize 0.8
set grid
# From the lowest to the highest value of a matrix.
set palette defined ({shades})
# Colours that people with any colour vision can distinguish.
{lines}set linetype cycle {SERIES}
if (mono) {{ set monochrome }}
"
    )
}

/// A figure as commands of gnuplot.
pub(super) struct Section<'a> {
    figure: &'a Figure,
    layout: Layout,
    sheet: Sheet,
}

impl<'a> Section<'a> {
    pub(super) fn new(figure: &'a Figure, sheet: Sheet) -> Self {
        Self { figure, layout: Layout::new(figure, sheet), sheet }
    }

    pub(super) fn panels(&self) -> usize {
        self.layout.plots.len()
    }

    /// The vertical span of a series.
    pub(super) fn span_of(&self, index: usize) -> &Span {
        &self.layout.plots[self.figure.series[index].panel.unwrap_or(0).min(self.panels() - 1)].y
    }

    /// The number of a series' line type, its marker, and its dashes: those of its look, or if no series has any, in black those of its
    /// colour.
    fn drawn(&self, index: usize) -> (usize, usize, String) {
        let own = look(self.figure, index);
        let style = style(own);
        let dashed = (0..self.figure.series.len()).any(|index| look(self.figure, index).dash > 0);
        let dashes = if dashed { (own.dash % 4 + 1).to_string() } else { format!("dash{style}") };
        (style, POINTS[style - 1], dashes)
    }

    /// The areas of intervals, which are behind all lines.
    pub(super) fn bands(&self, file: &str, data_set: usize, index: usize) -> Vec<String> {
        let series = &self.figure.series[index];
        if series.reference
            || series.stacked
            || !joined(self.figure)
            || !has_bands(self.figure)
            || !has_interval(series)
        {
            return Vec::new();
        }
        let (style, _, dashes) = self.drawn(index);
        let of = format!("'{file}' index {data_set}");
        let end = |column: usize| {
            format!(
                "for [i=1:!bands] {of} using 1:{column} with lines linetype {style} linewidth 0.4 dashtype {dashes} notitle"
            )
        };
        vec![format!("for [i=1:bands] {of} using 1:3:4 with filledcurves linetype {style} notitle"), end(3), end(4)]
    }

    /// The line through the points, and a few intervals, in the same colour.
    pub(super) fn items(&self, file: &str, data_set: usize, index: usize) -> Vec<String> {
        let series = &self.figure.series[index];
        let title = self.title_of(index);
        let (style, marker, dashes) = self.drawn(index);
        let of = format!("'{file}' index {data_set}");
        if series.reference {
            return vec![format!("{of} using 1:2 with lines dashtype 2 linetype {style} {title}")];
        }
        if series.stacked {
            let columns = "using 1:2:($1*0.9):($1*1.1):3:4 with boxxyerrorbars fillstyle solid 0.8";
            return vec![format!("{of} {columns} linetype {style} {title}")];
        }
        let bars = |x: &str| format!("{of} using {x}:2:3:4 with yerrorbars linetype {style} pointtype 0 notitle");
        if !joined(self.figure) {
            // Beside each other, as there is nothing between categories.
            let x = format!("($1{:+.3})", shift(self.figure, index));
            let points = format!("{of} using {x}:2 with points linetype {style} pointtype {marker} {title}");
            return has_interval(series).then(|| bars(&x)).into_iter().chain([points]).collect();
        }
        let count = series.points.len();
        if series.steps {
            return vec![format!("{of} using 1:2 with steps linetype {style} dashtype {dashes} {title}")];
        }
        if count > MANY {
            let every = count / MARKERS;
            let looks = format!("linetype {style} dashtype {dashes}");
            return vec![
                format!("for [i=1:!mono] {of} using 1:2 with lines {looks} {title}"),
                format!(
                    "for [i=1:mono] {of} using 1:2 with linespoints {looks} pointtype {marker} pointinterval {every} {title}"
                ),
                // One at the end, beside its name.
                format!(
                    "for [i=1:mono] {of} using 1:2 every ::{} with points linetype {style} pointtype {marker} notitle",
                    count - 1
                ),
            ];
        }
        let line =
            format!("{of} using 1:2 with linespoints linetype {style} pointtype {marker} dashtype {dashes} {title}");
        // The markers last, so that they are above the intervals.
        let barred = has_interval(series) && !has_bands(self.figure);
        barred.then(|| bars("1")).into_iter().chain([line]).collect()
    }

    /// The series of other panels, without colour.
    pub(super) fn behind(&self, sets: &[(String, usize)], panel: usize) -> Vec<String> {
        if !self.figure.context {
            return Vec::new();
        }
        let other = |index: &usize| !self.figure.series[*index].is_in(panel);
        let with = if joined(self.figure) { "lines" } else { "points pointtype 7 pointsize 0.3" };
        let item = |index: usize| {
            let (file, data_set) = sets.get(index)?;
            Some(format!("'{file}' index {data_set} using 1:2 with {with} linecolor rgb '{}' notitle", LIGHT.grid))
        };
        (0..self.figure.series.len()).filter(other).filter_map(item).collect()
    }

    /// The cells of a matrix: their colours, and their values as numbers.
    pub(super) fn cells(&self, file: &str, data_set: usize) -> Vec<String> {
        let of = format!("'{file}' index {data_set}");
        let Some(matrix) = &self.figure.matrix else { return Vec::new() };
        let (low, high) = matrix::range(matrix);
        // Light numbers on dark cells.
        let dark = low + matrix::DARK * (high - low);
        let colour = format!("($3 > {dark:e} ? 0xffffff : 0x{})", LIGHT.ink.trim_start_matches('#'));
        vec![
            format!("{of} using 1:2:(0.48):(0.48):3 with boxxyerror fillstyle solid 1.0 linecolor palette notitle"),
            format!("{of} using 1:2:4:{colour} with labels textcolor rgb variable notitle"),
        ]
    }

    /// The entry of a series in the key; none if its name is beside its line, or if panels share their keys.
    fn title_of(&self, index: usize) -> String {
        if self.layout.ends.is_some() || self.panels() > 1 {
            return "notitle".to_owned();
        }
        format!("title {}", quoted(&fit(&self.figure.series[index].name, 12.0, 760.0)))
    }

    /// The keys that panels share, as plots of nothing.
    fn keys(&self) -> Vec<String> {
        let key = |key: &Key| {
            let (style, marker, dashes) = self.drawn(key.series);
            let with = match (self.figure.series[key.series].reference, joined(self.figure)) {
                (true, _) => "lines dashtype 2".to_owned(),
                (false, true) => format!("linespoints pointtype {marker} dashtype {dashes}"),
                (false, false) => format!("points pointtype {marker}"),
            };
            format!("NaN with {with} linetype {style} title {}", quoted(&key.text))
        };
        self.layout.keys.iter().map(key).collect()
    }

    /// The labels of the axes, of panels only at the left and at the bottom.
    fn outer_labels(&self, panel: usize) -> String {
        let frame = self.layout.plots[panel].frame;
        let mut x = self.layout.x_ticks.title.as_str();
        let mut y = self.layout.y_ticks[panel].title.as_str();
        for other in self.layout.plots.iter().map(|plot| plot.frame) {
            if other.left == frame.left && other.top > frame.top {
                x = "";
            }
            if other.top == frame.top && other.left < frame.left {
                y = "";
            }
        }
        format!("set xlabel {}\nset ylabel {}\n", quoted(x), quoted(y))
    }

    /// The commands, with the items of each panel's plot.
    pub(super) fn text(&self, window: usize, plots: &[Vec<String>]) -> String {
        let figure = self.figure;
        let mut text = format!("\n# {}\n", comment(&figure.title));
        let id = safe_name(&figure.id);
        // The height of the PNG, but with room for the texts that gnuplot repeats in each panel.
        let height = self.layout.height * 1.25 * if self.panels() > 1 { 1.2 } else { 1.0 };
        let height = height.max(700.0);
        let size = format!("size 1200,{height:.0} noenhanced");
        // A single plot is as large as in print. Panels have the proportions of the PNG.
        let (wide, high, font) = if self.panels() > 1 { (10.0, height / 120.0, 10) } else { (6.0, 4.0, 12) };
        let _ = writeln!(text, "if (term eq 'png') {{ eval 'set terminal '.pixels.' {size}' }}");
        let _ = writeln!(
            text,
            "if (term eq 'eps') {{ set terminal postscript eps color noenhanced size {wide}in,{high:.1}in font 'Helvetica,{font}'; if (mono) {{ set monochrome }} }}"
        );
        let _ = writeln!(text, "if (term eq 'png' || term eq 'eps') {{ set output '{id}.'.term }}");
        let _ = writeln!(text, "if (term eq 'screen') {{ eval 'set terminal '.GPVAL_TERM.' {window}' }}");
        text.push_str(&self.axes());
        let several = self.panels() > 1;
        if several {
            let columns =
                self.layout.plots.iter().filter(|plot| plot.frame.top == self.layout.plots[0].frame.top).count();
            let rows = self.panels().div_ceil(columns);
            let _ = writeln!(text, "set multiplot layout {rows},{columns} title {}", title(figure, 720.0));
        } else {
            let frame = self.layout.plots[0].frame;
            // Centred above the plot, with room for the arrows at its top.
            let room = 900.0 * (frame.right - frame.left) / self.layout.width;
            let _ = writeln!(text, "set title {} offset 0,0.6", title(figure, room));
        }
        for (panel, items) in plots.iter().enumerate() {
            if several {
                let name = figure.panels.get(panel).map_or("", |panel| panel.title.as_str());
                let _ = writeln!(text, "set title {}", quoted(&fit(name, 12.0, 280.0)));
            }
            text.push_str(&self.outer_labels(panel));
            if self.layout.has_own_axes {
                text.push_str(&self.vertical(panel));
            }
            text.push_str("unset label\nunset arrow\n");
            text.push_str(&self.marks(panel));
            text.push_str(&self.arrows(panel));
            text.push_str(&self.names());
            let keys = if panel + 1 == plots.len() && several { self.keys() } else { Vec::new() };
            let mut items: Vec<String> = items.iter().cloned().chain(keys).collect();
            if items.is_empty() {
                // A panel without a value still has its place.
                items.push("NaN notitle".to_owned());
            }
            let _ = writeln!(text, "plot {}", items.join(", \\\n     "));
        }
        if several {
            text.push_str("unset multiplot\n");
        }
        text
    }

    /// Labels, scales, ticks and ranges, and the room of the names beside the plot.
    fn axes(&self) -> String {
        let (figure, layout) = (self.figure, &self.layout);
        let x = &layout.plots[0].x;
        let mut text = String::new();
        let _ = writeln!(text, "{}", scale("x", figure.x.scale, &figure.x.unit));
        let turned = if layout.slope.is_some() { "rotate by 35 right " } else { "norotate " };
        let _ = writeln!(text, "set xtics {turned}({})", tics(&layout.x_ticks));
        let _ = writeln!(text, "set xrange [{:e}:{:e}]", x.low, x.high);
        text.push_str(&self.vertical(0));
        match &figure.matrix {
            Some(matrix) => {
                let (low, high) = matrix::range(matrix);
                let high = if high > low { high } else { low + 1.0 };
                let (factor, title) = matrix::title(matrix, self.sheet.rates);
                let label = quoted(&title);
                let ends =
                    format!("'{}' {low:e}, '{}' {high:e}", three_digits(low / factor), three_digits(high / factor));
                let _ = writeln!(text, "set cbrange [{low:e}:{high:e}]\nset cblabel {label}\nset cbtics ({ends})");
            }
            None => text.push_str("unset colorbox\n"),
        }
        text.push_str(if figure.matrix.is_some() { MATRIX } else { BANDS });
        match &layout.ends {
            Some(_) => {
                let share = layout.plots[0].frame.right / layout.width;
                let _ = writeln!(text, "unset key\nset rmargin at screen {share:.3}");
            }
            // Below the plot the key covers no data.
            None => text.push_str("set key below height 1\nset rmargin\n"),
        }
        text
    }

    /// Scale, ticks and range of a panel's vertical axis.
    fn vertical(&self, panel: usize) -> String {
        let (axis, y) = (self.figure.y_of(panel), &self.layout.plots[panel].y);
        let scale = scale("y", axis.scale, &axis.unit);
        let tics = tics(&self.layout.y_ticks[panel]);
        format!("{scale}\nset ytics ({tics})\nset yrange [{:e}:{:e}]\n", y.low, y.high)
    }

    /// A place in the plot as shares of it.
    fn graph(&self, panel: usize, (x, y): (f64, f64)) -> String {
        let frame = self.layout.plots[panel].frame;
        let share = |value: f64, from: f64, to: f64| (value - from) / (to - from);
        format!("graph {:.4},{:.4}", share(x, frame.left, frame.right), share(y, frame.bottom, frame.top))
    }

    /// The labelled points. A label is below its point, or above it near the bottom; one that would lie on an earlier label moves on.
    fn marks(&self, panel: usize) -> String {
        let plot = &self.layout.plots[panel];
        let mut text = String::new();
        let mut placed: Vec<(f64, f64, bool)> = Vec::new();
        for mark in self.figure.marks.iter().filter(|_| panel == 0) {
            let Some((x, y)) = plot.at(mark.x, mark.y).filter(|at| plot.frame.has(*at)) else { continue };
            let (at, label) = (format!("{:e},{:e}", mark.x, mark.y), quoted(&mark.label));
            // Text extends towards the middle, to stay within the frame.
            let is_right = plot.x.position(mark.x) > Some(0.6);
            let (side, away) = if is_right { ("right", -1) } else { ("left", 1) };
            let (width, height) = (plot.frame.right - plot.frame.left, plot.frame.bottom - plot.frame.top);
            let line = height / LINES;
            let step = if plot.frame.bottom - y < 4.0 * line { 1 } else { -1 };
            let mut rows = step;
            let clashes = |rows: i32, placed: &[(f64, f64, bool)]| {
                let own = y - f64::from(rows) * line;
                let near = |(other, of, right): &&(f64, f64, bool)| {
                    let reach = if *right == is_right { 0.5 } else { 0.9 };
                    (other - x).abs() < reach * width && (of - own).abs() < line
                };
                placed.iter().any(|one| near(&one))
            };
            while clashes(rows, &placed) {
                rows += step;
            }
            placed.push((x, y - f64::from(rows) * line, is_right));
            let point = "point pointtype 6 pointsize 1.6";
            let _ = writeln!(text, "set label {label} at {at} {side} {point} offset {away},{rows}");
        }
        text
    }

    /// An arrow where a line or an interval leaves the plot.
    fn arrows(&self, panel: usize) -> String {
        let figure = self.figure;
        let mut text = String::new();
        let here = |index: &usize| figure.series[*index].is_in(panel);
        for index in (0..figure.series.len()).filter(here) {
            for exit in exits(&self.layout.plots[panel], figure, index) {
                let by = match exit.side {
                    Side::Top => "0,0.03",
                    Side::Bottom => "0,-0.03",
                    Side::Left => "-0.02,0",
                    Side::Right => "0.02,0",
                };
                let from = self.graph(panel, exit.at);
                let style = style(look(figure, index));
                let _ = writeln!(
                    text,
                    "set arrow from {from} rto graph {by} head filled size graph 0.012,25 linetype {style}"
                );
            }
        }
        text
    }

    /// The names beside the lines' ends.
    fn names(&self) -> String {
        let mut text = String::new();
        for label in self.layout.ends.iter().flat_map(|ends| &ends.labels) {
            let right = self.layout.plots[0].frame.right;
            let at = self.graph(0, (right, label.middle));
            let name = label.lines.iter().map(|line| quoted(line)).collect::<Vec<_>>().join(".\"\\n\".");
            let style = style(look(self.figure, label.series));
            let _ = writeln!(text, "set label {name} at {at} left offset 3,0 textcolor linetype {style}");
        }
        text
    }
}

/// The scale of an axis.
fn scale(axis: &str, scale: Scale, unit: &str) -> String {
    match scale {
        Scale::Linear | Scale::Names | Scale::Date => format!("unset logscale {axis}"),
        Scale::Log => format!("set logscale {axis} {}", if unit == "B" { 2 } else { 10 }),
    }
}

/// Lines of text that a plot has room for.
const LINES: f64 = 22.0;

fn has_interval(series: &Series) -> bool {
    series.points.iter().any(|point| point.low.is_some() && point.high.is_some())
}

/// The number of a line type.
fn style(look: Look) -> usize {
    look.colour % SERIES + 1
}

/// Ticks with their texts. A text is a format, in which a percent sign is doubled.
fn tics(ticks: &Ticks) -> String {
    let mark = |(value, text): &(f64, String)| format!("{} {value:e}", quoted(&text.replace('%', "%%")));
    ticks.major.iter().map(mark).collect::<Vec<_>>().join(", ")
}

/// Title and subtitle, wrapped at the width of the figure.
fn title(figure: &Figure, room: f64) -> String {
    let subtitle = wrap(&figure.subtitle, 12.0, room, 3);
    let lines: Vec<String> = [&figure.title].into_iter().chain(&subtitle).map(|line| quoted(line)).collect();
    lines.join(".\"\\n\".")
}

//! A gnuplot script with a data file for each run, in the manner of NetPIPE's users: comments say what to change.

use std::fmt::Write as _;

use model::{Figure, Run, Scale, Series};

use crate::draw::span::Span;
use crate::draw::ticks::Ticks;
use crate::figures::{Drawn, drawn};
use crate::view::{safe_name, stem};
use crate::{Piece, ReportError, View, words};

/// The script first, then a data file for each run that has a point to draw.
pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("gnuplot")?;
    let drawn = drawn(view.runs);
    if drawn.is_empty() {
        return Err(ReportError::NothingToDraw { format: "gnuplot" });
    }
    let mut files: Vec<DataFile> = Vec::new();
    let mut script = preamble(stem(view.runs));
    for (window, Drawn { figure, owners }) in drawn.iter().enumerate() {
        let mut plots = Vec::new();
        for (index, (series, owner)) in figure.series.iter().zip(owners).enumerate() {
            let file = data_file(&mut files, *owner, &view.runs[*owner]);
            let block = file.append(figure, series);
            plots.extend(plot_items(&file.name, block, series, index));
        }
        script.push_str(&section(figure, window, &plots));
    }
    let script = Piece::new(stem(view.runs), "gp", script.into_bytes());
    let data = files.into_iter().map(|file| Piece { name: file.name, bytes: file.text.into_bytes() });
    Ok([script].into_iter().chain(data).collect())
}

/// One run's points: a block for each series, two blank lines apart, as gnuplot's `index` wants them.
struct DataFile {
    owner: usize,
    name: String,
    text: String,
    blocks: usize,
}

fn data_file<'a>(files: &'a mut Vec<DataFile>, owner: usize, run: &Run) -> &'a mut DataFile {
    let at = files.iter().position(|file| file.owner == owner).unwrap_or_else(|| {
        let stem = safe_name(&run.header.id);
        let taken = files.iter().any(|file| file.name == format!("{stem}.dat"));
        let name = if taken { format!("{stem}-{}.dat", owner + 1) } else { format!("{stem}.dat") };
        let about = format!("{}: {}", words::title(run), words::hosts(run));
        let command = run.header.command.join(" ");
        let text = format!("# {}\n# {}\n", comment(&about), comment(&command));
        files.push(DataFile { owner, name, text, blocks: 0 });
        files.len() - 1
    });
    &mut files[at]
}

impl DataFile {
    /// Writes a series and returns the number of its block.
    fn append(&mut self, figure: &Figure, series: &Series) -> usize {
        if self.blocks > 0 {
            self.text.push_str("\n\n");
        }
        let _ = writeln!(self.text, "# {}: {}", comment(&figure.id), comment(&series.name));
        let (x, y) = (&figure.x, &figure.y);
        let _ = writeln!(
            self.text,
            "# {} ({}), {} ({}), low and high end of its interval ({}), ? for none",
            x.label, x.unit, y.label, y.unit, y.unit
        );
        for point in &series.points {
            let shown = Span::drawable(x.scale, point.x) && Span::drawable(y.scale, point.y);
            let end = |end: Option<f64>| end.filter(|_| shown).filter(|end| Span::drawable(y.scale, *end));
            let place = |value: f64| if shown { value.to_string() } else { "?".to_owned() };
            // An interval is drawn whole or not at all.
            let ends = end(point.low).zip(end(point.high));
            let (low, high) = ends.map_or(("?".into(), "?".into()), |(low, high)| (low.to_string(), high.to_string()));
            let _ = writeln!(self.text, "{} {} {low} {high}", place(point.x), place(point.y));
        }
        self.blocks += 1;
        self.blocks - 1
    }
}

/// The line through the points, and the intervals where there are any, in the same colour.
fn plot_items(file: &str, block: usize, series: &Series, index: usize) -> Vec<String> {
    let (title, style) = (quoted(&series.name), index + 1);
    if series.reference {
        return vec![format!("'{file}' index {block} using 1:2 with lines dashtype 2 linetype {style} title {title}")];
    }
    let many = series.points.len() > 200;
    let with = if many { "lines" } else { "linespoints" };
    let line = format!("'{file}' index {block} using 1:2 with {with} linetype {style} title {title}");
    if !series.points.iter().any(|point| point.low.is_some() && point.high.is_some()) {
        return vec![line];
    }
    let bars = format!("'{file}' index {block} using 1:2:3:4 with yerrorbars linetype {style} pointsize 0 notitle");
    vec![line, bars]
}

fn preamble(stem: &str) -> String {
    let name = safe_name(stem);
    format!(
        "# Figures of this measurement, for gnuplot 5 or newer. Run it beside its .dat files:
#   gnuplot {name}.gp                        PNG files
#   gnuplot -e 'term=\"eps\"' {name}.gp        EPS files, for papers
#   gnuplot -e 'term=\"eps\"; mono=1' {name}.gp   the same in black
#   gnuplot -e 'term=\"screen\"' -p {name}.gp  windows
# Titles, sizes, colours and the key's place are plain settings below: edit as you like.

if (!exists('term')) term = 'png'
if (!exists('mono')) mono = 0
set encoding utf8
set datafile missing '?'
if (term eq 'png') {{
    if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {{
        set terminal pngcairo size 1200,800 noenhanced
    }} else {{
        set terminal png size 1200,800 noenhanced
    }}
}}
if (term eq 'eps') {{ set terminal postscript eps color noenhanced size 6in,4in font 'Helvetica,12' }}
set pointsize 0.8
set grid
# Colours that people with any colour vision can tell apart (Okabe and Ito).
set linetype 1 lc rgb '#0072b2' lw 1.5 pt 7
set linetype 2 lc rgb '#d55e00' lw 1.5 pt 5
set linetype 3 lc rgb '#009e73' lw 1.5 pt 9
set linetype 4 lc rgb '#cc79a7' lw 1.5 pt 13
set linetype 5 lc rgb '#e69f00' lw 1.5 pt 11
set linetype 6 lc rgb '#56b4e9' lw 1.5 pt 2
set linetype 7 lc rgb '#4d4d4d' lw 1.5 pt 6
set linetype cycle 7
if (mono) {{ set monochrome }}
"
    )
}

fn section(figure: &Figure, window: usize, plots: &[String]) -> String {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let x = Span::fit(figure.x.scale, points().map(|point| point.x), 0.02);
    let ends = |point: &model::Point| [Some(point.y), point.high].into_iter().flatten();
    let y = Span::fit(figure.y.scale, points().flat_map(ends), 0.07);
    let (x_ticks, y_ticks) = (Ticks::new(&figure.x, &x, 10), Ticks::new(&figure.y, &y, 8));
    let scale = |axis: &str, scale: Scale, unit: &str| match scale {
        Scale::Linear => format!("unset logscale {axis}"),
        Scale::Log => format!("set logscale {axis} {}", if unit == "B" { 2 } else { 10 }),
    };
    let tics = |ticks: &Ticks| {
        let marks: Vec<String> =
            ticks.major.iter().map(|(value, text)| format!("{} {value:e}", quoted(text))).collect();
        marks.join(", ")
    };
    let mut text = format!("\n# {}\n", comment(&figure.title));
    let id = safe_name(&figure.id);
    let _ = writeln!(text, "if (term eq 'png' || term eq 'eps') {{ set output '{id}.'.term }}");
    let _ = writeln!(text, "if (term eq 'screen') {{ eval 'set terminal '.GPVAL_TERM.' {window}' }}");
    let _ = writeln!(text, "set title {}.\"\\n\".{}", quoted(&figure.title), quoted(&figure.subtitle));
    let _ = writeln!(text, "set xlabel {}\nset ylabel {}", quoted(&x_ticks.title), quoted(&y_ticks.title));
    let _ = writeln!(
        text,
        "{}\n{}",
        scale("x", figure.x.scale, &figure.x.unit),
        scale("y", figure.y.scale, &figure.y.unit)
    );
    let _ = writeln!(text, "set xtics ({})\nset ytics ({})", tics(&x_ticks), tics(&y_ticks));
    let _ = writeln!(text, "set xrange [{:e}:{:e}]\nset yrange [{:e}:{:e}]", x.low, x.high, y.low, y.high);
    text.push_str("unset label\n");
    for mark in &figure.marks {
        if Span::drawable(x.scale, mark.x) && Span::drawable(y.scale, mark.y) {
            let (at, label) = (format!("{:e},{:e}", mark.x, mark.y), quoted(&mark.label));
            let _ = writeln!(text, "set label {label} at {at} point pointtype 6 pointsize 1.6 offset 1,-1");
        }
    }
    // Below the plot it covers no data, whatever the names.
    text.push_str("set key below\n");
    let _ = writeln!(text, "plot {}", plots.join(", \\\n     "));
    text
}

/// A gnuplot string: within single quotes nothing is expanded, and a doubled quote is a quote.
fn quoted(text: &str) -> String {
    format!("'{}'", comment(text).replace('\'', "''"))
}

/// `text` on one line, without what could end a comment or a string.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\u{2028}' || c == '\u{2029}' { ' ' } else { c }).collect()
}

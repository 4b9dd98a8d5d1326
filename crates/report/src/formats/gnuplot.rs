//! A gnuplot script, with comments on what to change, and a data file for each run.

use std::fmt::Write as _;

use model::{Figure, Run, Scale, Series};

use crate::draw::span::Span;
use crate::draw::ticks::Ticks;
use crate::draw::{fit, wrap};
use crate::figures::{Drawn, drawn};
use crate::view::{safe_name, stem};
use crate::{Piece, ReportError, View, labels};

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
            let index_in_file = file.append(figure, series);
            plots.extend(plot_items(&file.name, index_in_file, series, index));
        }
        script.push_str(&section(figure, window, &plots));
    }
    let script = Piece::new(stem(view.runs), "gp", script.into_bytes());
    let data = files.into_iter().map(|file| Piece { name: file.name, bytes: file.text.into_bytes() });
    Ok([script].into_iter().chain(data).collect())
}

/// One run's points: a data set for each series, separated by two blank lines, for gnuplot's `index`.
struct DataFile {
    owner: usize,
    name: String,
    text: String,
    data_sets: usize,
}

fn data_file<'a>(files: &'a mut Vec<DataFile>, owner: usize, run: &Run) -> &'a mut DataFile {
    let at = files.iter().position(|file| file.owner == owner).unwrap_or_else(|| {
        let stem = safe_name(&run.header.id);
        let taken = files.iter().any(|file| file.name == format!("{stem}.dat"));
        let name = if taken { format!("{stem}-{}.dat", owner + 1) } else { format!("{stem}.dat") };
        let about = format!("{}: {}", labels::title(run), labels::hosts(run));
        let command = run.header.command.join(" ");
        let text = format!("# {}\n# {}\n", comment(&about), comment(&command));
        files.push(DataFile { owner, name, text, data_sets: 0 });
        files.len() - 1
    });
    &mut files[at]
}

impl DataFile {
    /// Writes a series and returns the index of its data set.
    fn append(&mut self, figure: &Figure, series: &Series) -> usize {
        if self.data_sets > 0 {
            self.text.push_str("\n\n");
        }
        let _ = writeln!(self.text, "# {}: {}", comment(&figure.id), comment(&series.name));
        let (x, y) = (&figure.x, &figure.y);
        let _ = writeln!(
            self.text,
            "# {} ({}), {} ({}), low and high end of its interval ({}), ? for none",
            x.label, x.unit, y.label, y.unit, y.unit
        );
        let (mut begun, mut gap) = (false, false);
        for point in &series.points {
            if point.x.is_nan() || point.y.is_nan() {
                gap = begun;
                continue;
            }
            // An empty line is a gap in the line; two would end the series.
            if std::mem::take(&mut gap) {
                self.text.push('\n');
            }
            begun = true;
            let shown = Span::drawable(x.scale, point.x) && Span::drawable(y.scale, point.y);
            let end = |end: Option<f64>| end.filter(|_| shown).filter(|end| Span::drawable(y.scale, *end));
            let coordinate = |value: f64| if shown { value.to_string() } else { "?".to_owned() };
            // An interval is drawn only if both ends can be.
            let ends = end(point.low).zip(end(point.high));
            let (low, high) = ends.map_or(("?".into(), "?".into()), |(low, high)| (low.to_string(), high.to_string()));
            let _ = writeln!(self.text, "{} {} {low} {high}", coordinate(point.x), coordinate(point.y));
        }
        self.data_sets += 1;
        self.data_sets - 1
    }
}

/// The line through the points, and the intervals where there are any, in the same colour.
fn plot_items(file: &str, data_set: usize, series: &Series, index: usize) -> Vec<String> {
    let (title, style) = (quoted(&fit(&series.name, 12.0, 760.0)), index + 1);
    if series.reference {
        return vec![format!(
            "'{file}' index {data_set} using 1:2 with lines dashtype 2 linetype {style} title {title}"
        )];
    }
    if series.stacked {
        let columns = "using 1:2:($1*0.9):($1*1.1):3:4 with boxxyerrorbars fillstyle solid 0.8";
        return vec![format!("'{file}' index {data_set} {columns} linetype {style} title {title}")];
    }
    let many = series.points.len() > 130;
    let with = if many { "lines" } else { "linespoints" };
    let line = format!("'{file}' index {data_set} using 1:2 with {with} linetype {style} title {title}");
    if !series.points.iter().any(|point| point.low.is_some() && point.high.is_some()) {
        return vec![line];
    }
    let bars = format!("'{file}' index {data_set} using 1:2:3:4 with yerrorbars linetype {style} pointtype 0 notitle");
    // The markers last, so that they are above the bars.
    vec![bars, line]
}

fn preamble(stem: &str) -> String {
    let name = safe_name(stem);
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
# Colours that people with any colour vision can distinguish (Okabe and Ito).
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
    // A tick's text is a format, in which a percent sign is doubled.
    let tics = |ticks: &Ticks| {
        let marks: Vec<String> =
            ticks.major.iter().map(|(value, text)| format!("{} {value:e}", quoted(&text.replace('%', "%%")))).collect();
        marks.join(", ")
    };
    let mut text = format!("\n# {}\n", comment(&figure.title));
    let id = safe_name(&figure.id);
    let _ = writeln!(text, "if (term eq 'png' || term eq 'eps') {{ set output '{id}.'.term }}");
    let _ = writeln!(text, "if (term eq 'screen') {{ eval 'set terminal '.GPVAL_TERM.' {window}' }}");
    let _ = writeln!(text, "set title {}", title(figure));
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
            // Text extends towards the middle, to stay within the frame.
            let (side, away) = if x.position(mark.x) > Some(0.6) { ("right", -1) } else { ("left", 1) };
            let point = "point pointtype 6 pointsize 1.6";
            let _ = writeln!(text, "set label {label} at {at} {side} {point} offset {away},-1");
        }
    }
    // Below the plot the key covers no data.
    text.push_str("set key below height 1\n");
    let _ = writeln!(text, "plot {}", plots.join(", \\\n     "));
    text
}

/// Title and subtitle, wrapped at the width of the figure.
fn title(figure: &Figure) -> String {
    let subtitle = wrap(&figure.subtitle, 12.0, 720.0, 3);
    let lines: Vec<String> = [&figure.title].into_iter().chain(&subtitle).map(|line| quoted(line)).collect();
    lines.join(".\"\\n\".")
}

/// A gnuplot string: within single quotes nothing is expanded, and a doubled quote is a quote.
fn quoted(text: &str) -> String {
    format!("'{}'", comment(text).replace('\'', "''"))
}

/// `text` on one line, without what could end a comment or a string.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\u{2028}' || c == '\u{2029}' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::{env, fs, process};

    use super::*;
    use crate::sample;

    /// Runs the script in a directory of its own and returns the names and contents of its output files.
    fn redraw(what: &str, runs: &[Run], arguments: &[&str]) -> Vec<(String, Vec<u8>)> {
        let directory = env::temp_dir().join(format!("throughline-gnuplot-{}-{what}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pieces = render(&View::new(runs)).unwrap();
        for piece in &pieces {
            fs::write(directory.join(&piece.name), &piece.bytes).unwrap();
        }
        let run =
            Command::new("/usr/bin/gnuplot").args(arguments).arg(&pieces[0].name).current_dir(&directory).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{what}: {}", String::from_utf8_lossy(&run.stderr));
        let mut images: Vec<(String, Vec<u8>)> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .filter(|(name, _)| !pieces.iter().any(|piece| piece.name == *name))
            .collect();
        images.sort();
        fs::remove_dir_all(&directory).unwrap();
        images
    }

    fn names(images: &[(String, Vec<u8>)]) -> Vec<&str> {
        images.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn gnuplot_draws_every_figure_as_png_and_eps() {
        if !Path::new("/usr/bin/gnuplot").exists() {
            eprintln!("SKIPPED: /usr/bin/gnuplot is not installed, so the scripts were not run");
            return;
        }
        for (what, runs) in sample::gallery() {
            let figures = crate::figures(&runs);
            if figures.is_empty() {
                continue;
            }
            for (term, head, arguments) in
                [("png", &b"\x89PNG"[..], vec![]), ("eps", &b"%!PS-Adobe"[..], vec!["-e", "term=\"eps\"; mono=1"])]
            {
                let mut wanted: Vec<String> = figures.iter().map(|figure| format!("{}.{term}", figure.id)).collect();
                wanted.sort();
                let images = redraw(&format!("{what}-{term}"), &runs, &arguments);
                assert_eq!(names(&images), wanted, "{what}");
                assert!(images.iter().all(|(_, bytes)| bytes.starts_with(head) && bytes.len() > 2_000), "{what}");
            }
        }
    }

    #[test]
    fn a_name_cannot_become_a_command() {
        let text = quoted("it's `touch x` \"$(y)\" \\ @m\n!rm");
        assert_eq!(text, "'it''s `touch x` \"$(y)\" \\ @m !rm'");
        let runs = [sample::hostile()];
        for piece in render(&View::new(&runs)).unwrap() {
            let text = String::from_utf8(piece.bytes).unwrap();
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{}", piece.name);
            // No line of the script begins with what the name has after its line break.
            assert!(text.lines().all(|line| !line.starts_with("@x")), "{}", piece.name);
        }
    }

    #[test]
    fn data_sets_hold_the_points_of_the_figures() {
        let runs = [sample::curve()];
        let pieces = render(&View::new(&runs)).unwrap();
        let text = std::str::from_utf8(&pieces[1].bytes).unwrap();
        let data_sets: Vec<&str> = text.split("\n\n\n").collect();
        let figures = crate::figures(&runs);
        assert_eq!(data_sets.len(), figures.len());
        for (data_set, figure) in data_sets.iter().zip(&figures) {
            let rows: Vec<Vec<f64>> = data_set
                .lines()
                .filter(|line| !line.starts_with('#') && !line.is_empty())
                .map(|line| line.split(' ').map(|field| field.parse().unwrap()).collect())
                .collect();
            let points: Vec<Vec<f64>> = figure.series[0]
                .points
                .iter()
                .map(|point| vec![point.x, point.y, point.low.unwrap(), point.high.unwrap()])
                .collect();
            assert_eq!(rows, points, "{}", figure.id);
        }
    }
}

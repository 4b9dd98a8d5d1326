//! A gnuplot script, with comments on what to change, and a data file for each run. Ranges, ticks, colours and arrows are those of
//! the PNG: both take them from the same layout.

mod data;
mod script;

use drawing::Sheet;

use crate::figures::Drawn;
use crate::view::stem;
use crate::{Piece, ReportError, View};
use data::{DataFile, data_file};

/// The script first, then a data file for each run that has a point to draw.
pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("gnuplot")?;
    let drawn = view.drawn()?;
    if drawn.is_empty() {
        return Err(ReportError::NothingToDraw { format: "gnuplot" });
    }
    let beside = |name: &str| format!("{}{name}", view.beside);
    let mut files: Vec<DataFile> = Vec::new();
    // Under which name it is written, if that is given.
    let own = view.beside.strip_suffix('-').unwrap_or(stem(view.runs));
    let mut text = script::preamble(own);
    // The layout is that of a wide picture.
    let sheet = Sheet { width: drawing::WIDTH, ..view.sheet() };
    for (window, Drawn { figure, owners }) in drawn.iter().enumerate() {
        let section = script::Section::new(figure, sheet);
        let mut plots: Vec<Vec<String>> = vec![Vec::new(); section.panels()];
        let mut bands = plots.clone();
        if figure.matrix.is_some() {
            let owner = owners.first().copied().unwrap_or(0);
            for (panel, plots) in plots.iter_mut().enumerate() {
                let file = data_file(&mut files, owner, &view.runs[owner]);
                let data_set = file.append_matrix(figure, panel, sheet.rates);
                plots.extend(section.cells(&beside(&file.name), data_set));
            }
        }
        let mut sets: Vec<(String, usize)> = Vec::new();
        for (index, (series, owner)) in figure.series.iter().zip(owners).enumerate() {
            let file = data_file(&mut files, *owner, &view.runs[*owner]);
            let data_set = file.append(figure, series, section.span_of(index));
            let name = beside(&file.name);
            sets.push((name.clone(), data_set));
            for (panel, plots) in plots.iter_mut().enumerate() {
                if series.is_in(panel) {
                    bands[panel].extend(section.bands(&name, data_set, index));
                    plots.extend(section.items(&name, data_set, index));
                }
            }
        }
        for (panel, plots) in plots.iter_mut().enumerate() {
            let behind = section.behind(&sets, panel).into_iter().chain(std::mem::take(&mut bands[panel]));
            plots.splice(0..0, behind);
        }
        text.push_str(&section.text(window, &plots));
    }
    let script = Piece::new(stem(view.runs), "gp", text.into_bytes());
    let data = files.into_iter().map(|file| Piece { name: file.name, bytes: file.text.into_bytes() });
    Ok([script].into_iter().chain(data).collect())
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
    #![allow(clippy::disallowed_methods, reason = "gnuplot reads and writes files")]

    use std::path::Path;
    use std::process::Command;
    use std::{env, fs, process};

    use model::Run;

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
    fn ranges_scales_and_arrows_are_those_of_the_picture() {
        let runs = sample::overlaid();
        let axes = crate::Axes { x: Some("1KiB:1MiB".parse().unwrap()), ..crate::Axes::default() };
        let view = View { axes, ..View::new(&runs) };
        let script = String::from_utf8(render(&view).unwrap().remove(0).bytes).unwrap();
        let figure = &view.drawn().unwrap()[0].figure;
        let (x, y) = drawing::span::spans(figure);
        assert!(script.contains(&format!("set xrange [{:e}:{:e}]\n", x.low, x.high)));
        assert!(script.contains(&format!("set yrange [{:e}:{:e}]\n", y.low, y.high)));
        assert_eq!((x.low, x.high), (1_024.0, 1_048_576.0));
        let throughput = script.split("\n# ").find(|part| part.starts_with("Throughput")).unwrap();
        // All five curves go on at either side; the ceiling is above.
        let count = |by: &str| throughput.matches(&format!("rto graph {by} head")).count();
        assert!(count("-0.02,0") >= 4 && count("0.02,0") >= 4 && count("0,0.03") >= 1, "{throughput}");
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

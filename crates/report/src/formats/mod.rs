//! The registry of output formats: one file and one line each.

mod advice_screen;
mod answer;
mod answer_rows;
mod braille;
#[cfg(feature = "parquet")]
mod cell_columns;
mod check_screen;
mod csv;
mod curve_screen;
mod gnuplot;
mod groups;
mod html;
mod json;
mod markdown;
mod mesh_screen;
mod ndjson;
mod np;
mod np_screen;
mod outcome_columns;
mod page;
mod pair_screen;
#[cfg(feature = "parquet")]
mod parquet;
mod peers;
mod plan_screen;
mod png;
mod svg;
mod table;
mod text;
mod traffic_screen;
#[cfg(any(feature = "xlsx", feature = "parquet"))]
mod trial_columns;
mod value;
#[cfg(feature = "xlsx")]
mod xlsx;

pub use self::html::{page_data, page_shell};
pub use self::page::{Fact, PageLook, command_line, facts_of, page_look};
use drawing::Sheet;
use model::{Figure, RunKind, Spec};

use crate::{Axes, NoForm, Piece, ReportError, View};

/// An output format.
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Its file extensions, without the dot; files are written with the first.
    pub extensions: &'static [&'static str],
    /// Whether it is a page or a picture for people, which `thru report` writes.
    pub is_page: bool,
    /// The options of figures that it uses: `figure`, `width`, `x-range`, `y-range`, `log`.
    pub options: &'static [&'static str],
    /// One line of help.
    pub help: &'static str,
    /// The program whose output it is like, if it is another one.
    pub program: Option<&'static str>,
    /// Whether it can express a measurement of a kind of run (`curve`, `stream`...) with this spec.
    ///
    /// # Errors
    /// What it cannot express.
    pub takes: fn(kind: RunKind, spec: &Spec) -> Result<(), NoForm>,
    /// Makes the output of a view; most formats make one piece.
    pub render: fn(&View<'_>) -> Result<Vec<Piece>, ReportError>,
}

impl Format {
    /// Refuses options of figures that the format would ignore.
    ///
    /// # Errors
    /// [`ReportError::Option`] with the formats that the option is for.
    pub fn check(&self, view: &View<'_>) -> Result<(), ReportError> {
        let View { figure, pixels, axes: Axes { x, y, log }, .. } = view;
        let given = [
            ("figure", figure.is_some()),
            ("width", pixels.is_some()),
            ("x-range", x.is_some()),
            ("y-range", y.is_some()),
            ("log", log.is_some()),
        ];
        let Some((option, _)) = given.into_iter().find(|(name, given)| *given && !self.options.contains(name)) else {
            return Ok(());
        };
        let users =
            FORMATS.iter().filter(|format| format.options.contains(&option)).map(|format| format.name).collect();
        Err(ReportError::Option { option, users, format: self.name })
    }
}

/// Options of pictures, and of outputs with all figures.
const OF_PICTURES: &[&str] = &["figure", "width", "x-range", "y-range", "log"];
const OF_FIGURES: &[&str] = &["x-range", "y-range", "log"];

/// All formats; those to be read by people are first.
#[rustfmt::skip]
pub const FORMATS: &[Format] = &[
    Format { name: "text", extensions: &["txt"], is_page: false, options: &[], help: "report for a terminal: table, plot, findings, explained verdicts", program: None, takes: anything, render: text::render },
    Format { name: "html", extensions: &["html", "htm"], is_page: true, options: OF_FIGURES, help: "one self-contained page with figures, tables and both hosts' inventory", program: None, takes: anything, render: html::render },
    Format { name: "md", extensions: &["md", "markdown"], is_page: true, options: &[], help: "tables and findings as Markdown", program: None, takes: anything, render: markdown::render },
    Format { name: "svg", extensions: &["svg"], is_page: true, options: OF_PICTURES, help: "figures as vector graphics, one file each", program: None, takes: anything, render: svg::render },
    Format { name: "png", extensions: &["png"], is_page: true, options: OF_PICTURES, help: "figures as pixels, one file each", program: None, takes: anything, render: png::render },
    Format { name: "gnuplot", extensions: &["gp"], is_page: false, options: OF_FIGURES, help: "a gnuplot script and its data files, to redraw as PNG or EPS", program: None, takes: anything, render: gnuplot::render },
    Format { name: "json", extensions: &["json"], is_page: false, options: &[], help: "the whole run as one document; an array for several runs", program: None, takes: anything, render: json::render },
    Format { name: "ndjson", extensions: &["ndjson", "jsonl"], is_page: false, options: &[], help: "the run as events, one JSON object per line", program: None, takes: anything, render: ndjson::render },
    Format { name: "csv", extensions: &["csv"], is_page: false, options: &[], help: "one line for each outcome: spec and summary", program: None, takes: anything, render: csv::render },
    #[cfg(feature = "xlsx")]
    Format { name: "xlsx", extensions: &["xlsx"], is_page: false, options: &[], help: "a workbook with native charts: summary, outcomes, trials, figures, both hosts", program: None, takes: anything, render: xlsx::render },
    #[cfg(feature = "parquet")]
    Format { name: "parquet", extensions: &["parquet"], is_page: false, options: &[], help: "one row for each trial with typed columns, for DuckDB, Spark and pandas", program: None, takes: anything, render: parquet::render },
    #[cfg(feature = "parquet")]
    Format { name: "cells", extensions: &["cells"], is_page: false, options: &[], help: "as parquet, but only where, when and what value: a few bytes for each pair and round of a mesh", program: None, takes: anything, render: parquet::render_cells },
    Format { name: "np", extensions: &["out", "np"], is_page: false, options: &[], help: "NetPIPE 3.7.2's np.out: bytes, 2^20 bit/s, seconds (curves only; of a plan a file for each)", program: Some("NetPIPE"), takes: np::takes, render: np::render },
    Format { name: "np2", extensions: &["np2"], is_page: false, options: &[], help: "NetPIPE 2's file, for scripts that plot columns 4:2: seconds, 2^20 bit/s, bits, bytes, variance (curves only; of a plan a file for each)", program: Some("NetPIPE"), takes: np::takes, render: np::render_2 },
    Format { name: "np-screen", extensions: &["screen", "netpipe"], is_page: false, options: &[], help: "the screen output of NetPIPE 3.7.2 (curves only); also called netpipe", program: Some("NetPIPE"), takes: np::takes, render: np_screen::render },
    peers::IPERF3,
    peers::IPERF3_JSON,
    peers::NETPERF,
    peers::NETPERF_KEYS,
    peers::NTTCP,
    peers::RAPID,
];

/// One figure as `svg` or `png`, [`View::PIXELS`] wide.
///
/// # Errors
/// The pixels cannot be made.
pub fn picture(figure: &Figure, format: &str) -> Result<Piece, ReportError> {
    let sheet = Sheet::new(f64::from(View::PIXELS));
    if format == "png" { png::piece(figure, sheet) } else { Ok(svg::piece(figure, sheet)) }
}

/// Accepts every measurement.
#[allow(clippy::unnecessary_wraps, reason = "the type of `Format::takes`")]
fn anything(_: RunKind, _: &Spec) -> Result<(), NoForm> {
    Ok(())
}

/// The format called `name`, or the one with this file extension.
#[must_use]
pub fn format(name: &str) -> Option<&'static Format> {
    let requested = name.to_ascii_lowercase();
    let by_name = FORMATS.iter().find(|format| format.name == requested);
    by_name.or_else(|| FORMATS.iter().find(|format| format.extensions.contains(&requested.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn names_and_extensions_are_unique() {
        let mut all: Vec<&str> = FORMATS.iter().flat_map(|format| format.extensions.iter().copied()).collect();
        all.sort_unstable();
        assert_eq!(format("JSONL").unwrap().name, "ndjson");
        assert!(format("pdf").is_none());
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        assert!(FORMATS.iter().all(|one| format(one.name).unwrap().name == one.name));
    }

    #[test]
    fn an_option_that_a_format_ignores_is_refused_with_those_that_use_it() {
        let refused =
            |name: &str, view: View<'_>| format(name).unwrap().check(&view).map_err(|error| error.to_string());
        let narrow = || View { pixels: Some(400), ..View::new(&[]) };
        assert_eq!(refused("html", narrow()), Err("`--width` is for svg, png, not for html".to_owned()));
        assert_eq!(refused("png", narrow()), Ok(()));
        let log = Axes { log: Some("x".parse().unwrap()), ..Axes::default() };
        let said = refused("md", View { axes: log, ..View::new(&[]) });
        assert_eq!(said, Err("`--log` is for html, svg, png, gnuplot, not for md".to_owned()));
        assert!(FORMATS.iter().all(|format| format.check(&View::new(&[])).is_ok()));
    }

    #[test]
    fn every_format_takes_every_run_or_says_why_not() {
        for (number, (what, runs)) in sample::gallery().into_iter().enumerate() {
            // Small images of some runs, because drawing them takes most of the time: `png` has tests of all figures.
            for format in FORMATS.iter().filter(|format| format.name != "png" || number % 8 == 0) {
                match (format.render)(&View { pixels: Some(200), ..View::new(&runs) }) {
                    Ok(pieces) => {
                        assert!(!pieces.is_empty(), "{what} as {}", format.name);
                        let mut names: Vec<&str> = pieces.iter().map(|piece| piece.name.as_str()).collect();
                        names.sort_unstable();
                        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{what}: {names:?}");
                        assert!(pieces.iter().all(|piece| !piece.bytes.is_empty() && !piece.name.contains('/')));
                    }
                    // These take every run: an error is a fault of ours.
                    Err(error @ (ReportError::Workbook { .. } | ReportError::Parquet { .. })) => {
                        panic!("{what} as {}: {error}", format.name)
                    }
                    Err(error) => assert!(error.to_string().contains(':'), "{what} as {}: {error}", format.name),
                }
            }
        }
    }

    #[test]
    fn no_run_is_refused_by_all() {
        for format in FORMATS {
            let refused = (format.render)(&View::new(&[]));
            assert!(matches!(refused, Err(ReportError::NoRuns { .. })), "{}", format.name);
        }
    }
}

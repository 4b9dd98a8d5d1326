//! The input and the output of a format.

use drawing::Sheet;
use model::{Figure, Run};

use crate::figures::Drawn;
use crate::sections::merit::Distance;
use crate::{Axes, Layout, ReportError};

/// The runs to report on, with the options of some formats. A format ignores the options that it does not use.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The runs, in the order of their series.
    pub runs: &'a [Run],
    /// `svg` and `png`: the id of the only figure to draw; `None` for all.
    pub figure: Option<&'a str>,
    /// `text`: its lines. Other texts have the same spelling.
    pub layout: Layout,
    /// `text`: whether to draw the first figure in characters too.
    pub plot: bool,
    /// `text`: how to see the whole report of a run of which only the answer is printed; `None` prints all of it.
    pub whole: Option<&'a str>,
    /// `text`: the distance between the hosts, for the rate times distance of each run.
    pub distance: Option<Distance>,
    /// `png` and `svg`: width in pixels; the height follows from the figure. Below 960 the figure is laid out for a narrow place.
    /// Otherwise [`PIXELS`](Self::PIXELS).
    pub pixels: Option<u32>,
    /// `svg`, `png`, `html` and `gnuplot`: ranges and scales of the axes.
    pub axes: Axes,
    /// `gnuplot`: what the names of the files beside the script begin with.
    pub beside: &'a str,
}

impl<'a> View<'a> {
    /// Width of a picture.
    pub const PIXELS: u32 = 1600;

    /// A view of `runs` with the defaults: every figure, 100 columns, with a plot, every row.
    #[must_use]
    pub fn new(runs: &'a [Run]) -> Self {
        Self {
            runs,
            figure: None,
            layout: Layout::default(),
            plot: true,
            whole: None,
            distance: None,
            pixels: None,
            axes: Axes::default(),
            beside: "",
        }
    }

    /// What pictures are drawn on: of the requested width, or of the default one.
    pub(crate) fn sheet(&self) -> Sheet {
        let width = f64::from(self.pixels.unwrap_or(Self::PIXELS));
        Sheet { rates: self.layout.spelling.rates, ..Sheet::new(width) }
    }

    /// The figures that `format` draws: the named one, or all.
    pub(crate) fn figures(&self, format: &'static str) -> Result<Vec<Figure>, ReportError> {
        let mut chosen = self.chosen(format)?;
        self.axes.apply(chosen.iter_mut())?;
        Ok(chosen)
    }

    /// All figures, which may be none, with the axes that are requested.
    pub(crate) fn drawn(&self) -> Result<Vec<Drawn>, ReportError> {
        let mut drawn = crate::figures::drawn(self.runs);
        if !drawn.is_empty() {
            self.axes.apply(drawn.iter_mut().map(|drawn| &mut drawn.figure))?;
        }
        Ok(drawn)
    }

    fn chosen(&self, format: &'static str) -> Result<Vec<Figure>, ReportError> {
        self.some_run(format)?;
        let mut figures = crate::figures(self.runs);
        let Some(requested) = self.figure else {
            return if figures.is_empty() { Err(ReportError::NothingToDraw { format }) } else { Ok(figures) };
        };
        // Figures of the hosts and the path are drawn only by name; of several runs, those of the first that has any.
        figures
            .extend(self.runs.iter().map(crate::host_figures).find(|figures| !figures.is_empty()).unwrap_or_default());
        figures.extend(self.runs.iter().find_map(crate::topology));
        if figures.is_empty() {
            return Err(ReportError::NothingToDraw { format });
        }
        let available = figures.iter().map(|figure| figure.id.as_str()).collect::<Vec<_>>().join(", ");
        figures
            .into_iter()
            .find(|figure| figure.id == requested)
            .map(|figure| vec![figure])
            .ok_or_else(|| ReportError::NoFigure { format, requested: requested.to_owned(), available })
    }

    /// Refuses a view without runs.
    pub(crate) fn some_run(&self, format: &'static str) -> Result<(), ReportError> {
        if self.runs.is_empty() { Err(ReportError::NoRuns { format }) } else { Ok(()) }
    }
}

/// One file of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// File name without a directory, made of letters, digits, `.`, `_` and `-` only.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Piece {
    /// A file called `stem` (made safe) with `extension`.
    pub(crate) fn new(stem: &str, extension: &str, bytes: Vec<u8>) -> Self {
        Self { name: format!("{}.{extension}", safe_name(stem)), bytes }
    }
}

/// The stem of a file about all runs: the run's id, or `runs` for several.
pub(crate) fn stem(runs: &[Run]) -> &str {
    match runs {
        [run] => &run.header.id,
        _ => "runs",
    }
}

/// `text` as a file name: anything but ASCII letters, digits, `.`, `_` and `-` becomes `-`, and it cannot be hidden,
/// empty or taken for an option.
pub(crate) fn safe_name(text: &str) -> String {
    let kept: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).take(100).collect();
    let kept = kept.trim_start_matches(['.', '-']);
    if kept.is_empty() { "run".to_owned() } else { kept.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_directory() {
        assert_eq!(safe_name("../../etc/passwd"), "etc-passwd");
        assert_eq!(safe_name("20261121-203758-4f1a"), "20261121-203758-4f1a");
        assert_eq!(safe_name(".."), "run");
        assert_eq!(safe_name("--help"), "help");
        assert_eq!(safe_name("a b\n'c"), "a-b--c");
    }
}

//! All that the page shows: texts as JSON, and the points of its figures as columns of numbers.

mod columns;
mod figures;
mod hosts;
mod method;
mod pairs;
mod run;
mod tables;

use serde::Serialize;

use crate::view::stem;
use crate::{ReportError, View, labels};
use columns::Columns;
use drawing::theme::{DARK, LIGHT, Theme};
use figures::FigurePart;
pub use hosts::{Fact, facts_of};
#[cfg(feature = "xlsx")]
pub(super) use hosts::{differences, environment};
pub use method::command_line;
use run::RunPart;
use tables::Table;

/// Number of the layout of the JSON and the columns: the script of another one does not read it.
const VERSION: u32 = 1;

/// The colours of figures.
#[derive(Debug, Serialize)]
pub struct PageLook {
    light: &'static Theme,
    dark: &'static Theme,
}

/// The colours of the figures of a page.
#[must_use]
pub fn page_look() -> PageLook {
    PageLook { light: &LIGHT, dark: &DARK }
}

/// What a page shows.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    version: u32,
    pub(super) title: String,
    /// What downloads are called.
    stem: String,
    #[serde(flatten)]
    look: PageLook,
    runs: Vec<RunPart>,
    figures: Vec<FigurePart>,
    /// What differs between the environments of several runs.
    differing: Option<Table>,
    #[serde(skip)]
    columns: Columns,
}

impl Page {
    /// The page of a view.
    pub(super) fn new(view: &View<'_>) -> Result<Self, ReportError> {
        let runs = view.runs;
        let mut columns = Columns::default();
        let figures = figures::all(view.drawn()?, runs, &mut columns);
        let title = match runs {
            [run] => labels::plain(&labels::title(run)),
            _ => format!("{} runs compared", runs.len()),
        };
        Ok(Self {
            version: VERSION,
            title,
            stem: crate::view::safe_name(stem(runs)),
            look: page_look(),
            runs: runs.iter().map(|run| RunPart::new(run, view.layout)).collect(),
            figures,
            differing: hosts::between(runs),
            columns,
        })
    }

    /// Title and result of each run, for a reader without the script.
    pub(super) fn results(&self) -> impl Iterator<Item = (&str, &str)> {
        self.runs.iter().map(|run| (run.title.as_str(), run.result.as_str()))
    }

    /// The length of the JSON (32 bits, little endian), the JSON, and the columns.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).map_err(serde::ser::Error::custom)?;
        Ok([&length.to_le_bytes(), json.as_slice(), &self.columns.bytes].concat())
    }
}

//! All that the page shows: texts as JSON, and the points of its figures as columns of numbers.

mod columns;
mod compared;
mod figures;
mod hosts;
mod method;
mod pairs;
mod run;
mod tables;

use model::Run;
use serde::Serialize;

use crate::view::stem;
use crate::{ReportError, View, labels};
use columns::Columns;
use compared::Compared;
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
    /// What its tab, a printed file and a search are called: the tool, what was measured, the hosts and the day.
    pub(super) document: String,
    pub(super) title: String,
    /// What downloads are called.
    stem: String,
    #[serde(flatten)]
    look: PageLook,
    pub(super) runs: Vec<RunPart>,
    /// How the other runs differ from the first, if there are several.
    pub(super) compared: Option<Compared>,
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
        let names = compared::names(runs);
        let title = match names.as_slice() {
            [only] => only.clone(),
            [first, second] => format!("{first} and {second}"),
            [first, rest @ ..] => format!("{first} and {} other runs", rest.len()),
            [] => String::new(),
        };
        Ok(Self {
            version: VERSION,
            document: document(runs, &title),
            title,
            stem: crate::view::safe_name(stem(runs)),
            look: page_look(),
            runs: runs.iter().map(|run| RunPart::new(run, view.layout)).collect(),
            compared: compared::of(runs, view.layout),
            figures,
            differing: hosts::between(runs),
            columns,
        })
    }

    /// The length of the JSON (32 bits, little endian), the JSON, and the columns.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).map_err(serde::ser::Error::custom)?;
        Ok([&length.to_le_bytes(), json.as_slice(), &self.columns.bytes].concat())
    }
}

/// `thru stream: bulk, alpha to beta, 2026-11-28`.
fn document(runs: &[Run], title: &str) -> String {
    let [first, ..] = runs else { return title.to_owned() };
    let hosts = labels::plain(&labels::hosts(first));
    let begun = labels::begun(first);
    let day = begun.trim_start_matches("imported ").split(' ').next().unwrap_or_default();
    match (runs, &first.header.name) {
        ([run], None) => format!("thru {}: {hosts}, {day}", run.header.kind),
        ([run], Some(_)) => format!("thru {}: {title}, {hosts}, {day}", run.header.kind),
        _ => format!("thru compare: {title}, {hosts}, {day}"),
    }
}

//! The whole run as one JSON document.

use model::{Run, RunDocument};
use serde::Serialize;

use crate::headline::summary;
use crate::view::stem;
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("json")?;
    let mut bytes = match view.runs {
        [run] => pretty(&document(run), view)?,
        runs => pretty(&runs.iter().map(document).collect::<Vec<_>>(), view)?,
    };
    bytes.push(b'\n');
    Ok(vec![Piece::new(stem(view.runs), "json", bytes)])
}

fn document(run: &Run) -> RunDocument<'_> {
    RunDocument { summary: summary(run), run }
}

fn pretty<T: Serialize>(value: &T, view: &View<'_>) -> Result<Vec<u8>, ReportError> {
    let text = serde_json::to_string_pretty(value);
    text.map(String::into_bytes).map_err(|source| ReportError::Json { run: stem(view.runs).to_owned(), source })
}

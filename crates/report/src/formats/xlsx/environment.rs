//! What differs between the runs, and both hosts of each.

use model::{Change, Run};
use rust_xlsxwriter::XlsxError;

use super::book::Book;
use crate::formats::page::{differences, environment};
use crate::formats::value::text;
use crate::labels;

/// Adds the sheet of the hosts; with several runs also that of the differences.
pub(super) fn add(book: &mut Book, runs: &[Run]) -> Result<(), XlsxError> {
    if let Some((head, rows)) = differences(runs).filter(|(_, rows)| !rows.is_empty()) {
        let mut sheet = book.sheet("differences", "what differs between the environments of the runs")?;
        sheet.head(1, head.iter().map(|name| if name.is_empty() { "fact" } else { name }))?;
        for row in rows {
            sheet.line(row.iter().map(text))?;
        }
        book.push(sheet);
    }
    let mut sheet = book.sheet("environment", "both hosts, the path and the settings")?;
    sheet.head(4, ["run", "name", "group", "fact", "near", "far", "differs"])?;
    for run in runs {
        let of = [text(&run.header.id), text(labels::title(run))];
        for [group, name, near, far, differs] in environment(&run.header) {
            sheet.line(of.clone().into_iter().chain([
                text(group),
                text(name),
                text(near),
                text(far),
                text(differs),
            ]))?;
        }
        let settings = run.header.settings.iter();
        for (end, change) in settings.flat_map(|settings| {
            let near = settings.near.iter().map(|change| ("near", change));
            near.chain(settings.far.iter().map(|change| ("far", change)))
        }) {
            let [near, far] = ["near", "far"].map(|which| (which == end).then(|| changed(change)).and_then(text));
            let names = [text("settings changed for this run"), text(&change.key)];
            sheet.line(of.clone().into_iter().chain(names).chain([near, far, None]))?;
        }
    }
    book.push(sheet);
    Ok(())
}

fn changed(change: &Change) -> String {
    format!("{} (before: {})", change.now, change.before)
}

//! Settings that a process has left, and changes of settings as text.

use host::tune::{self, Journal, RealBackend, TuneError};
use model::Change;

/// Reverts the settings that killed processes on this host have left; one line for each journal record.
///
/// # Errors
/// The journal cannot be read.
pub fn recover(journal: &Journal) -> Result<Vec<String>, TuneError> {
    let found = tune::recover(journal, &RealBackend)?;
    Ok(found
        .iter()
        .map(|found| {
            format!("reverted the settings that '{}' left behind: {}", found.command, changes_line(&found.changes))
        })
        .collect())
}

/// Changes as one line of text.
#[must_use]
pub fn changes_line(changes: &[Change]) -> String {
    let one = |change: &Change| match &change.note {
        Some(note) => format!("{} is {} ({note})", change.key, change.now),
        None => format!("{} is {}", change.key, change.now),
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

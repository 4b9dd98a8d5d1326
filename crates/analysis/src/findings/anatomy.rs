//! What the time of a round trip goes to, if its parts were stamped.

use model::{Finding, FindingKind, Outcome};

use crate::anatomy::sentence;

/// `None` for an outcome that was not to be divided.
pub(super) fn of_parts(outcome: &Outcome) -> Option<Finding> {
    Some(Finding {
        kind: FindingKind::Note,
        statement: sentence(outcome)?,
        estimate: None,
        comparison: None,
        block: None,
        cells: vec![outcome.cell],
    })
}

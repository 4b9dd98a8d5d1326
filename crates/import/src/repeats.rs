//! Measurements that a text has twice: an output and its copy, or the events of a test and its document.

use std::collections::BTreeMap;

use crate::listing::Imported;

/// Leaves out what repeats an earlier measurement, which gets a note. Equal figures are no repetition by themselves: tests of a steady
/// path print the same again. The time or the ports of a test tell it from another.
pub(crate) fn leave_out(imported: &mut Vec<Imported>) {
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut kept: Vec<Imported> = Vec::new();
    for one in std::mem::take(imported) {
        let Some(identity) = identity(&one) else {
            kept.push(one);
            continue;
        };
        let alike = known.entry(identity).or_default();
        match alike.iter().copied().find(|at| is_same(&kept[*at], &one)) {
            Some(at) => {
                let line = one.rows.first().map_or(0, |row| row.line);
                kept[at].notes.push(format!("the text has this measurement again in line {line}: it is imported once"));
            }
            None => {
                alike.push(kept.len());
                kept.push(one);
            }
        }
    }
    *imported = kept;
}

/// When a measurement was made or by which socket; `None` if the text has neither.
fn identity(imported: &Imported) -> Option<String> {
    imported.rows.iter().any(|row| row.trial.value.is_some()).then_some(())?;
    let flows = || imported.rows.iter().flat_map(|row| &row.trial.near.flows);
    // A listener has no peer, and its port again in the next test.
    let socket = || flows().find_map(|flow| flow.socket.peer.as_ref().and(flow.socket.local.clone()));
    let own = imported.measured_unix_ns.map(|ns| ns.to_string()).or_else(socket)?;
    Some(format!("{} {own}", imported.tool))
}

fn is_same(a: &Imported, b: &Imported) -> bool {
    let rows = a.rows.iter().zip(&b.rows);
    a.target == b.target
        && a.rows.len() == b.rows.len()
        && rows
            .into_iter()
            .all(|(a, b)| (&a.spec, &a.levels, &a.trial, &a.figures) == (&b.spec, &b.levels, &b.trial, &b.figures))
}

//! Several results of one program, as a loop prints them: one run with a trial for each.

use model::{RunKind, Stop};

use crate::listing::Imported;

/// A result with one row.
pub(super) struct Listed {
    pub(super) imported: Imported,
    /// Whether the text has the size of its messages.
    pub(super) sized: bool,
}

/// Times within this share of each other are those of one request.
const SAME_TIME: f64 = 0.02;

/// Results of the same kind to the same host are one run: those that agree in everything are trials of one measurement. Whether those
/// without a size do agree is not known, because a loop may go through the sizes: each is a measurement of its own.
pub(super) fn gathered(found: Vec<Listed>) -> Vec<Imported> {
    let mut all: Vec<(Imported, bool)> = Vec::new();
    for Listed { mut imported, sized } in found {
        let same = |(other, _): &&mut (Imported, bool)| {
            other.kind == imported.kind
                && other.target == imported.target
                && other.version == imported.version
                && other.notes == imported.notes
                && other.assumed == imported.assumed
                && same_transport(other, &imported)
        };
        match all.iter_mut().find(same) {
            Some((into, _)) => {
                align_times(into, &mut imported);
                into.rows.append(&mut imported.rows);
            }
            None => all.push((imported, sized)),
        }
    }
    all.into_iter().map(|(imported, sized)| finished(imported, sized)).collect()
}

fn same_transport(a: &Imported, b: &Imported) -> bool {
    let of = |imported: &Imported| imported.rows.first().map(|row| row.spec.transport.clone());
    of(a) == of(b)
}

/// Gives rows that ran for about the same time the same length.
fn align_times(into: &Imported, imported: &mut Imported) {
    for row in &mut imported.rows {
        let Stop::TimeNs(own) = row.spec.stop else { continue };
        let same = |other: &Stop| match other {
            Stop::TimeNs(other) => own.abs_diff(*other) as f64 <= SAME_TIME * own.max(*other) as f64,
            _ => false,
        };
        row.spec.stop = into.rows.iter().map(|other| other.spec.stop).find(same).unwrap_or(row.spec.stop);
    }
}

fn finished(mut imported: Imported, sized: bool) -> Imported {
    let first = imported.rows.first().map(|row| row.spec.block);
    if imported.rows.iter().any(|row| Some(row.spec.block) != first) {
        imported.kind = RunKind::Curve;
    }
    if !sized && imported.rows.len() > 1 {
        for row in &mut imported.rows {
            row.levels.insert("listed".into(), format!("line {}", row.line));
        }
        imported.notes.push(
            "several results without message sizes: the sizes may differ, so each is a separate measurement".into(),
        );
    }
    imported
}

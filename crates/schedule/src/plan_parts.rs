//! Parts of a plan's schedule that need no state of their own.

use std::collections::BTreeSet;

use analysis::plan::Slot;
use model::{Cell, Event, Finding, FindingKind, Phase, Spec, Stop, Trial, Verdict};

use crate::Leg;
use crate::curve::Planned;
use crate::state::RunState;

/// A size of a curve that another program measures; without its cell if that is closed.
pub(crate) fn planned_by_peer(state: &RunState, id: u32) -> Option<Planned> {
    let spec = &state.header.cells.iter().find(|cell| cell.id == id)?.spec;
    let open = state.cells.open().any(|open| open.cell.id == id);
    Some((open.then_some(id), Leg::of(spec)))
}

/// The rounds with trials of a slot; sizes of a curve that have converged have fewer than the others.
pub(crate) fn rounds_of(state: &RunState, slot: &Slot) -> u32 {
    let rounds = |cell: u32| {
        let passes: BTreeSet<u32> = state.cells.trials_of(cell).iter().map(|trial| trial.pass).collect();
        passes.len() as u32
    };
    let open = slot.cells().filter(|cell| !state.cells.is_converged(*cell)).map(rounds).min();
    open.or(slot.cells().map(rounds).max()).unwrap_or(0)
}

/// The spec with another trial length, if the length is a time.
pub(crate) fn shortened(spec: &Spec, ns: u64) -> Spec {
    match spec.stop {
        Stop::TimeNs(_) => Spec {
            stop: Stop::TimeNs(ns),
            start_ns: spec.start_ns.map(|_| 0),
            warmup_ns: 0,
            probe: None,
            no_loss: false,
            ..spec.clone()
        },
        _ => spec.clone(),
    }
}

/// Whether a trial was cut short.
pub(crate) fn is_cut(trial: &Trial) -> bool {
    trial.verdicts.contains(&Verdict::CutShort)
}

/// Tells what is done now.
pub(crate) fn report(state: &mut RunState, activity: String, remaining_ns: Option<u64>) {
    let (cells_done, cells) = (state.cells.done().len() as u32, state.header.cells.len() as u32);
    state.event(Event::Phase(Phase { activity, cells_done, cells, remaining_ns }));
}

/// The note that a cell, or all sizes of a curve, were skipped in a round, and why.
pub(crate) fn skipped(cell: &Cell, cells: Vec<u32>, round: u32, what: &str) -> Finding {
    without_trial(cell, cells, &format!("was skipped in round {}: {what}.", round + 1))
}

/// The same for a test that failed twice.
pub(crate) fn failed_twice(cell: &Cell, cells: Vec<u32>, round: u32, reason: &str) -> Finding {
    without_trial(cell, cells, &format!("failed twice in round {}: {reason}.", round + 1))
}

/// The same for tests that are measured at the same time, of which `cell` is the first.
pub(crate) fn set_failed_twice(cell: &Cell, cells: Vec<u32>, round: u32, reason: &str) -> Finding {
    let what = format!("and the {} measured with it failed twice in round {}: {reason}.", cells.len() - 1, round + 1);
    without_trial(cell, cells, &what)
}

fn without_trial(cell: &Cell, cells: Vec<u32>, what: &str) -> Finding {
    let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
    Finding {
        kind: FindingKind::Note,
        statement: format!("Cell {}{of} {what}", cell.id),
        estimate: None,
        block: None,
        cells,
        comparison: None,
    }
}

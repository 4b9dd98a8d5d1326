//! Parts of a plan's schedule that need no state of their own.

use std::collections::{BTreeMap, BTreeSet};

use analysis::plan::Slot;
use model::{
    Cell, Event, Factor, Finding, FindingKind, Leg, Phase, Plan, RunHeader, Shared, Spec, Stop, Trial, Verdict,
};
use text::{Text, say};

use crate::curve_leg::{Planned, spec_of};
use crate::state::RunState;

/// A size of a curve that another program measures; without its cell if that is closed.
pub(crate) fn planned_by_peer(state: &RunState, id: u32) -> Option<Planned> {
    let spec = &Cell::find(&state.header.cells, id)?.spec;
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
fn shortened(spec: &Spec, ns: u64) -> Spec {
    match spec.stop {
        Stop::TimeNs(_) => Spec {
            stop: Stop::TimeNs(ns),
            start_ns: spec.start_ns.map(|_| 0),
            warmup_ns: 0,
            steady: false,
            probe: None,
            no_loss: false,
            ..spec.clone()
        },
        _ => spec.clone(),
    }
}

/// The spec and the legs of a test, or of the `warmup` ns before it.
pub(crate) fn spec_and_legs(spec: &Shared<Spec>, legs: &[Planned], warmup: Option<u64>) -> (Shared<Spec>, Vec<Leg>) {
    let legs: Vec<Leg> = legs.iter().map(|(_, leg)| *leg).collect();
    if spec.is_point() && spec.speak.is_none() {
        return (spec_of(spec, &legs).into(), legs);
    }
    let Some(ns) = warmup else { return (spec.clone(), legs) };
    let spec = shortened(spec, ns);
    let legs = legs.into_iter().map(|leg| Leg { stop: spec.stop, ..leg }).collect();
    (spec.into(), legs)
}

/// Whether there are more than two hosts, whose tests have nothing to do with each other, or are repeated together.
pub(crate) fn many_hosts(plan: &Plan, slots: &[Slot]) -> bool {
    let hosts: BTreeSet<usize> = slots.iter().flat_map(|slot| [slot.near, slot.far]).collect();
    hosts.len() > 2 && (plan.traffic.is_some() || slots.iter().all(|slot| !slot.together))
}

/// Cells that are closed at a time: a thousand outcomes take seconds, during which no message of an agent is answered.
const CLOSE: usize = 20;
/// Pause after that, ns.
pub(crate) const CLOSE_NS: u64 = 1_000_000;

/// Closes some of the open cells; whether there were any.
pub(crate) fn close_some(state: &mut RunState) -> bool {
    let ids: Vec<u32> = state.cells.open().take(CLOSE).map(|open| open.cell.id).collect();
    ids.iter().for_each(|id| state.finish(*id, false));
    !ids.is_empty()
}

/// Whether a trial was cut short.
pub(crate) fn is_cut(trial: &Trial) -> bool {
    trial.verdicts.contains(&Verdict::CutShort)
}

/// Reports the current activity.
pub(crate) fn report(state: &mut RunState, activity: impl Into<Text>, remaining_ns: Option<u64>) {
    let (cells_done, cells) = (state.cells.done().len() as u32, state.header.cells.len() as u32);
    state.event(Event::Phase(Phase { activity: activity.into(), cells_done, cells, remaining_ns }));
}

/// The note that a cell, or all sizes of a curve, were skipped in a round, and why.
pub(crate) fn skipped(cell: &Cell, cells: Vec<u32>, round: u32, what: &str) -> Finding {
    without_trial(cell, cells, &say!("was skipped in round {}: {what}.", round + 1))
}

/// The same for tests that failed twice, by their slots' first cells: one note for all with the same reason, such as those of a lost host.
pub(crate) fn failed_twice(
    header: &RunHeader,
    slots: &[Slot],
    failed: &BTreeMap<u32, Text>,
    round: u32,
) -> Vec<Finding> {
    let mut reasons: Vec<(&Text, Vec<&Slot>)> = Vec::new();
    for slot in slots {
        if let Some(reason) = failed.get(&slot.cell) {
            match reasons.iter_mut().find(|(other, _)| *other == reason) {
                Some((_, own)) => own.push(slot),
                None => reasons.push((reason, vec![slot])),
            }
        }
    }
    let one = |(reason, own): (&Text, Vec<&Slot>)| {
        let what = say!("failed twice in round {}: {reason}.", round + 1);
        let cells: Vec<u32> = own.iter().flat_map(|slot| slot.cells()).collect();
        let first = header.cells.iter().find(|cell| Some(&cell.id) == cells.first())?;
        let several = say!("{} tests {what}", own.len());
        Some(if own.len() == 1 { without_trial(first, cells, &what) } else { note(several, cells) })
    };
    reasons.into_iter().filter_map(one).collect()
}

/// The same for tests that are measured at the same time, of which `cell` is the first.
pub(crate) fn set_failed_twice(cell: &Cell, cells: Vec<u32>, round: u32, reason: &Text) -> Finding {
    let what = say!("and the {} measured with it failed twice in round {}: {reason}.", cells.len() - 1, round + 1);
    without_trial(cell, cells, &what)
}

fn without_trial(cell: &Cell, cells: Vec<u32>, what: &Text) -> Finding {
    let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
    note(say!("Cell {}{of} {what}", cell.id), cells)
}

fn note(statement: Text, cells: Vec<u32>) -> Finding {
    Finding { kind: FindingKind::Note, statement, estimate: None, block: None, cells, comparison: None }
}

/// What a step measures, after its number: `: pattern rr, 4 host pairs at the same time`.
pub(crate) fn step_in_words(state: &RunState, cells: &[u32], what: &str) -> String {
    let of = |id: &u32| Cell::find(&state.header.cells, *id);
    let first = cells.first().and_then(of);
    let levels = first.map(|cell| &cell.levels).into_iter().flatten();
    let curve = first.is_some_and(|cell| cell.spec.is_point());
    let several = |name: &str| {
        let hosts = [Factor::FROM, Factor::TO, Factor::GROUP].contains(&name);
        (cells.len() > 1 && hosts) || (curve && name == Factor::SIZES)
    };
    let named: Vec<String> =
        levels.filter(|(name, _)| !several(name)).map(|(name, level)| format!("{name} {level}")).collect();
    let together = if cells.len() > 1 { format!(", {} {what} at the same time", cells.len()) } else { String::new() };
    let separator = if named.is_empty() { "" } else { ": " };
    format!("{separator}{}{together}", named.join(", "))
}

/// The time that all trials that are left take, within the budget, ns: by those so far, before the first by their options, of which
/// `at_once` run at the same time.
pub(crate) fn trials_left_ns(state: &RunState, now: u64, at_once: f64) -> Option<u64> {
    let open = state.cells.open().map(crate::CellState::trials).sum::<usize>();
    let trials = open + state.cells.done().iter().map(|outcome| outcome.trials.len()).sum::<usize>();
    let by_trials = now.checked_div(trials as u64).map(|each| each.saturating_mul(state.cells.all_trials_left()));
    let by_options = || state.cells.timed_ns().map(|ns| (ns as f64 / at_once) as u64);
    by_trials.or_else(by_options).map(|left| left.min(state.left_ns(now)))
}

/// The end of the run that is reported at `now` with this time left: the one that was reported `before`, so that the time left falls,
/// unless the new one is earlier or more than twice as far away.
pub(crate) fn settled_end(before: Option<u64>, now: u64, left: u64) -> u64 {
    let new = now.saturating_add(left);
    before.filter(|end| new > *end && left < 2 * end.saturating_sub(now)).unwrap_or(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_falls_unless_it_was_far_too_short() {
        assert_eq!(settled_end(None, 10, 100), 110);
        // Ten later the same end is nearer, whatever the new guess.
        assert_eq!(settled_end(Some(110), 20, 120), 110);
        assert_eq!(settled_end(Some(110), 20, 50), 70, "an earlier one is taken");
        assert_eq!(settled_end(Some(110), 20, 180), 200, "twice as long: the old one was wrong");
        assert_eq!(settled_end(Some(110), 120, 5), 125, "the old one has passed");
    }
}

//! Runs of the store: to show them, and to continue one.

pub mod imports;
pub mod why;

use std::collections::BTreeMap;
use std::path::Path;

use analysis::stats::SizeParts;
use command::Failure;
use command::setup::{read_store, store_path};
use model::{Run, RunKind, Trial};
use plan::{Earlier, ParsedPlan};
use text::say;

use crate::run::Resumed;

/// Runs of the store that are looked at for an earlier one, the latest ones.
const LATEST: usize = 20;

/// A run from the store. If its process was killed, the outcomes are computed from its trials. `note` gets a line for each part
/// that cannot be read.
///
/// # Errors
/// The store cannot be read, or has no such run.
pub fn load(reference: &str, store: Option<&Path>, note: impl Fn(&str)) -> Result<Run, Failure> {
    let loaded = read_store(store)?.load(reference)?;
    loaded.damaged.iter().for_each(|damage| note(damage));
    let mut run = loaded.run;
    let mut trials: BTreeMap<u32, Vec<Trial>> = BTreeMap::new();
    for trial in loaded.orphans {
        trials.entry(trial.cell).or_default().push(trial);
    }
    let curve = run.header.kind == RunKind::Curve;
    // As in a schedule: cells that are compared in turns are not measured until each has converged by itself.
    let paired = matches!(run.header.kind, RunKind::Ab | RunKind::Advise);
    let mut parts = if curve { parts(&run, &trials) } else { BTreeMap::new() };
    for (id, trials) in trials {
        let Some(cell) = model::Cell::find(&run.header.cells, id) else { continue };
        let parts = parts.remove(&id);
        let point = cell.spec.is_point();
        let legs = curve && point;
        let context =
            analysis::Context { cut_short: true, curve: point, legs, paired, parts, ..analysis::Context::default() };
        let mut outcome = analysis::outcome(cell, trials, &run.header.stopping, context);
        let [near, far] = run.header.hosts_of(cell);
        analysis::bound(&mut outcome, near, far);
        outcome.summary.accuracy = analysis::accuracy(&outcome, near, far);
        if !point {
            analysis::set_why(&mut outcome, &run.header, &run.passes);
        }
        run.outcomes.push(outcome);
    }
    run.outcomes.sort_by_key(|outcome| outcome.cell);
    if run.findings.is_empty() {
        run.findings = match () {
            () if curve => analysis::of_curve(&run.outcomes),
            () if run.header.plan.is_some() => analysis::of_plan(&run.header, &run.outcomes, &run.passes, &run.retests),
            // Each step of a search has its own.
            () if run.header.kind == RunKind::Advise => Vec::new(),
            () if paired => analysis::of_paired(&run.outcomes, &run.header.stopping),
            () => analysis::of_single(&run.outcomes),
        };
    }
    Ok(run)
}

/// The legs of a killed curve's cells without the effects of their passes. Finished cells contribute; the memory ceiling does
/// not.
fn parts(run: &Run, orphans: &BTreeMap<u32, Vec<Trial>>) -> BTreeMap<u32, SizeParts> {
    let Some(transport) = run.header.cells.first().map(|cell| &cell.spec.transport) else { return BTreeMap::new() };
    let open = run.header.cells.iter().filter_map(|cell| Some((&cell.spec, cell.id, orphans.get(&cell.id)?)));
    let done = run.outcomes.iter().map(|outcome| (&outcome.spec, outcome.cell, &outcome.trials));
    let mut cells: Vec<_> = open.chain(done).filter(|(spec, ..)| spec.transport == *transport).collect();
    cells.sort_by_key(|(spec, ..)| spec.block);
    let trials: Vec<&[Trial]> = cells.iter().map(|(_, _, trials)| trials.as_slice()).collect();
    cells.iter().map(|(_, id, _)| *id).zip(analysis::outcome::parts(&trials)).collect()
}

/// The seed of a run: a plan that is made anew from the same flags needs it.
///
/// # Errors
/// There is no such run.
pub fn seed(reference: &str, store: Option<&Path>) -> Result<u64, Failure> {
    Ok(read_store(store)?.load(reference)?.run.header.stopping.seed)
}

/// The earlier part of a run of this plan that is continued. It keeps its seed.
///
/// # Errors
/// The run is finished, or is not one of this plan.
pub fn resume(reference: &str, store: Option<&Path>, parsed: &mut ParsedPlan) -> Result<Resumed, Failure> {
    let loaded = read_store(store)?.load(reference)?;
    let run = loaded.run;
    let id = &run.header.id;
    let Some(plan) = &run.header.plan else {
        return Err(Failure::usage(format!("run {id} is a `thru {}`, not a run of a plan", run.header.kind)));
    };
    if plan.digest != parsed.plan.digest {
        return Err(Failure::usage(say!(
            "run {id} was made with a different plan or different variables: use the same file and the same `--var`, or start a new run"
        )));
    }
    if run.ending.as_ref().is_some_and(|ending| ending.how == "finished") {
        return Err(Failure::usage(format!("run {id} is finished: see `thru show {id}`")));
    }
    if run.header.cells.len() != parsed.cells.len() {
        return Err(Failure::usage(format!(
            "run {id} has different cells than this version of thru makes from the plan: start a new run"
        )));
    }
    parsed.rule = run.header.stopping.clone();
    let mut trials: Vec<_> =
        run.outcomes.into_iter().flat_map(|outcome| outcome.trials).chain(loaded.orphans).collect();
    trials.sort_by_key(|trial| (trial.pass, trial.position));
    Ok(Resumed { header: run.header, trials, passes: run.passes, retests: run.retests })
}

/// The latest run in the store between the hosts of a plan; `None` without one.
///
/// # Errors
/// The store cannot be read.
pub fn earlier(parsed: &ParsedPlan, store: Option<&Path>) -> Result<Option<Earlier>, Failure> {
    let path = store_path(store)?;
    if !path.exists() {
        return Ok(None);
    }
    let store = read_store(Some(&path))?;
    let is_plan = |row: &store::RunRow| matches!(row.kind, Some(RunKind::Mesh | RunKind::Run));
    for row in store.list(LATEST)?.iter().filter(|row| is_plan(row)) {
        let run = store.load(&row.id)?.run;
        if Earlier::is_between(&run, &parsed.plan) {
            return Ok(Earlier::of(&run));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_exist_is_not_made_by_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("runs.sqlite");
        let error = load("last", Some(&path), |_| {}).unwrap_err();
        let expected = format!("there is no store {}: no run has been stored there", path.display());
        assert_eq!((error.to_string(), error.code()), (expected, 6));
        assert!(seed("last", Some(&path)).is_err());
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}

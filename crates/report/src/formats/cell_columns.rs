//! The columns of a compact table of trials: where and when each was measured, and its value. A matrix of many hosts takes a few bytes for
//! each pair and round in it.

use std::collections::HashMap;

use analysis::outcome::Headline;
use model::{Cell, Factor, Outcome, Pass, Run, Trial};

use super::outcome_columns::all_levels;
use super::trial_columns::{Kind, started};
use super::value::{Value, count, number, text};
use crate::labels;

/// The name and the type of each column. The levels of all factors but the hosts have columns of their own.
pub(super) fn head(runs: &[Run]) -> Vec<(String, Kind)> {
    let named = |(name, kind): (&str, Kind)| (name.to_owned(), kind);
    let places = [
        ("run", Kind::Text),
        ("round", Kind::Count),
        ("started", Kind::Time),
        ("from", Kind::Text),
        ("to", Kind::Text),
    ];
    let spec = [("transport", Kind::Text), ("pattern", Kind::Text), ("block_bytes", Kind::Count)];
    let values = [("value", Kind::Number), ("unit", Kind::Text), ("verdicts", Kind::Text)];
    let levels = levels(runs).into_iter().map(|name| (format!("level_{name}"), Kind::Text));
    places.into_iter().chain(spec).map(named).chain(levels).chain(values.map(named)).collect()
}

/// The values of each trial, one for each column: run by run, and round by round within a run, so that readers skip what they do not want.
pub(super) fn rows(runs: &[Run]) -> impl Iterator<Item = Vec<Option<Value>>> {
    let levels = levels(runs);
    runs.iter().flat_map(move |run| of_run(run, &levels))
}

fn levels(runs: &[Run]) -> Vec<String> {
    let mut levels = all_levels(runs);
    levels.retain(|name| ![Factor::FROM, Factor::TO].contains(&name.as_str()));
    levels
}

/// A trial, its outcome and its pass.
type Row<'a> = (&'a Trial, &'a Outcome, Option<&'a Pass>);

fn of_run<'a>(run: &'a Run, levels: &[String]) -> impl Iterator<Item = Vec<Option<Value>>> + use<'a> {
    let cells: HashMap<u32, &Cell> = run.header.cells.iter().map(|cell| (cell.id, cell)).collect();
    let passes: HashMap<u32, &Pass> = run.passes.iter().map(|pass| (pass.index, pass)).collect();
    let trials = run.outcomes.iter().flat_map(|outcome| outcome.trials.iter().map(move |trial| (trial, outcome)));
    let with_pass = |(trial, outcome): (&'a Trial, &'a Outcome)| (trial, outcome, passes.get(&trial.pass).copied());
    let mut rows: Vec<Row<'a>> = trials.map(with_pass).collect();
    rows.sort_by_key(|(trial, _, pass)| (pass.and_then(|pass| pass.round), trial.pass, trial.position));
    let levels = levels.to_vec();
    rows.into_iter().map(move |(trial, outcome, pass)| {
        let cell = cells.get(&outcome.cell).copied();
        let level = |name: &str| cell.and_then(|cell| cell.levels.get(name)).and_then(text);
        let hosts = cell.map_or([&run.header.near, &run.header.far], |cell| run.header.hosts_of(cell));
        let host = |side: usize| hosts[side].hostname.as_ref().and_then(text);
        let mut values = vec![
            text(&run.header.id),
            pass.and_then(|pass| pass.round).and_then(count),
            pass.map(|pass| Value::Time(started(run, pass))),
            level(Factor::FROM).or_else(|| host(0)),
            level(Factor::TO).or_else(|| host(1)),
            text(outcome.spec.transport.as_str()),
            text(outcome.spec.pattern.name()),
            count(outcome.spec.block),
        ];
        values.extend(levels.iter().map(|name| level(name)));
        let verdicts = labels::verdicts(&trial.verdicts).replace(", ", " ");
        values.extend([number(trial.value), text(Headline::of(&outcome.spec).unit()), text(verdicts)]);
        values
    })
}

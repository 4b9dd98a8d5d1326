//! The values of a plan's trials, round by round.

use std::collections::BTreeMap;

use model::{Cell, Outcome, Pass};

use super::complete;
use crate::outcome::Headline;
use crate::stats::mean;

/// Smallest difference that is reported, as a ratio.
pub(super) const LEAST: f64 = 1.25;

/// The logarithm of the value, by cell and round; its mean over the trials of a round.
pub(super) type Logs = BTreeMap<u32, BTreeMap<u32, f64>>;

/// Those of the complete trials; `passes` give the round of a trial.
pub(super) fn logs(outcomes: &[Outcome], passes: &[Pass]) -> Logs {
    let rounds: BTreeMap<u32, u32> = passes.iter().filter_map(|pass| Some((pass.index, pass.round?))).collect();
    let mut all: BTreeMap<u32, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for trial in outcomes.iter().flat_map(|outcome| &outcome.trials).filter(|trial| complete(trial)) {
        if let (Some(round), Some(value)) = (rounds.get(&trial.pass), trial.value.filter(|value| *value > 0.0)) {
            all.entry(trial.cell).or_default().entry(*round).or_default().push(value.ln());
        }
    }
    let of_round = |(round, logs): (u32, Vec<f64>)| Some((round, mean(&logs)?));
    all.into_iter().map(|(cell, rounds)| (cell, rounds.into_iter().filter_map(of_round).collect())).collect()
}

/// The same values as goodput ([`Headline::goodput`]), which cells with different headline statistics have in common.
pub(super) fn as_goodput(logs: &Logs, cells: &[Cell]) -> Logs {
    let of = |cell: &Cell| {
        let kind = Headline::of(&cell.spec);
        let goodput = |(round, ln): (&u32, &f64)| Some((*round, kind.goodput(&cell.spec, ln.exp())?.ln()));
        Some((cell.id, logs.get(&cell.id)?.iter().filter_map(goodput).collect()))
    };
    cells.iter().filter_map(of).collect()
}

/// The name of a headline statistic.
pub(super) fn noun(kind: Headline) -> &'static str {
    match kind {
        Headline::Goodput => "goodput",
        Headline::Transactions => "transactions per second",
        Headline::RoundTrip => "RTT",
    }
}

//! The values of a plan's trials, round by round.

use std::collections::BTreeMap;

use model::{Outcome, Pass};

use super::complete;
use crate::outcome::Headline;

/// The logarithm of a trial's value, by cell and round.
pub(super) type Logs = BTreeMap<u32, BTreeMap<u32, f64>>;

/// Those of the complete trials; `passes` give the round of a trial.
pub(super) fn logs(outcomes: &[Outcome], passes: &[Pass]) -> Logs {
    let rounds: BTreeMap<u32, u32> = passes.iter().filter_map(|pass| Some((pass.index, pass.round?))).collect();
    let mut logs = Logs::new();
    for trial in outcomes.iter().flat_map(|outcome| &outcome.trials).filter(|trial| complete(trial)) {
        if let (Some(round), Some(value)) = (rounds.get(&trial.pass), trial.value.filter(|value| *value > 0.0)) {
            logs.entry(trial.cell).or_default().insert(*round, value.ln());
        }
    }
    logs
}

/// The name of a headline statistic.
pub(super) fn noun(kind: Headline) -> &'static str {
    match kind {
        Headline::Goodput => "goodput",
        Headline::Transactions => "transactions per second",
        Headline::RoundTrip => "RTT",
    }
}

//! What a command with `--live` has said.

use std::collections::BTreeSet;

use model::{Outcome, Trial};
use serde_json::Value;

/// A trial: its cell, its pass, and what the near end sent.
pub(crate) type Kept = (u32, u32, u64);

fn kept(trial: &Trial) -> Kept {
    (trial.cell, trial.pass, trial.near.bytes_sent)
}

/// The whole lines; a kill may cut the last one.
fn events(text: &str) -> impl DoubleEndedIterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// The trials that were announced as finished.
pub(crate) fn trials(text: &str) -> BTreeSet<Kept> {
    let trials = events(text).filter(|event| event["event"] == "trial");
    trials.map(|event| kept(&serde_json::from_value(event).expect("a trial"))).collect()
}

/// The trials of a document.
pub(crate) fn of_outcomes(outcomes: &[Outcome]) -> BTreeSet<Kept> {
    outcomes.iter().flat_map(|outcome| &outcome.trials).map(kept).collect()
}

/// Whether a trial had begun and not ended.
pub(crate) fn in_a_trial(text: &str) -> bool {
    let last =
        events(text).rev().find(|event| ["phase", "trial", "outcome"].iter().any(|kind| event["event"] == *kind));
    last.is_some_and(|event| event["event"] == "phase")
}

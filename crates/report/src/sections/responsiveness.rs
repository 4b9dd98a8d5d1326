//! Responsiveness under working conditions.

use model::{Confidence, Outcome, WorkingConditions};
use text::Count;

/// The working conditions of each trial.
pub(crate) fn working(outcome: &Outcome) -> Option<&[WorkingConditions]> {
    let probe = outcome.summary.probe.as_ref()?;
    (!probe.working.is_empty()).then_some(probe.working.as_slice())
}

/// The mean of a figure over the trials.
pub(crate) fn of_trials(trials: &[WorkingConditions], figure: fn(&WorkingConditions) -> f64) -> f64 {
    trials.iter().map(figure).sum::<f64>() / trials.len() as f64
}

/// Round trips per minute under load, with the lowest confidence of the trials.
pub(crate) fn rpm(outcome: &Outcome) -> Option<(Count, Confidence)> {
    let trials = working(outcome)?;
    Some((Count::rounded(of_trials(trials, |one| one.rpm)), trials.iter().map(|one| one.confidence).min()?))
}

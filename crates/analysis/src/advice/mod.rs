//! What to change on a path, and what that gives: the search behind `thru advise`.
//!
//! [`candidates`] lists what may be tried ([`Level`]s of [`Candidate`] dimensions, from the registry in `dimension/`); [`Search`]
//! schedules the trials and adopts levels; [`Confirmation`] compares the result with the start on new pairs; [`advice`] makes the
//! [`model::Advice`] and its findings. All are plain state machines that the coordinator drives, or a simulation (tests/all/advice.rs).

mod confirm;
mod dimension;
mod parts;
mod persistent;
mod report;
mod search;

use model::{EndTally, Goal, Pattern, Spec, Trial, Verdict};

pub use confirm::{Confirmation, Confirmed, PairRound};
pub use dimension::{CLASSES, Candidate, Level, SearchContext, candidates, spec_of};
pub use parts::moved_parts;
pub use report::{SearchResult, advice};
pub use search::{Levels, Race, RaceRound, Search, SearchRule, TrialScore};

use crate::outcome::Headline;

/// Smallest share of the start's goodput that a search for less CPU time must keep.
pub const MIN_GOODPUT: f64 = 0.95;

/// The pattern that a goal is measured with.
#[must_use]
pub fn pattern(goal: Goal) -> Pattern {
    match goal {
        Goal::Latency => Pattern::Rr,
        Goal::Throughput | Goal::Cpu => Pattern::Stream,
    }
}

/// The goal's statistic of a trial, in its unit: goodput in bit/s, mean RTT in ns, or CPU seconds of the measuring processes at both
/// ends per 10^9 bytes received. `None` for a trial that was cut short or stalled, or lacks the figure.
#[must_use]
pub fn statistic(goal: Goal, trial: &Trial) -> Option<f64> {
    if trial.verdicts.iter().any(|verdict| matches!(verdict, Verdict::CutShort | Verdict::Stalled)) {
        return None;
    }
    let value = match goal {
        Goal::Throughput => trial.value,
        Goal::Latency => crate::outcome::requester(&trial.near, &trial.far).rtt.as_ref().map(|rtt| rtt.mean_ns),
        Goal::Cpu => {
            let process = |end: &EndTally| end.spent.as_ref().map(|spent| spent.process_ns as f64);
            let bytes = (trial.near.bytes_received + trial.far.bytes_received) as f64;
            // A nanosecond per byte is a second per 10^9 bytes.
            process(&trial.near).zip(process(&trial.far)).map(|(near, far)| (near + far) / bytes)
        }
    };
    value.filter(|value| value.is_finite() && *value > 0.0)
}

/// The score of a trial in a search for `goal`.
#[must_use]
pub fn score(goal: Goal, trial: &Trial) -> Option<TrialScore> {
    let log = statistic(goal, trial)?.ln();
    let goodput = trial.value.filter(|value| *value > 0.0).map(f64::ln);
    Some(match goal {
        Goal::Throughput => TrialScore { score: log, goodput: None },
        Goal::Latency => TrialScore { score: -log, goodput: None },
        Goal::Cpu => TrialScore { score: -log, goodput: Some(goodput?) },
    })
}

/// The rule of a search for `goal`, given the smallest gain that counts and the seed of its orders.
#[must_use]
pub fn rule(goal: Goal, min_effect: f64, seed: u64) -> SearchRule {
    SearchRule { min_effect, min_goodput: (goal == Goal::Cpu).then_some(MIN_GOODPUT), seed }
}

/// Whether a spec can be searched for a goal: whether its pattern has the statistic.
#[must_use]
pub fn suits(goal: Goal, spec: &Spec) -> bool {
    (Headline::of(spec) == Headline::Goodput) == (goal != Goal::Latency)
}

/// The name of a goal's statistic.
pub(crate) fn noun(goal: Goal) -> &'static str {
    match goal {
        Goal::Throughput => "goodput",
        Goal::Latency => "mean RTT",
        Goal::Cpu => "CPU time per byte at both ends",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Pattern, RttTally, Spent};

    fn trial() -> Trial {
        let spent = |process_ns| Some(Spent { process_ns, ..Spent::default() });
        let rtt = RttTally {
            count: 9,
            min_ns: 1,
            p50_ns: 2,
            mean_ns: 4.0,
            p99_ns: None,
            max_ns: 9,
            batch: 1,
            histogram: None,
        };
        let near = EndTally { spent: spent(3_000), rtt: Some(rtt), ..EndTally::default() };
        let far = EndTally { bytes_received: 2_000, spent: spent(1_000), ..EndTally::default() };
        let ledger = Default::default();
        Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: near.into(),
            far: far.into(),
            ledger,
            value: Some(8e9),
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn each_goal_has_its_statistic_and_higher_scores_are_better() {
        assert_eq!(statistic(Goal::Throughput, &trial()), Some(8e9));
        assert_eq!(statistic(Goal::Latency, &trial()), Some(4.0));
        assert_eq!(statistic(Goal::Cpu, &trial()), Some(2.0));
        let of = |goal| score(goal, &trial()).unwrap();
        assert!(of(Goal::Latency).score < 0.0 && of(Goal::Throughput).score > 0.0);
        assert_eq!(of(Goal::Cpu), TrialScore { score: -2f64.ln(), goodput: Some(8e9f64.ln()) });
    }

    #[test]
    fn a_trial_that_was_cut_short_or_without_cost_has_no_score() {
        let cut = Trial { verdicts: vec![Verdict::CutShort], ..trial() };
        assert_eq!(score(Goal::Throughput, &cut), None);
        let free = Trial { far: EndTally::default().into(), ..trial() };
        assert_eq!(score(Goal::Cpu, &free), None);
    }

    #[test]
    fn round_trips_suit_latency_only() {
        assert!(suits(Goal::Latency, &Spec::new("tcp", pattern(Goal::Latency))));
        assert!(suits(Goal::Cpu, &Spec::new("tcp", pattern(Goal::Cpu))));
        assert!(!suits(Goal::Throughput, &Spec::new("tcp", Pattern::Rr)));
    }
}

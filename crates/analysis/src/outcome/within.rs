//! What the series within trials says.

use model::{Seconds, Spec, StartUp, Trial, median};

use super::Headline;
use super::ends::{receivers, requester, senders};
use crate::stats::quantile;
use crate::steady;

/// Fewest whole seconds whose spread is worth a line.
const MIN_SECONDS: usize = 3;

/// The rates of the trials' series, one trial after the other, in the unit of the headline; empty if it is not a rate.
pub(super) fn samples(spec: &Spec, trials: &[Trial]) -> Vec<f64> {
    let of = |trial: &Trial| match Headline::of(spec) {
        Headline::Goodput => {
            let (to, from) = (receivers(spec, &trial.near, &trial.far), senders(spec, &trial.near, &trial.far));
            // The near end receives what the far end sends.
            let directions = to.into_iter().zip(from.into_iter().rev()).map(|(receiver, sender)| {
                steady::delivered_rates(spec, sender, receiver).unwrap_or_else(|| steady::rates(spec, receiver))
            });
            directions.reduce(|one, other| together(&one, &other)).unwrap_or_default()
        }
        Headline::Transactions => steady::rates(spec, requester(&trial.near, &trial.far)),
        Headline::RoundTrip => Vec::new(),
    };
    trials.iter().flat_map(of).collect()
}

/// The sums of two directions, which end at the same time but may have settled at different ones.
fn together(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sums: Vec<f64> = one.iter().rev().zip(other.iter().rev()).map(|(one, other)| one + other).collect();
    sums.reverse();
    sums
}

/// The whole seconds of a single trial.
pub(super) fn seconds(spec: &Spec, trials: &[Trial]) -> Option<Seconds> {
    let ([trial], Headline::Goodput) = (trials, Headline::of(spec)) else { return None };
    let each = (1_000_000_000 / spec.interval_ns.max(1)) as usize;
    let ends = receivers(spec, &trial.near, &trial.far).into_iter().map(|receiver| steady::rates(spec, receiver));
    let rates = ends.reduce(|one, other| together(&one, &other)).unwrap_or_default();
    let seconds: Vec<f64> =
        rates.rchunks_exact(each.max(1)).map(|second| second.iter().sum::<f64>() / second.len() as f64).collect();
    if seconds.len() < MIN_SECONDS {
        return None;
    }
    let at = |q| quantile(&seconds, q);
    Some(Seconds { min_bps: at(0.0)?, median_bps: at(0.5)?, max_bps: at(1.0)? })
}

/// The start-up of the trials' connections, and how long a trial would have to be if they had not settled.
pub(super) fn start_up(spec: &Spec, trials: &[Trial]) -> Option<StartUp> {
    let judged = trials.iter().flat_map(|trial| steady::judge(spec, &trial.near, &trial.far)).flatten();
    let found: Vec<steady::Settling> = judged.collect();
    let over_ns = median(&found.iter().map(|one| one.from_ns as f64).collect::<Vec<_>>())? as u64;
    let growth = found.iter().filter_map(|one| one.growth).reduce(f64::min);
    let needs_ns = growth.and_then(|growth| steady::needed_ns(spec, growth));
    Some(StartUp { over_ns, needs_ns })
}

//! Requested rates of the programs at the ends.

use model::LimiterKind;
use model::units::bits_per_second;

use super::super::bottleneck;
use super::super::observations::{Observations, goodput_bps, ramp, sent_bps};
use super::{Rule, Signal};
use crate::direction::DirectionView;
use crate::outcome::Headline;
use crate::stats::median;

pub(super) const RATE: Rule = Rule {
    name: "requested-rate",
    speaks_for: &[LimiterKind::SenderApplication],
    about: "The sender's program reached its requested rate.",
    source: "the spec of the measurement (`rate`) and what the sender counted",
    evaluate: |observations, direction| {
        let Some(requested) = observations.spec.rate_bps else { return Vec::new() };
        let rate = match observations.headline {
            // Datagrams that were sent and lost are limited elsewhere.
            Headline::Goodput => {
                let carried = sent_bps(direction).zip(goodput_bps(direction)).map(|(sent, goodput)| sent.min(goodput));
                most_of_the_time(direction, carried)
            }
            // A transaction's rate is that of its requests.
            _ => {
                observations.outcome.summary.transactions_per_s.map(|rate| rate * observations.spec.block as f64 * 8.0)
            }
        };
        reached(rate, requested, LimiterKind::SenderApplication, ["the sender's requested rate", "carried"])
    },
};

pub(super) const DRAIN: Rule = Rule {
    name: "requested-drain",
    speaks_for: &[LimiterKind::ReceiverApplication],
    about: "The receiver's program read at its requested rate.",
    source: "the spec of the measurement (`drain`) and what the receiver counted",
    evaluate: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(requested) = direction.receiver.options.drain_bps else { return Vec::new() };
        reached(
            most_of_the_time(direction, goodput_bps(direction)),
            requested,
            LimiterKind::ReceiverApplication,
            ["the receiver's requested reading rate", "read"],
        )
    },
};

/// The larger one of a trial's rate and the median over its intervals: what slow start held back at first is never made up for, but
/// it does not limit the rest of the trial.
fn most_of_the_time(direction: &DirectionView<'_>, whole: Option<f64>) -> Option<f64> {
    Some(median(&bottleneck::arrivals(direction)).unwrap_or(0.0).max(whole?))
}

/// A requested rate that was reached is the limit; one that was far from reached is not.
fn reached(rate: Option<f64>, requested: u64, kind: LimiterKind, [what, did]: [&str; 2]) -> Vec<Signal> {
    let Some(rate) = rate else { return Vec::new() };
    let part = rate / requested as f64;
    let weight = 0.97 * ramp(part, 0.8, 0.97);
    Signal::of(kind, weight, || {
        format!(
            "{what} is {} and it {did} {} ({:.0} %)",
            bits_per_second(requested as f64),
            bits_per_second(rate),
            100.0 * part
        )
    })
}

//! Requested rates of the programs at the ends.

use model::{LimiterKind, Ratio, median};
use text::{Rate, say};

use super::super::bottleneck;
use super::super::observations::{Observations, goodput_bps, ramp, sent_bps};
use super::{Rule, Signal};
use crate::direction::DirectionView;
use crate::outcome::Headline;

/// A trial whose rate is at least this part of the usual one had no pause worth reporting.
const SAME: f64 = 0.98;

pub(super) const RATE: Rule = Rule {
    name: "requested-rate",
    speaks_for: &[LimiterKind::SenderApplication, LimiterKind::SenderCpu],
    about: "The sender's program reached its requested rate, or its thread did not run when it was due to send.",
    source: "the spec of the measurement (--rate) and what the sender counted",
    evaluate: |observations, direction| {
        let Some(requested) = observations.spec.rate_bps else { return Vec::new() };
        let asleep = asleep(direction);
        if asleep > AWAKE {
            return Signal::shared(LimiterKind::SenderCpu, 0.97 * ramp(asleep, AWAKE, 0.05), Some(asleep), || {
                say!(
                    "the sender's thread did not run when it was due to send, and missed {} of its schedule",
                    Ratio(asleep)
                )
            });
        }
        let (whole, usual) = match observations.headline {
            // Datagrams that were sent and lost are limited elsewhere.
            Headline::Goodput => {
                let carried = sent_bps(direction).zip(goodput_bps(direction)).map(|(sent, goodput)| sent.min(goodput));
                (carried, median(&bottleneck::arrivals(direction)))
            }
            // A transaction's rate is that of its requests.
            _ => {
                let rate = observations.outcome.summary.transactions_per_s;
                (rate.map(|rate| rate * observations.spec.block as f64 * 8.0), None)
            }
        };
        let words = ["the sender's requested rate", "carried"];
        reached(whole, usual, requested, LimiterKind::SenderApplication, words)
    },
};

/// A sender that missed no more than this part of its schedule kept its rate.
const AWAKE: f64 = 0.01;

/// The part of its schedule that the sender missed because its thread did not run.
fn asleep(direction: &DirectionView<'_>) -> f64 {
    let tally = direction.sender.tally;
    let time = tally.sends().ns as f64 * tally.flows.len().max(1) as f64;
    tally.pacing.filter(|_| time > 0.0).map_or(0.0, |pacing| pacing.asleep_ns as f64 / time)
}

pub(super) const DRAIN: Rule = Rule {
    name: "requested-drain",
    speaks_for: &[LimiterKind::ReceiverApplication],
    about: "The receiver's program read at its requested rate.",
    source: "the spec of the measurement (--drain) and what the receiver counted",
    evaluate: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(requested) = direction.receiver.options.drain_bps else { return Vec::new() };
        let usual = median(&bottleneck::arrivals(direction));
        let words = ["the receiver's requested reading rate", "read"];
        reached(goodput_bps(direction), usual, requested, LimiterKind::ReceiverApplication, words)
    },
};

/// A requested rate that was reached is the limit; one that was far from reached is not. Reached is the rate of the `whole` trial or
/// the `usual` one of its intervals, bit/s: what slow start or a pause took is never made up for, but it does not limit the rest.
fn reached(
    whole: Option<f64>,
    usual: Option<f64>,
    requested: u64,
    kind: LimiterKind,
    [what, did]: [&str; 2],
) -> Vec<Signal> {
    let Some(whole) = whole else { return Vec::new() };
    let rate = usual.unwrap_or(0.0).max(whole);
    let part = rate / requested as f64;
    let weight = 0.97 * ramp(part, 0.8, 0.97);
    Signal::of(kind, weight, || {
        say!(
            "{what} is {} and it {did} {} ({:.0} %){}",
            Rate(requested as f64),
            Rate(rate),
            100.0 * part,
            if whole < SAME * rate { " for most of the time" } else { "" }
        )
    })
}

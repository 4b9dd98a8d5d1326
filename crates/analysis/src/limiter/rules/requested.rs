//! Rates that the programs at the ends were asked to keep.

use model::LimiterKind;
use model::units::bits_per_second;

use super::super::observations::{Observations, goodput_bps, ramp, sent_bps};
use super::{Rule, Seen};
use crate::direction::DirectionView;
use crate::outcome::Headline;

pub(super) const RATE: Rule = Rule {
    name: "asked-rate",
    speaks_for: &[LimiterKind::SenderApplication],
    about: "The sender's program keeps the rate it was asked for.",
    source: "the spec of the measurement (--rate) and what the sender counted",
    see: |observations, direction| {
        let Some(requested) = observations.spec.rate_bps else { return Vec::new() };
        let did = match observations.headline {
            // Datagrams that were sent and lost are held back elsewhere.
            Headline::Goodput => sent_bps(direction).zip(goodput_bps(direction)).map(|(sent, came)| sent.min(came)),
            // A transaction's rate is that of its requests.
            _ => {
                observations.outcome.summary.transactions_per_s.map(|rate| rate * observations.spec.block as f64 * 8.0)
            }
        };
        met(did, requested, LimiterKind::SenderApplication, "the sender's program was asked for", "carried")
    },
};

pub(super) const DRAIN: Rule = Rule {
    name: "asked-drain",
    speaks_for: &[LimiterKind::ReceiverApplication],
    about: "The receiver's program reads at the rate it was asked for.",
    source: "the spec of the measurement (--drain) and what the receiver counted",
    see: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(requested) = direction.receiver.options.drain_bps else { return Vec::new() };
        met(
            goodput_bps(direction),
            requested,
            LimiterKind::ReceiverApplication,
            "the receiver's program was asked to read",
            "read",
        )
    },
};

/// A rate that was kept is the limit; one that was far from being reached is not.
fn met(did: Option<f64>, requested: u64, kind: LimiterKind, who: &str, verb: &str) -> Vec<Seen> {
    let Some(did) = did else { return Vec::new() };
    let part = did / requested as f64;
    let weight = 0.97 * ramp(part, 0.8, 0.97);
    Seen::of(kind, weight, || {
        format!(
            "{who} {} and {verb} {} ({:.0} % of it)",
            bits_per_second(requested as f64),
            bits_per_second(did),
            100.0 * part
        )
    })
}

//! The legs of a curve's passes.

use model::{Leg, Pattern, Spec, Stop};

/// Time that a trial takes beside its round trips, ns.
pub(crate) const TRIAL_NS: u64 = 30_000_000;

/// A leg of a pass and the cell that it is a trial of; `None` for a warm-up.
pub type Planned = (Option<u32>, Leg);

/// The spec of a pass over several sizes: the ends allocate buffers for its largest block.
#[must_use]
pub fn spec_of(first: &Spec, legs: &[Leg]) -> Spec {
    let block = legs.iter().map(|leg| leg.block).max().unwrap_or(1);
    Spec { block, reply: None, interval_ns: 0, ..first.clone() }
}

/// A leg of about `leg_ns`, or of a few exchanges if these take longer.
#[must_use]
pub fn leg(block: u64, leg_ns: u64, expected_ns: u64) -> Leg {
    Leg { block, reply: block, stop: Stop::AboutNs(leg_ns), expected_ns }
}

/// The leg before the first timed one, of this many exchanges of each flow.
#[must_use]
pub fn warm_up(first: &Spec, each: u64) -> Planned {
    let block = if first.pattern == Pattern::Pingpong { 1 } else { 8 };
    let exchanges = each * u64::from(first.flows);
    (None, Leg { block, reply: block, stop: Stop::Transactions(exchanges), expected_ns: 0 })
}

/// Time of a leg, ns, by the time that one of its exchanges is expected to take.
pub(crate) fn leg_cost_ns(first: &Spec, leg: &Leg) -> u64 {
    match leg.stop {
        Stop::AboutNs(ns) => ns.max(first.min_exchanges(leg.expected_ns as f64) * leg.expected_ns),
        _ => 0,
    }
}

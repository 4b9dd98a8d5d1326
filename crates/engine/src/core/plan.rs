//! What a worker does in one trial.

use std::ops::Range;

use model::{Direction, Leg, PathTimes, Role, Spec, Stop};

/// One trial, or one pass of a curve: fresh connections and the legs over them.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialPlan {
    /// The measurement; a leg's block replaces the spec's.
    pub spec: Spec,
    /// Which end this worker is.
    pub role: Role,
    /// Number of the trial, the same at both ends.
    pub trial: u32,
    /// The flows of this worker, a part of `spec.flows`.
    pub flows: Range<u32>,
    /// What is done over the connections, in order.
    pub legs: Vec<Leg>,
    /// What is known of the path.
    pub path: PathTimes,
}

/// When one flow's part of a leg ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegStop {
    /// When the runner's clock says so; only the last leg of a trial.
    Clock,
    /// After exactly this many payload bytes (streams).
    Bytes(u64),
    /// After exactly this many round trips.
    Transactions(u64),
}

impl TrialPlan {
    /// The links of this worker: for `both` on streams each flow has one per direction.
    #[must_use]
    pub fn links(&self) -> Vec<LinkPlan> {
        let mut links: Vec<LinkPlan> = Vec::new();
        for flow in self.flows.clone() {
            match (self.spec.direction, self.spec.is_stream()) {
                (Direction::Both, true) => {
                    links.push(LinkPlan { flow, index: flow * 2, direction: Direction::Send });
                    links.push(LinkPlan { flow, index: flow * 2 + 1, direction: Direction::Reverse });
                }
                (direction, _) => links.push(LinkPlan { flow, index: flow, direction }),
            }
        }
        // The probe's connections come last, in the process that has the first flow.
        let before = if self.spec.direction == Direction::Both { 2 } else { 1 } * self.spec.flows;
        let of_probe = self.probe().map_or(0, |probe| probe.spec.flows);
        links.extend((0..of_probe).map(|at| LinkPlan {
            flow: self.spec.flows + at,
            index: before + at,
            direction: Direction::Send,
        }));
        links
    }

    /// The plan of this worker's last links, if a probe runs beside the stream.
    #[must_use]
    pub fn probe(&self) -> Option<Self> {
        let spec = self.spec.probing().filter(|_| self.flows.start == 0)?;
        let legs = self.legs.iter().map(|leg| Leg { block: spec.block, reply: spec.block, ..*leg }).collect();
        Some(Self { flows: 0..spec.flows, spec, legs, ..self.clone() })
    }

    /// Payload of a flow's first `count` blocks of `leg`. A mix has one leg, its block is the spec's.
    fn bytes_of(&self, leg: &Leg, count: u64) -> u64 {
        if self.spec.mix.is_empty() { count.saturating_mul(leg.block) } else { self.spec.bytes_of(count) }
    }

    /// When `flow` ends its part of `leg`. `per_exchange_ns` is the expected time of one block or round trip, for legs
    /// that end after an approximate time.
    #[must_use]
    pub fn leg_stop(&self, leg: &Leg, flow: u32, per_exchange_ns: f64) -> LegStop {
        let stream = self.spec.is_stream();
        let exchanges = |count: u64| {
            if stream { LegStop::Bytes(self.bytes_of(leg, count)) } else { LegStop::Transactions(count) }
        };
        match leg.stop {
            Stop::TimeNs(_) => LegStop::Clock,
            Stop::Bytes(total) if stream => LegStop::Bytes(share(total, flow, self.spec.flows)),
            Stop::Bytes(total) => LegStop::Transactions(share(total.div_ceil(leg.block), flow, self.spec.flows)),
            Stop::Blocks(total) | Stop::Transactions(total) => exchanges(share(total, flow, self.spec.flows)),
            // A flow that has exchanged nothing yet has no estimate.
            Stop::AboutNs(_) if per_exchange_ns <= 0.0 => exchanges(self.spec.min_exchanges(Spec::SLOW_NS)),
            Stop::AboutNs(ns) => {
                let min = self.spec.min_exchanges(per_exchange_ns);
                exchanges(((ns as f64 / per_exchange_ns) as u64).clamp(min, MAX_EXCHANGES))
            }
        }
    }
}

/// Most exchanges of a leg that ends after an approximate time: a wrong estimate must not run for ever.
const MAX_EXCHANGES: u64 = 10_000_000;

/// How many of a leg's `count` round trips open it and are not timed: caches, pages and windows are first in the state
/// that the previous leg, of another size, left (docs/notes/engine.md has the cost).
pub(crate) fn opening(count: u64) -> u64 {
    if count >= Spec::MIN_MEASURED + Spec::OPENING { Spec::OPENING } else { 1 }
}

/// One connection of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkPlan {
    /// The flow that it serves.
    pub flow: u32,
    /// Its number among the trial's connections.
    pub index: u32,
    /// The direction of its payload.
    pub direction: Direction,
}

/// Whether the end of `role` begins on a link of this direction: sends first, or requests.
#[must_use]
pub(crate) fn initiates(direction: Direction, role: Role) -> bool {
    match direction {
        Direction::Send | Direction::Both => role == Role::Active,
        Direction::Reverse => role == Role::Passive,
    }
}

/// Flow `flow`'s part of `total` split as evenly as whole numbers allow: the first flows take the remainder.
fn share(total: u64, flow: u32, flows: u32) -> u64 {
    let (flow, flows) = (u64::from(flow), u64::from(flows.max(1)));
    total / flows + u64::from(flow < total % flows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;
    use proptest::prelude::*;

    #[test]
    fn at_least_three_exchanges_of_a_leg_are_measured() {
        let trips = Spec::new("tcp", Pattern::Pingpong);
        for exchange_ns in [1.0, 9e6, 10e6, 1e12] {
            let min = trips.min_exchanges(exchange_ns);
            assert_eq!(min - opening(min), Spec::MIN_MEASURED, "{exchange_ns}");
        }
        assert_eq!((opening(1_000), opening(4)), (Spec::OPENING, 1));
        assert_eq!(Spec::new("tcp", Pattern::Stream).min_exchanges(1.0), Spec::MIN_MEASURED);
    }

    proptest! {
        #[test]
        fn shares_add_up_exactly(total in 0u64..1 << 50, flows in 1u32..2_000) {
            let sum: u64 = (0..flows).map(|flow| share(total, flow, flows)).sum();
            prop_assert_eq!(sum, total);
        }
    }
}

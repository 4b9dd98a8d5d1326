//! The check of a curve's peak after its passes: fresh passes of the fastest size, since the highest of many rates is partly luck, and
//! streams, which empty the token buckets that let blocks through faster than the path carries them.

use std::collections::VecDeque;

use analysis::CheckStream;
use model::{Direction, Leg, Pattern, PeakCheck, RunHeader, Shared, Spec, Stop, Stopping, Strategy};

use crate::curve_leg::{Planned, TRIAL_NS, leg_cost_ns, spec_of, warm_up};
use crate::state::RunState;
use crate::{PassResult, Step};

/// The part of the budget that the check takes at most.
pub(crate) const CHECK_SHARE: u64 = 8;
/// Fresh passes, and the fewest for an interval.
const FRESH: (usize, usize) = (6, 3);
/// Legs of the size in a fresh pass, if they take no longer than this together, ns; otherwise one.
const LEGS: (usize, u64) = (3, 30_000_000);
/// Streams in each direction.
const STREAMS: usize = 3;
/// Shortest stream, ns, and its fewest round trips: it must have settled in the first half, which is not counted.
const STREAM: (u64, u64) = (150_000_000, 40);
/// Smallest block of a stream, bytes: calls for less would limit it.
const STREAM_BLOCK: u64 = 65_536;

/// A check in progress.
#[derive(Debug)]
pub(crate) struct Check {
    cell: u32,
    spec: Shared<Spec>,
    legs: Vec<Planned>,
    due: VecDeque<Due>,
    fresh: Vec<f64>,
    streams: Vec<CheckStream>,
}

/// A step of a check.
#[derive(Debug, Clone)]
enum Due {
    Pass,
    Stream(Shared<Spec>),
}

impl Check {
    /// The check of the fastest size, as far as it fits into its part of the budget; `None` if nothing does. `warm_up_exchanges` opens
    /// each pass.
    pub(crate) fn new(state: &RunState, leg_ns: u64, rtt_ns: u64, warm_up_exchanges: u64) -> Option<Self> {
        let outcomes = state.cells.preview();
        let cell = analysis::fastest(&outcomes)?;
        let open = state.cells.open().find(|open| open.cell.id == cell)?;
        let spec = open.cell.spec.clone();
        let mut left = state.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget / CHECK_SHARE);
        let mut due = VecDeque::new();
        let streams = streams(&spec, rtt_ns);
        let cost = streams.len() as u64 * (stream_ns(rtt_ns) + TRIAL_NS + 3 * rtt_ns);
        if cost <= left {
            left -= cost;
            due.extend(streams.into_iter().map(|stream| Due::Stream(stream.into())));
        }
        let leg = crate::curve_leg::leg(spec.block, leg_ns, open.expected_ns());
        let one = leg_cost_ns(&spec, &leg);
        let legs = if one.saturating_mul(LEGS.0 as u64) <= LEGS.1 { LEGS.0 } else { 1 };
        let pass = TRIAL_NS + warm_up_exchanges * rtt_ns + legs as u64 * one;
        let fits = FRESH.0.min((left / pass) as usize);
        // Apart from each other and between the streams, so that no moment has them all.
        for at in 0..if fits < FRESH.1 { 0 } else { fits } {
            due.insert((2 * at).min(due.len()), Due::Pass);
        }
        let legs = std::iter::once(warm_up(&spec, warm_up_exchanges)).chain(vec![(None, leg); legs]).collect();
        (!due.is_empty()).then(|| Self { cell, spec, legs, due, fresh: Vec::new(), streams: Vec::new() })
    }

    /// The next step; `None` at the end.
    pub(crate) fn step(&self, number: u32) -> Option<Step> {
        Some(match self.due.front()? {
            Due::Pass => {
                let legs: Vec<Leg> = self.legs.iter().map(|(_, leg)| *leg).collect();
                Step::pass(number, spec_of(&self.spec, &legs).into(), legs)
            }
            Due::Stream(spec) => Step::trial(number, spec.clone()),
        })
    }

    /// Takes the result of the step. Returns the positions of its legs, none of which is a trial of the curve.
    pub(crate) fn take(&mut self, result: &PassResult) -> Vec<(Option<u32>, u32)> {
        let none = model::EndTally::default();
        let far = result.far.as_ref().map_or(&[][..], |far| &far.tallies);
        let ends = result.near.tallies.iter().zip(far.iter().chain(std::iter::repeat(&none)));
        match self.due.pop_front() {
            Some(Due::Stream(spec)) => {
                self.streams.extend(ends.filter_map(|(near, far)| CheckStream::of(&spec, near, far)));
                vec![(None, 0)]
            }
            _ => {
                let values: Vec<f64> =
                    ends.skip(1).filter_map(|(near, far)| analysis::trial_value(&self.spec, near, far)).collect();
                self.fresh.extend(model::median(&values));
                (0..self.legs.len() as u32).map(|position| (None, position)).collect()
            }
        }
    }

    /// The cell that was checked, and what was found.
    pub(crate) fn found(&self, rule: &Stopping) -> (u32, PeakCheck) {
        (self.cell, analysis::peak_check(&self.spec, &self.fresh, &self.streams, rule))
    }
}

/// Length of a stream over a path with this RTT, ns; the warm-up is a part of it.
fn stream_ns(rtt_ns: u64) -> u64 {
    STREAM.0.max(STREAM.1 * rtt_ns)
}

/// The streams of a check: in each direction that the size goes, in turns. None over other transports than TCP's, since only these
/// adapt to the path, and none at a rate.
fn streams(size: &Spec, rtt_ns: u64) -> Vec<Spec> {
    let directions: &[Direction] = match size.direction {
        Direction::Both => &[],
        _ if !size.transport_facts().is_some_and(|facts| facts.is_over_tcp()) || size.rate_bps.is_some() => &[],
        _ if size.pattern == Pattern::Pingpong => &[Direction::Send, Direction::Reverse],
        Direction::Send => &[Direction::Send],
        Direction::Reverse => &[Direction::Reverse],
    };
    let ns = stream_ns(rtt_ns);
    let stream = |direction: &Direction| Spec {
        pattern: Pattern::Stream,
        reply: None,
        block: size.block.max(STREAM_BLOCK),
        direction: *direction,
        stop: Stop::TimeNs(ns),
        warmup_ns: ns / 2,
        strategy: Strategy::Auto,
        // The points of a curve have no series.
        interval_ns: Spec::new("tcp", Pattern::Stream).interval_ns,
        capture: None,
        ..size.clone()
    };
    (0..STREAMS).flat_map(|_| directions.iter().map(stream)).collect()
}

/// The spec of the first stream of a check of this run; `None` if it has none.
#[must_use]
pub fn check_stream_of(header: &RunHeader) -> Option<Spec> {
    streams(&header.cells.first()?.spec, 0).into_iter().next()
}

//! Which path a queue was on: the data's or the acknowledgements'.
//!
//! The receiver's TCP counts the bytes that have arrived, the sender's TCP those that are acknowledged. The time between the two for the
//! same byte is the delay of the return path, plus the unknown difference of the two ends' starts. As the round trips of a trial differ, a
//! queue on the return path changes that time as much as the round trip, and a queue on the data's path does not change it: the slope of
//! one over the other is the answer, and the unknown difference cancels.

use model::{FlowTally, TcpSample, median};

use super::observations::ramp;
use crate::direction::DirectionView;
use crate::stats::{mean, median_slope};

/// Fewest counts of bytes that both ends must have.
const FEWEST: usize = 8;
/// Smallest difference of two round trips that has a meaning, relative to the median one, and in ns: a busy host reads late.
const LEAST: f64 = 0.02;
const LEAST_NS: f64 = 3e6;
/// Share of the pairs of counts whose round trips must differ by that. Where the queue has one length all the time, only the pairs with a
/// reading of the start-up differ, and their slope is that of chance.
const DIFFER: f64 = 1.0 / 3.0;
/// Slope from which the return path has a part in the delay, and from which it has all of it. The smoothed RTT lags behind, so the slopes
/// of a queue there are between 0.65 and 1.1, and those of a queue on the data's path are below 0.15.
const PART: [f64; 2] = [0.4, 0.65];

/// Which part of the delay that a queue added arose on the return path, from 0 to 1. 0 where the ends have no series.
pub(super) fn part(direction: &DirectionView<'_>) -> f64 {
    let flows = direction.sender.tally.flows.iter().zip(&direction.receiver.tally.flows);
    let slopes: Vec<f64> =
        flows.filter(|(sender, _)| sender.bytes_sent > 0).filter_map(|(from, to)| slope(from, to)).collect();
    mean(&slopes).map_or(0.0, |slope| ramp(slope, PART[0], PART[1]))
}

/// Acknowledgements that the sender received in a second.
pub(super) fn acknowledgements(direction: &DirectionView<'_>) -> Option<f64> {
    let rate = |flow: &FlowTally| {
        let (first, last) = (flow.tcp.first()?, flow.tcp.last()?);
        let ns = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)?;
        Some(last.acks_received?.saturating_sub(first.acks_received?) as f64 * 1e9 / ns as f64)
    };
    direction.sender.flows().filter(|flow| flow.bytes_sent > 0).map(rate).sum()
}

/// By how much the delay of a connection's return path grows with its round trip.
fn slope(sender: &FlowTally, receiver: &FlowTally) -> Option<f64> {
    let arrived = receiver.tcp.iter().filter_map(|one| Some((one.at_ns as f64, one.bytes_received? as f64)));
    let points: Vec<(f64, f64)> = arrived
        .filter_map(|(at, bytes)| {
            let (acknowledged, rtt) = acknowledged(&sender.tcp, bytes)?;
            Some((rtt, acknowledged - at))
        })
        .collect();
    let usual = median(&points.iter().map(|(rtt, _)| *rtt).collect::<Vec<f64>>()).filter(|_| points.len() >= FEWEST)?;
    median_slope(&points, (LEAST * usual).max(LEAST_NS), DIFFER)
}

/// When that many bytes were acknowledged, and the smoothed RTT then, ns; between readings in proportion.
fn acknowledged(series: &[TcpSample], bytes: f64) -> Option<(f64, f64)> {
    let after = series.partition_point(|one| one.bytes_acked.is_some_and(|acked| (acked as f64) < bytes));
    let [before, after] = [series.get(after.checked_sub(1)?)?, series.get(after)?];
    let [from, to] = [before.bytes_acked? as f64, after.bytes_acked? as f64];
    let share = if to > from { (bytes - from) / (to - from) } else { 1.0 };
    let between = |from: u64, to: u64| from as f64 + share * (to as f64 - from as f64);
    Some((between(before.at_ns, after.at_ns), between(before.rtt_ns, after.rtt_ns)))
}

//! Where the start-up of a trial's connections ends, and whether the rate has settled after it.
//!
//! A connection starts with a small congestion window. What it carries until the window fits the path says little about the path, so
//! the goodput of a settled stream counts from the end of the start-up on:
//! 1. TCP has left slow start and recovered from the losses that ended it (RFC 5681, section 3.1), and
//! 2. the rate has come close to that of the trial's second half.
//!
//! From there on the rate must be level, also after the next loss: a window that grows until its queue overflows then falls to a half
//! (Reno) or to 0.7 (CUBIC, RFC 9438, section 4.6). As long as there was no such loss, the queue must be so long that what remains in flight
//! would still fill the path.
//!
//! And the rate must not grow further. It does if its trend is up while the windows can still grow, or if the congestion window grows while the RTT stays: then
//! no queue has formed, so the path could carry more. Three or more losses are a repeated cycle of the congestion control, whose mean is
//! the result.
//!
//! The rate is what the sender's TCP knows to be delivered. A receiver that waits for a lost segment reads nothing, and then much at
//! once.

use std::ops::RangeInclusive;

use model::tally::Window;
use model::{Direction, EndTally, Spec, Stop, TcpSample, median};

use crate::stats::{Trend, median_deviation, trend};

/// Fewest parts of a trial, each at least a round trip long, in which its rate can be judged.
const MIN_PARTS: usize = 5;
/// The rate has come close to its later value within the first of these parts of it, or within the usual deviation of a rate that varies
/// more, up to the second.
const CLOSE: f64 = 0.05;
const FAR: f64 = 0.25;
/// Times the median deviation that is still usual.
const USUAL: f64 = 3.0;
/// The window begins within this part of the settled entries, and ends within that part: one divided by these.
const EARLY: usize = 4;
const LATE: usize = 8;
/// With few entries, up to this many may be left out at the start, and half as many at the end.
const FEW: usize = 4;
/// Differences below this part of all bytes, one divided by it, do not move the ends of a window.
const SEEN_PARTS: f64 = 200.0;
/// If an entry lasts this many times as long as usual, its reader had no CPU.
const LATE_READER: f64 = 2.0;
/// Growth of the rate over the rest of a trial that is still level. The mean is off by half of it at the most.
const LEVEL: f64 = 0.05;
/// Horizon of a growth that the congestion window shows, ns, and the growth over it that matters.
const HORIZON_NS: f64 = 300e9;
const MATTERS: f64 = 0.03;
/// Least growth within the trial itself that a window shows.
const SEEN: f64 = 0.0002;
/// Share of its congestion window that a connection uses if the window limits it.
const USED: f64 = 0.7;
/// Growth of a window within a trial that leads to a loss.
const GREW: f64 = 0.02;
/// The shortest queue, ns.
const LEAST_QUEUE_NS: u64 = 1_000_000;
/// Segments by which a window grows in a round trip at the least: CUBIC among Reno flows (RFC 9438, section 4.3).
const GROWTH: f64 = 0.53;
/// Round trips in which a receive window is tuned, which doubles in each.
const AUTOTUNED: f64 = 60.0;
/// This many losses are a cycle.
const CYCLE: u64 = 3;
/// Standard errors by which a trend is up, and the share of pairs of parts of which the later one carries more.
const CLEAR: f64 = 4.0;
const RISING: f64 = 0.9;

/// A trial is long enough if it lasts this many times as long as the rate takes to double at its present growth.
const DOUBLINGS: f64 = 3.0;
/// The shortest and the longest trial that is worth asking for, as a multiple of the last one and in ns.
const LONGER: u64 = 4;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How one direction of a trial settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settling {
    /// When the start-up was over, ns since the receiver began.
    pub from_ns: u64,
    /// Growth of the rate per second, relative to the rate, if it had not settled; `None` if it had.
    pub growth: Option<f64>,
}

/// Finds the end of the start-up in both directions of a trial of a `steady` spec and restricts the receivers' windows to what came
/// after it, unless the spec has a warm-up of its own. Returns whether the rate settled; `None` where that cannot be known.
pub fn settle(spec: &Spec, near: &mut EndTally, far: &mut EndTally) -> Option<bool> {
    let found = judge(spec, near, far);
    let held = [held_back(near), held_back(far)];
    for (receiver, settling, held) in [(far, found[0], &held[0]), (near, found[1], &held[1])] {
        let Some(settling) = settling else { continue };
        receiver.steady_from_ns = Some(settling.from_ns);
        if spec.warmup_ns > 0 {
            continue;
        }
        if let Some((from_ns, window)) = window(spec, receiver, settling.from_ns, held) {
            (receiver.steady_from_ns, receiver.measured) = (Some(from_ns), Some(window));
        }
    }
    found.into_iter().flatten().map(|settling| settling.growth.is_none()).reduce(|one, other| one && other)
}

/// How the outbound and the return direction of a trial settled; `None` for a direction without payload, or without a series.
#[must_use]
pub fn judge(spec: &Spec, near: &EndTally, far: &EndTally) -> [Option<Settling>; 2] {
    let Stop::TimeNs(length_ns) = spec.stop else { return [None; 2] };
    if !spec.steady || near.cut_short || far.cut_short || near.stalled || far.stalled {
        return [None; 2];
    }
    let of = |sender, receiver| settling(spec, length_ns, sender, receiver);
    match spec.direction {
        Direction::Send => [of(near, far), None],
        Direction::Reverse => [None, of(far, near)],
        Direction::Both => [of(near, far), of(far, near)],
    }
}

fn settling(spec: &Spec, length_ns: u64, sender: &EndTally, receiver: &EndTally) -> Option<Settling> {
    let flows: Vec<&[TcpSample]> = sending(sender).collect();
    let rtt_ns = round_trip_ns(&flows);
    let parts = together(delivered(spec, &flows).unwrap_or_else(|| arrived(spec, receiver)), rtt_ns);
    let last = parts.last()?;
    let grown_ns = grown_after_ns(&flows, rtt_ns);
    let begun = match spec.warmup_ns {
        0 => start_up_ns(&flows, length_ns).max(close_from_ns(&parts).min(grown_ns as u64)),
        warmup => warmup,
    };
    // The receiver began at most a round trip before the sender.
    let from_ns = if spec.warmup_ns > 0 { begun } else { begun + rtt_ns as u64 };
    let rest: Vec<&Part> = parts.iter().filter(|part| part.start_ns >= begun).collect();
    if rest.len() < MIN_PARTS {
        return Some(Settling { from_ns: from_ns.min(last.start_ns), growth: Some(1e9 / length_ns as f64) });
    }
    let points: Vec<(f64, f64)> = rest.iter().map(|part| (part.middle_ns(), part.per_ns())).collect();
    let growth = match trend(&points) {
        Some(rate) if rate.slope * span(&points) > LEVEL && is_clear(rate, &points, &flows, begun..=length_ns) => {
            Some(rate.slope)
        }
        rate => growing_window(&flows, begun, length_ns).filter(|slope| {
            // A rate that is clearly flatter than the window has another limit.
            rate.is_none_or(|rate| rate.slope + CLEAR * rate.standard_error > slope / 2.0)
        }),
    };
    let growth = growth.filter(|_| (length_ns as f64) < grown_ns).map(|per_ns| per_ns * 1e9);
    let falls = flows_fall(sender, begun, length_ns).then_some(1e9 / length_ns as f64);
    Some(Settling { from_ns, growth: growth.or(falls) })
}

/// Whether a rate grows beyond doubt: its trend exceeds its error, or nearly every part carries more than those before it while the windows
/// grow as well. The end of a growth is bent, and about a line a bend looks like correlated noise.
fn is_clear(rate: Trend, points: &[(f64, f64)], flows: &[&[TcpSample]], within: RangeInclusive<u64>) -> bool {
    let windows = || window_growth(flows, within) > rate.slope * span(points) / 2.0;
    rate.slope > CLEAR * rate.standard_error || (rising(points) >= RISING && windows())
}

/// The share of all pairs of points of which the later one is higher, as in Kendall's rank correlation.
fn rising(points: &[(f64, f64)]) -> f64 {
    let pairs = points.iter().enumerate().flat_map(|(at, later)| points[..at].iter().map(move |one| later.1 > one.1));
    let (higher, all) = pairs.fold((0, 0), |(higher, all), rises| (higher + u32::from(rises), all + 1));
    f64::from(higher) / f64::from(all.max(1))
}

/// Growth of the congestion windows of all flows from the first to the last reading in a range of time, relative to the first.
fn window_growth(flows: &[&[TcpSample]], within: RangeInclusive<u64>) -> f64 {
    let windows = flows.iter().map(|flow| {
        let mut windows = flow.iter().filter(|one| within.contains(&one.at_ns)).map(|one| f64::from(one.cwnd));
        let first = windows.next().unwrap_or(0.0);
        (first, windows.next_back().unwrap_or(first))
    });
    let (first, last) = windows.fold((0.0, 0.0), |sum, flow| (sum.0 + flow.0, sum.1 + flow.1));
    if first > 0.0 { last / first - 1.0 } else { 0.0 }
}

/// When the largest window of the flows has grown from nothing, ns, so that the start-up is over, and a rate that still grows does so for
/// another reason: a host that is busy at first, or a path that is. Infinite if the windows or the round trip are unknown.
fn grown_after_ns(flows: &[&[TcpSample]], rtt_ns: f64) -> f64 {
    let largest = flows.iter().flat_map(|flow| flow.iter()).map(|one| one.cwnd).max();
    match largest.filter(|_| rtt_ns > 0.0) {
        Some(segments) => (f64::from(segments) / GROWTH).max(AUTOTUNED) * rtt_ns,
        None => f64::INFINITY,
    }
}

/// Whether the next loss would leave too little in flight to fill the path, for most of the flows: their windows grow and are used, nothing
/// was lost since the start-up, and the queue is too short for what the congestion control keeps after a loss.
fn flows_fall(sender: &EndTally, from_ns: u64, length_ns: u64) -> bool {
    let all: Vec<bool> = sender
        .flows
        .iter()
        .filter(|flow| flow.bytes_sent > 0 && !flow.tcp.is_empty())
        .map(|flow| {
            let kept = kept_after_loss(flow.socket.cc.as_deref());
            kept.is_some_and(|kept| falls(&flow.tcp, from_ns, length_ns, kept))
        })
        .collect();
    2 * all.iter().filter(|falls| **falls).count() > all.len()
}

/// The part of its window that a congestion control keeps after a loss; `None` for those that do not grow until there is one.
fn kept_after_loss(cc: Option<&str>) -> Option<f64> {
    match cc? {
        "reno" => Some(0.5),
        "cubic" => Some(0.7),
        _ => None,
    }
}

fn falls(flow: &[TcpSample], from_ns: u64, length_ns: u64, kept: f64) -> bool {
    let settled: Vec<&TcpSample> =
        flow.iter().filter(|one| (from_ns..=length_ns).contains(&one.at_ns) && one.rtt_ns > 0).collect();
    let [first, .., last] = settled.as_slice() else { return false };
    let shares: Vec<f64> = settled.iter().map(|one| f64::from(one.unacked) / f64::from(one.cwnd.max(1))).collect();
    let used = median(&shares).is_some_and(|share| share >= USED);
    let grew = f64::from(last.cwnd) >= (1.0 + GREW) * f64::from(first.cwnd);
    let shortest = flow.iter().filter_map(|one| one.min_rtt_ns).min().unwrap_or(0);
    // A busy host lengthens short round trips without a queue, so no loss follows.
    let queue = last.rtt_ns.saturating_sub(shortest);
    let filled = (last.rtt_ns as f64) * kept >= shortest as f64;
    used && grew && last.retransmits == first.retransmits && queue >= LEAST_QUEUE_NS && !filled
}

/// From the first to the last of ascending points.
fn span(points: &[(f64, f64)]) -> f64 {
    debug_assert!(points.is_sorted_by_key(|point| point.0), "the points ascend");
    points.last().map_or(0.0, |last| last.0 - points[0].0)
}

/// The length of a trial in which a rate that grows by `growth` per second would settle, ns, rounded up to a figure that people use.
#[must_use]
pub fn needed_ns(spec: &Spec, growth: f64) -> Option<u64> {
    let Stop::TimeNs(length_ns) = spec.stop else { return None };
    let ns = (DOUBLINGS * 1e9 / growth) as u64;
    let ns = ns.max(LONGER * length_ns).min(LONGEST_NS);
    let round = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600].map(|seconds| seconds * 1_000_000_000);
    round.into_iter().find(|round| *round >= ns)
}

/// What was carried in a part of a trial: bytes or segments.
struct Part {
    start_ns: u64,
    end_ns: u64,
    amount: u64,
}

impl Part {
    fn per_ns(&self) -> f64 {
        self.amount as f64 / (self.end_ns - self.start_ns).max(1) as f64
    }

    fn middle_ns(&self) -> f64 {
        (self.start_ns + self.end_ns) as f64 / 2.0
    }
}

/// The entries of a receiver's series that are whole and end before the senders stopped: after that, retransmissions may come late.
fn entries<'a>(spec: &Spec, receiver: &'a EndTally) -> impl DoubleEndedIterator<Item = &'a model::Interval> + use<'a> {
    let (shortest, end) = (spec.interval_ns / 2, end_ns(spec));
    receiver.intervals.iter().filter(move |entry| entry.end_ns <= end && entry.end_ns - entry.start_ns > shortest)
}

/// When the senders stop at the earliest, ns since the receiver began.
fn end_ns(spec: &Spec) -> u64 {
    let Stop::TimeNs(ns) = spec.stop else { return 0 };
    // The entries of a series end a little after their time.
    ns + spec.interval_ns / 4
}

/// What the senders' TCP knew to be delivered between two readings; `None` where it does not report that.
fn delivered(spec: &Spec, flows: &[&[TcpSample]]) -> Option<Vec<Part>> {
    let readings = flows.iter().map(|flow| flow.len()).min().filter(|readings| *readings > 1)?;
    let sum = |at: usize| flows.iter().map(|flow| flow[at].delivered).sum::<Option<u64>>();
    let (first, end) = (flows[0], end_ns(spec));
    let part = |at: usize| {
        let amount = sum(at)?.saturating_sub(sum(at - 1)?);
        Some(Part { start_ns: first[at - 1].at_ns, end_ns: first[at].at_ns, amount })
    };
    let parts: Option<Vec<Part>> = (1..readings).map(part).collect();
    Some(parts?.into_iter().filter(|part| part.end_ns <= end && part.end_ns > part.start_ns).collect())
}

/// What arrived at the receiver, from the first arrival on.
fn arrived(spec: &Spec, receiver: &EndTally) -> Vec<Part> {
    let arrived = entries(spec, receiver).skip_while(|entry| entry.bytes_received == 0);
    arrived.map(|entry| Part { start_ns: entry.start_ns, end_ns: entry.end_ns, amount: entry.bytes_received }).collect()
}

/// The parts, joined to parts of a round trip or more. What does not fill one is left out at the start, where the rate has not settled.
fn together(parts: Vec<Part>, rtt_ns: f64) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts.into_iter().rev() {
        match joined.last_mut() {
            Some(later) if ((later.end_ns - later.start_ns) as f64) < rtt_ns => {
                (later.start_ns, later.amount) = (part.start_ns, later.amount + part.amount);
            }
            _ => joined.push(part),
        }
    }
    if joined.last().is_some_and(|first| ((first.end_ns - first.start_ns) as f64) < rtt_ns) {
        joined.pop();
    }
    joined.reverse();
    joined
}

/// What arrived from about `from_ns` to the end in whole entries, and when the first of them began. What a reader without CPU left in the
/// kernel, and what waits behind a lost segment, is read later than it arrives. So the window begins and ends where reading is least behind
/// the usual rate, and does not begin in a gap ([`after_backlog`]). What waits behind a lost segment at its end counts, and what waited at
/// its start does not. `None` if nothing arrived in it, or if such a gap leaves less than half of it: the whole trial counts then.
fn window(spec: &Spec, receiver: &EndTally, from_ns: u64, held: &[(u64, u64)]) -> Option<(u64, Window)> {
    let whole: Vec<&model::Interval> = entries(spec, receiver).collect();
    let settled = whole.partition_point(|entry| entry.start_ns < from_ns);
    let begun = after_backlog(&whole, settled);
    let entries = whole.get(begun..).filter(|left| 2 * left.len() >= whole.len() - settled)?;
    let missing = missing(entries);
    // With few entries, one lasts no longer than a reader may be late.
    let part = |one: usize, most: usize| entries.len().div_ceil(one).max(entries.len().div_ceil(one / 2).min(most));
    let (early, late) = (part(EARLY, FEW), part(LATE, FEW / 2));
    let first = (0..early).min_by_key(|at| missing[*at][0])?;
    let last = (entries.len() - late..entries.len()).rev().min_by_key(|at| missing[*at][1])?;
    let counted = entries.get(first..=last).filter(|counted| !counted.is_empty())?;
    let (from_ns, end_ns) = (counted[0].start_ns, counted[counted.len() - 1].end_ns);
    let read: u64 = counted.iter().map(|entry| entry.bytes_received).sum();
    let bytes = (read + held_at(held, end_ns)).saturating_sub(held_at(held, from_ns));
    // A reader that had no CPU at all in this time says nothing about the path.
    (bytes > 0).then_some((from_ns, Window { bytes, ns: end_ns - from_ns }))
}

/// How far the bytes read are behind the usual rate at the start and at the end of each entry, in parts of all bytes ([`SEEN_PARTS`]).
fn missing(entries: &[&model::Interval]) -> Vec<[i64; 2]> {
    let length = |entry: &model::Interval| (entry.end_ns - entry.start_ns) as f64;
    let rates: Vec<f64> = entries.iter().map(|entry| entry.bytes_received as f64 / length(entry)).collect();
    let usual = median(&rates).unwrap_or(0.0);
    let begun = entries.first().map_or(0, |entry| entry.start_ns);
    let all = entries.last().map_or(0.0, |entry| usual * (entry.end_ns - begun) as f64);
    if all <= 0.0 {
        return vec![[0; 2]; entries.len()];
    }
    let mut read = 0.0;
    let mut at = |entry: &&model::Interval| {
        let before = read;
        read += entry.bytes_received as f64;
        [(entry.start_ns, before), (entry.end_ns, read)]
            .map(|(ns, read)| (((ns - begun) as f64 * usual - read) / all * SEEN_PARTS).round() as i64)
    };
    entries.iter().map(&mut at).collect()
}

/// The first entry from `settled` on without bytes that arrived before it. A reader that had no CPU leaves a gap, and the next entry has the
/// bytes of the gap, too.
fn after_backlog(entries: &[&model::Interval], settled: usize) -> usize {
    let length = |entry: &model::Interval| entry.end_ns - entry.start_ns;
    let usual = median(&entries.iter().map(|entry| length(entry) as f64).collect::<Vec<_>>()).unwrap_or(0.0);
    let is_gap = |entry: &model::Interval| entry.bytes_received == 0 || length(entry) as f64 > LATE_READER * usual;
    let Some(before) = settled.checked_sub(1).filter(|before| is_gap(entries[*before])) else { return settled };
    let end = entries[before..].iter().position(|entry| !is_gap(entry)).map(|gap| before + gap + 1);
    // Without an end of the gap, what arrived waits behind a lost segment.
    end.unwrap_or(settled)
}

/// What had arrived at the receiver of a sender's data at each of the sender's readings, bytes: what was acknowledged in order, and what the
/// receiver held back. `None` if TCP's readings of a connection are missing.
pub(crate) fn confirmed(sender: &EndTally) -> Option<Vec<(u64, u64)>> {
    let flows: Vec<&[TcpSample]> = sending(sender).collect();
    if flows.is_empty() || flows.len() < sender.flows.iter().filter(|flow| flow.bytes_sent > 0).count() {
        return None;
    }
    let acked = summed(&flows, |one| one.bytes_acked);
    let held = held_back(sender);
    (acked.len() > 1 && acked.len() == held.len())
        .then(|| acked.into_iter().zip(held).map(|((at, acked), (_, held))| (at, acked + held)).collect())
}

/// What the receiver of a sender's data held back at each reading, because a segment before it was lost: bytes that the sender knew to be
/// delivered beyond those that were acknowledged in order. What stays to the end is the part by which segments that were not full are
/// counted too long.
pub(crate) fn held_back(sender: &EndTally) -> Vec<(u64, u64)> {
    let flows: Vec<&[TcpSample]> = sending(sender).collect();
    let mut held = summed(&flows, |one| Some((one.delivered? * u64::from(one.mss)).saturating_sub(one.bytes_acked?)));
    let mut least = u64::MAX;
    for (_, bytes) in held.iter_mut().rev() {
        least = least.min(*bytes);
        *bytes -= least;
    }
    held
}

/// The sum of a figure over all flows at each reading, with its time by the first flow; without the readings at which it is unknown.
fn summed(flows: &[&[TcpSample]], figure: impl Fn(&TcpSample) -> Option<u64>) -> Vec<(u64, u64)> {
    let readings = flows.iter().map(|flow| flow.len()).min().unwrap_or(0);
    let sum = |at: usize| flows.iter().map(|flow| figure(&flow[at])).sum::<Option<u64>>();
    (0..readings).filter_map(|at| Some((flows[0][at].at_ns, sum(at)?))).collect()
}

/// What is held back at a time, of [`held_back`]: that of the next reading.
pub(crate) fn held_at(held: &[(u64, u64)], at_ns: u64) -> u64 {
    held.iter().find(|(ns, _)| *ns >= at_ns).or(held.last()).map_or(0, |(_, bytes)| *bytes)
}

/// The rates of a receiver's whole entries after the start-up or the warm-up, in their unit per second: payload bits, or for round
/// trips the transactions.
#[must_use]
pub fn rates(spec: &Spec, receiver: &EndTally) -> Vec<f64> {
    let from = receiver.steady_from_ns.unwrap_or(0).max(spec.warmup_ns);
    let first = receiver.intervals.iter().position(|entry| entry.bytes_received + entry.transactions > 0);
    // The first arrival is somewhere within its entry.
    let counted = entries(spec, receiver).filter(|entry| entry.start_ns >= from);
    let skipped = receiver.intervals.get(first.unwrap_or(0)).map_or(0, |entry| entry.end_ns);
    let amount = |entry: &model::Interval| if spec.is_stream() { entry.bytes_received * 8 } else { entry.transactions };
    let rate = |entry: &model::Interval| amount(entry) as f64 * 1e9 / (entry.end_ns - entry.start_ns) as f64;
    counted.filter(|entry| entry.start_ns >= skipped || from > 0).map(rate).collect()
}

/// The same of a settled stream by what its sender knew to be delivered: a receiver that waits for a lost segment reads nothing, and then
/// much at once, which says nothing about the path. `None` where the sender's TCP does not report it.
#[must_use]
pub fn delivered_rates(spec: &Spec, sender: &EndTally, receiver: &EndTally) -> Option<Vec<f64>> {
    let from = receiver.steady_from_ns?;
    let flows: Vec<&[TcpSample]> = sending(sender).collect();
    let bits = f64::from(flows.first()?.last()?.mss) * 8e9;
    let parts = delivered(spec, &flows)?.into_iter().filter(|part| part.start_ns >= from);
    Some(parts.map(|part| part.per_ns() * bits).collect())
}

/// The readings of the connections that sent payload.
fn sending(sender: &EndTally) -> impl Iterator<Item = &[TcpSample]> {
    sender.flows.iter().filter(|flow| flow.bytes_sent > 0 && !flow.tcp.is_empty()).map(|flow| flow.tcp.as_slice())
}

/// The usual smoothed RTT of the flows, ns; 0 if it is unknown.
fn round_trip_ns(flows: &[&[TcpSample]]) -> f64 {
    let known = flows.iter().flat_map(|flow| flow.iter()).filter(|one| one.rtt_ns > 0);
    median(&known.map(|one| one.rtt_ns as f64).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// When half of the flows had left slow start and recovered from its end, ns. 0 if that was not in the first half of the trial: flows
/// that something else holds back never leave it.
fn start_up_ns(flows: &[&[TcpSample]], length_ns: u64) -> u64 {
    let mut ends: Vec<u64> = flows.iter().map(|flow| left_slow_start_ns(flow)).collect();
    ends.sort_unstable();
    ends.get(ends.len() / 2).copied().filter(|ns| *ns <= length_ns / 2).unwrap_or(0)
}

fn left_slow_start_ns(flow: &[TcpSample]) -> u64 {
    let left = flow.iter().position(|one| one.ssthresh.is_some_and(|threshold| one.cwnd >= threshold));
    let Some(left) = left else { return 0 };
    // Congestion state 0 is open: nothing to recover from. Where losses never end, the state says nothing.
    let open = flow[left..].iter().find(|one| one.state == 0);
    open.unwrap_or(&flow[left]).at_ns
}

/// The start of the first part whose rate is close to that of the second half.
fn close_from_ns(parts: &[Part]) -> u64 {
    let rates: Vec<f64> = parts.iter().map(Part::per_ns).collect();
    let later = &rates[rates.len() / 2..];
    let (Some(level), Some(deviation)) = (median(later), median_deviation(later)) else { return 0 };
    let near = (USUAL * deviation).clamp(CLOSE * level, FAR * level);
    parts.iter().zip(&rates).find(|(_, rate)| (*rate - level).abs() <= near).map_or(0, |(part, _)| part.start_ns)
}

/// The growth per ns of what the congestion windows carry over their RTT, if they limit the flows and no cycle has formed.
fn growing_window(flows: &[&[TcpSample]], from_ns: u64, length_ns: u64) -> Option<f64> {
    let points = flows.iter().map(|flow| flow.len()).min()?;
    let reading = |at: usize| flows.iter().map(move |flow| &flow[at]);
    let lost = |at: usize| reading(at).map(|one| one.retransmits).sum::<u64>();
    let within: Vec<usize> = (0..points)
        .filter(|at| (from_ns..=length_ns).contains(&flows[0][*at].at_ns) && reading(*at).all(|one| one.rtt_ns > 0))
        .collect();
    let losses = within.windows(2).filter(|pair| lost(pair[1]) > lost(pair[0])).map(|pair| pair[1]);
    let losses: Vec<usize> = losses.collect();
    if losses.len() as u64 >= CYCLE {
        return None;
    }
    let since: Vec<usize> = within.into_iter().filter(|at| losses.last().is_none_or(|last| at > last)).collect();
    let window = |one: &TcpSample| f64::from(one.cwnd) * f64::from(one.mss);
    let carried = |at: usize| reading(at).map(|one| window(one) / one.rtt_ns as f64).sum::<f64>();
    let used = since.iter().map(|at| {
        let sum = |figure: fn(&TcpSample) -> u32| reading(*at).map(|one| f64::from(figure(one))).sum::<f64>();
        sum(|one| one.unacked) / sum(|one| one.cwnd).max(1.0)
    });
    if median(&used.collect::<Vec<_>>())? < USED {
        return None;
    }
    let points: Vec<(f64, f64)> = since.iter().map(|at| (flows[0][*at].at_ns as f64, carried(*at))).collect();
    let trend = trend(&points)?;
    let clear = trend.slope > CLEAR * trend.standard_error && trend.slope * span(&points) > SEEN;
    (clear && trend.slope * HORIZON_NS > MATTERS).then_some(trend.slope)
}

//! Notes on an outcome: stalls, different directions, windows that do not fit the path, and what was not recorded.

use model::{BoundKind, Direction, EndTally, Outcome, TcpSample};
use text::{Rate, Text, Time, say};

use super::observations::{Observations, SenderFlow, each, goodput_bps, sender_flows};
use super::threads;
use crate::direction::{DirectionView, Side};
use crate::findings::wording;
use crate::outcome::{Headline, sample};
use crate::stats::{MeanDifference, mean, t_interval};

/// Smallest ratio of two directions that is reported, in natural logarithms: 5 %.
const MIN_RATIO: f64 = 0.049;
/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// The notes on an outcome.
pub(super) fn of_outcome(observations: &Observations<'_>) -> Vec<Text> {
    let stalls = observations.directions.iter().filter_map(stall);
    stalls
        .chain(unequal_directions(observations))
        .chain(own_queue(observations))
        .chain(too_small(observations))
        .chain(crate::anatomy::sentence(observations.outcome))
        .collect()
}

/// Which end blocked a stalled trial, and for how long nothing was acknowledged.
fn stall(direction: &DirectionView<'_>) -> Option<Text> {
    let (sender, receiver) = (direction.sender.tally, direction.receiver.tally);
    if !sender.stalled && !receiver.stalled {
        return None;
    }
    let flows: Vec<&[TcpSample]> =
        direction.sender.flows().map(|flow| flow.tcp.as_slice()).filter(|series| !series.is_empty()).collect();
    let lasts: Vec<&TcpSample> = flows.iter().filter_map(|series| series.last()).collect();
    let closed = |one: &&TcpSample| one.peer_window_bytes.is_some_and(|bytes| bytes < one.mss);
    let who = if !lasts.is_empty() && lasts.iter().all(closed) {
        "the receiver blocked (its program did not read, so its window closed)".into()
    } else if lasts.iter().any(|one| one.unacked > 0) {
        let unacked: u32 = lasts.iter().map(|one| one.unacked).sum();
        say!("the path or the receiving host blocked ({unacked} segments were in flight and none was acknowledged)")
    } else if sender.bytes_unsent > 0 {
        say!("{} B stayed in the sender's send queue", sender.bytes_unsent)
    } else {
        "the sender's program blocked (its send queue was empty)".into()
    };
    let quiet = flows.iter().filter_map(|series| quiet_ns(series)).min().or_else(|| silence_ns(receiver));
    let long = quiet.map_or(Text::default(), |ns| say!(" for its last {}", Time(ns as f64)));
    Some(say!("A trial stalled{long}: {who}."))
}

/// Time from the last acknowledged byte to the end of a series, ns.
fn quiet_ns(series: &[TcpSample]) -> Option<u64> {
    let last = series.last()?;
    let acked = last.bytes_acked?;
    let since = series.iter().find(|one| one.bytes_acked == Some(acked))?;
    Some(last.at_ns - since.at_ns).filter(|ns| *ns > 0)
}

/// The same from the receiver's intervals.
fn silence_ns(receiver: &EndTally) -> Option<u64> {
    let end = receiver.intervals.last()?.end_ns;
    let last = receiver.intervals.iter().rfind(|one| one.bytes_received > 0).map_or(0, |one| one.end_ns);
    Some(end - last).filter(|ns| *ns > 0)
}

/// For simultaneous directions: whether one carries significantly more.
pub(super) fn unequal_directions(observations: &Observations<'_>) -> Option<Text> {
    if observations.spec.direction != Direction::Both || !observations.bulk() {
        return None;
    }
    let log_ratio = |pair: &[DirectionView<'_>]| match pair {
        [outbound, return_trip] => Some((goodput_bps(outbound)? / goodput_bps(return_trip)?).ln()),
        _ => None,
    };
    let ratios: Vec<f64> = observations.directions.chunks(2).filter_map(log_ratio).collect();
    let (centre, interval) = (mean(&ratios)?, t_interval(&ratios, CONFIDENCE)?);
    if centre.abs() < MIN_RATIO || interval.contains(0.0) {
        return None;
    }
    let rate = |direction: usize| {
        mean(
            &observations
                .directions
                .chunks(2)
                .filter_map(|pair| goodput_bps(pair.get(direction)?))
                .collect::<Vec<f64>>(),
        )
    };
    Some(say!(
        "The directions differ: {} outbound, {} return (ratio {}).",
        Rate(rate(0)?),
        Rate(rate(1)?),
        ratio(centre, interval.low, interval.high)
    ))
}

/// `1.31 with a 95 % interval of 1.2 to 1.4`, from natural logarithms.
fn ratio(centre: f64, low: f64, high: f64) -> Text {
    let three = |ln: f64| model::units::three_digits(ln.exp());
    say!("{} with a {} interval of {} to {}", three(centre), wording::confidence(CONFIDENCE), three(low), three(high))
}

/// Whether more data is in flight than the path holds, so the sender's own data waits in a queue.
fn own_queue(observations: &Observations<'_>) -> Option<Text> {
    let flows: Vec<SenderFlow<'_>> = observations.directions.iter().flat_map(sender_flows).collect();
    let (added, shortest) = (each(&flows, SenderFlow::queueing_ns)?, each(&flows, SenderFlow::min_rtt_ns)?);
    if each(&flows, SenderFlow::standing)? < 0.5 {
        return None;
    }
    // Per trial: the sum over its connections.
    let trials = (observations.directions.len() as f64).max(1.0);
    let rate = flows.iter().map(|flow| flow.rate_bps).sum::<f64>() / trials;
    let [fills, in_flight] = [shortest, shortest + added].map(|rtt| wording::rounded_size(rate * rtt / 8e9));
    Some(say!(
        "Self-inflicted bufferbloat: {} over a minimum RTT of {} needs {fills} in flight, but {in_flight} was. The excess waited in a \
         queue and added {} to each RTT.",
        Rate(rate),
        Time(shortest),
        Time(added)
    ))
}

/// Whether the window is too small for a known line rate.
fn too_small(observations: &Observations<'_>) -> Option<Text> {
    let ceiling = observations.outcome.summary.ceiling.as_ref()?;
    let others = ceiling.others.iter().map(|bound| (bound.kind, bound.bps));
    let line =
        std::iter::once((ceiling.kind, ceiling.bound_bps)).chain(others).find(|(kind, _)| *kind == BoundKind::Line)?.1;
    let flows: Vec<SenderFlow<'_>> = observations.directions.iter().flat_map(sender_flows).collect();
    let trials = (observations.directions.len() as f64).max(1.0);
    let window = flows.iter().filter_map(SenderFlow::window_bytes).sum::<f64>() / trials;
    let shortest = each(&flows, SenderFlow::min_rtt_ns)?;
    let needed = line * shortest / 8e9;
    (window > 0.0 && window < needed).then(|| {
        say!(
            "The window of {} is smaller than the bandwidth-delay product: {} over an RTT of {} needs {}.",
            wording::rounded_size(window),
            Rate(line),
            Time(shortest),
            wording::rounded_size(needed)
        )
    })
}

/// What was not recorded.
pub(super) fn missing(observations: &Observations<'_>) -> Vec<String> {
    let series =
        observations.directions.iter().any(|direction| direction.sender.flows().any(|flow| flow.tcp.len() > 1));
    let mut missing = Vec::new();
    if observations.spec.is_over_tcp() && observations.bulk() && !series {
        missing.push("TCP_INFO over time (needed to split the sender's time)".to_owned());
    }
    let senders: Vec<Side<'_>> = observations.directions.iter().map(|direction| direction.sender).collect();
    let receivers: Vec<Side<'_>> = observations.directions.iter().map(|direction| direction.receiver).collect();
    for (name, ends) in [("sender", senders), ("receiver", receivers)] {
        // Transports with one end record nothing at the other.
        if ends.iter().all(|end| end.tally.bytes_sent + end.tally.bytes_received == 0) {
            continue;
        }
        let observed = |end: &Side<'_>| end.pass.and_then(|pass| pass.observed.as_ref()).is_some();
        if !ends.iter().any(observed) {
            missing.push(format!("the counters of the {name}'s host"));
        }
        if let Some(seen) = ends.iter().find_map(|end| end.pass?.observed.as_ref()) {
            let used = seen.missing.iter().filter(|gap| seen.is_evidence(gap));
            missing.extend(used.map(|gap| format!("on the {name}'s host: {gap}")));
        }
        if !ends.iter().any(threads::measured) {
            missing.push(format!("CPU time of the {name}'s measuring threads"));
        }
    }
    missing
}

/// For outcomes that differ only in their direction, as of runs with and without `--reverse`: whether one direction carries
/// significantly more. Each comes with the name of its run.
#[must_use]
pub fn between_runs(outcomes: &[(&str, &Outcome)]) -> Vec<Text> {
    let mut notes = Vec::new();
    for (outbound_name, outbound) in outcomes.iter().filter(|(_, one)| one.spec.direction == Direction::Send) {
        let like = |other: &Outcome| {
            let (a, b) = (&outbound.spec, &other.spec);
            b.direction == Direction::Reverse
                && (&a.transport, &a.pattern, a.block, a.flows) == (&b.transport, &b.pattern, b.block, b.flows)
        };
        for (return_name, return_trip) in outcomes.iter().filter(|(_, one)| like(one)) {
            if Headline::of(&outbound.spec) != Headline::Goodput {
                continue;
            }
            let logs = |outcome: &Outcome| {
                sample(&outcome.trials).iter().filter(|v| **v > 0.0).map(|v| v.ln()).collect::<Vec<f64>>()
            };
            let Some(difference) = MeanDifference::new(&logs(outbound), &logs(return_trip)) else { continue };
            // The difference is return minus outbound.
            let (centre, interval) = (-difference.value, difference.interval(CONFIDENCE));
            let Some(interval) = interval.filter(|interval| !interval.contains(0.0) && centre.abs() >= MIN_RATIO)
            else {
                continue;
            };
            notes.push(say!(
                "The directions differ: the ratio of outbound ({outbound_name}) to return ({return_name}) is {}.",
                ratio(centre, -interval.high, -interval.low)
            ));
        }
    }
    notes
}

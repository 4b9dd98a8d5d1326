//! A bottleneck on the path, detected by its effects: payload arrives at one rate however much is sent, and the excess queues before
//! it or is lost there.

use model::units::count;
use model::{Direction, Inventory, Outcome, median};
use text::{Rate, Text, Time, say};

use super::observations::{Observations, SenderFlow, each, goodput_bps, ramp, sender_flows};
use super::queues::qdisc_limited;
use super::threads::busiest;
use super::{Recorded, STRONG, losses, return_path};
use crate::direction::{DirectionView, send_buffer_bytes};
use crate::stats::{mean, quantile};

/// Share of the requested rate from which it counts as reached.
const REACHED: f64 = 0.95;
/// Congestion window below which the RTT contains delayed acknowledgements: the last segment of a window waits for one.
const FEW_SEGMENTS: f64 = 8.0;

/// A bottleneck as one direction of one trial shows it.
pub(super) struct Bottleneck {
    /// Weight of the evidence, 0 to 1.
    pub(super) weight: f64,
    /// Payload rate of the bottleneck, bit/s.
    bps: f64,
    /// The observation that shows it.
    observation: Text,
    /// The part of it that is on the return path, 0 to 1, where its queue delays acknowledgements.
    pub(super) back: f64,
    /// Other tests of the run used the path at the same time: the rate is this one's share.
    shared: bool,
}

impl Bottleneck {
    /// `acknowledgements queued on the return path: ...`.
    pub(super) fn of_return(&self, acknowledgements: Option<f64>) -> Text {
        let came = acknowledgements.map_or(Text::default(), |rate| say!(" ({} per second)", count(rate)));
        say!(
            "acknowledgements{came} queued on the return path, which is slow or busy: {}. The delay arose after the data had arrived",
            self.observation
        )
    }

    /// `a bottleneck of about 47.1 Mbit/s on the path: ...`.
    pub(super) fn statement(&self) -> Text {
        let rate = Rate(self.bps);
        if self.shared {
            return say!("a share of about {rate} of a bottleneck on the path: {}", self.observation);
        }
        say!("a bottleneck of about {rate} on the path: {}", self.observation)
    }
}

/// The bottleneck of a direction; `None` without any evidence.
pub(super) fn of(observations: &Observations<'_>, direction: &DirectionView<'_>) -> Option<Bottleneck> {
    if !observations.bulk() || reaches_its_rate(observations, direction) {
        return None;
    }
    let (sender, receiver) = (direction.sender.tally, direction.receiver.tally);
    match (sender.datagrams, receiver.datagrams) {
        (Some(sent), Some(_)) => of_datagrams(observations, direction, sent.sent),
        _ => of_tcp(observations, direction),
    }
}

/// Whether the sender's requested rate arrives, so the path does not limit it. The sender's own pace is as steady as a bottleneck's.
fn reaches_its_rate(observations: &Observations<'_>, direction: &DirectionView<'_>) -> bool {
    let requested = observations.spec.rate_bps.map(|bps| REACHED * bps as f64);
    requested.zip(goodput_bps(direction)).is_some_and(|(requested, goodput)| goodput >= requested)
}

/// Weight of the evidence for a bottleneck on the path, which counts against limits of the hosts and of the congestion window.
pub(super) fn weight(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    of(observations, direction).map_or(0.0, |one| one.weight)
}

/// Whether the sender sent more datagrams than arrived, from 0 to 1: then the sender is not the limit.
pub(super) fn oversent(direction: &DirectionView<'_>) -> f64 {
    let datagrams = direction.sender.tally.datagrams.zip(direction.receiver.tally.datagrams);
    datagrams.map_or(0.0, |(from, to)| ramp(1.0 - to.received as f64 / from.sent.max(1) as f64, 0.02, 0.1))
}

/// The payload rate of an outcome's bottleneck, if the evidence for one is strong, bit/s.
pub(crate) fn known_bps(outcome: &Outcome, near: &Inventory, far: &Inventory) -> Option<f64> {
    let observations = Observations::new(outcome, &Recorded { passes: &[], hosts: [near, far], path_mtu: [None; 2] });
    if observations.spec.direction == Direction::Both || observations.spec.start_ns.is_some() {
        return None;
    }
    let all: Vec<Bottleneck> =
        observations.directions.iter().filter_map(|direction| of(&observations, direction)).collect();
    // A queue that delays acknowledgements does not show what the data's path carries.
    let weight =
        all.iter().map(|one| one.weight * (1.0 - one.back)).sum::<f64>() / observations.directions.len().max(1) as f64;
    all.iter().map(|one| one.bps).reduce(f64::max).filter(|_| weight >= STRONG)
}

fn of_tcp(observations: &Observations<'_>, direction: &DirectionView<'_>) -> Option<Bottleneck> {
    let flows = sender_flows(direction);
    let (shortest, added) = (each(&flows, SenderFlow::min_rtt_ns)?, each(&flows, SenderFlow::queueing_ns)?);
    let rates = rates(direction, &flows);
    let steady = steady(&rates);
    let unbound = 1.0 - ramp(each(&flows, |flow| fills_window(direction, flow)).unwrap_or(0.0), 0.6, 0.85);
    let open = |flow: &SenderFlow<'_>| ramp(flow.network().unwrap_or(0.5), 0.5, 0.9);
    // A standing queue is drained at the bottleneck's rate. A small one counts if nothing else limited TCP.
    let queues = |flow: &SenderFlow<'_>| {
        let few = flow.cwnd().is_some_and(|segments| segments < FEW_SEGMENTS);
        f64::from(u8::from(!few && !one_segment_at_a_time(direction, flow)))
    };
    // A delay that varies by itself while the rate varies too is not a queue.
    let by_itself = matches!(flows.as_slice(), [only] if only.jitter().is_some());
    let made = if by_itself { steady } else { 0.5 + 0.5 * steady };
    let standing = each(&flows, |flow| Some(flow.standing()? * queues(flow))).unwrap_or(0.0) * made;
    let little = each(&flows, |flow| Some(flow.queued()? * queues(flow) * (0.3 + 0.7 * open(flow)))).unwrap_or(0.0);
    // BBR paces at its estimate of the bottleneck's rate.
    let own = |flow: &SenderFlow<'_>| flow.cc().is_some_and(|cc| cc.starts_with("bbr"));
    let estimate = |flow: &SenderFlow<'_>| flow.pacing_bps().filter(|_| own(flow));
    let paced = each(&flows, |flow| {
        let fits = ramp(flow.rate_bps / estimate(flow)?, 0.7, 0.9);
        // Its congestion window is twice what it estimates to be in flight. A full one is smaller for another reason.
        let half_full = 1.0 - ramp(flow.cwnd_full()?, 0.6, 0.9);
        Some(fits * half_full * open(flow) * (1.0 - flow.part(|one| one.app_limited)?))
    });
    let paced = paced.filter(|_| direction.sender.options.max_pacing_bps.is_none()).unwrap_or(0.0);
    let sign = standing.max(little * steady * unbound).max(paced * steady * unbound);
    // Before a bottleneck on the path data waits in the send queue too.
    let sign = sign * ramp(each(&flows, SenderFlow::supplied).unwrap_or(1.0), 0.2, 0.6);
    let full = full_thread(observations, direction).max(late_acknowledgements(observations, direction, &flows));
    let goodput = goodput_bps(direction)?;
    let usual = usual(&rates);
    let weight = 0.9 * sign * (1.0 - full) * (1.0 - qdisc_limited(direction)) * (1.0 - exceeded(usual, goodput));
    let varied = varied(&rates);
    let observation = if standing > 0.0 && standing >= paced.max(little) {
        say!(
            "a standing queue raised the RTT from its minimum of {} to {}{varied}",
            Time(shortest),
            Time(shortest + added)
        )
    } else if little >= paced {
        let long = each(&flows, SenderFlow::long_rtt_ns).unwrap_or(shortest + added);
        say!(
            "a queue raised the RTT from its minimum of {} to {} in a fifth of the samples{varied}",
            Time(shortest),
            Time(long)
        )
    } else {
        let rate: f64 = flows.iter().filter_map(estimate).sum();
        say!("bbr estimated it at {} and paced to that{varied}", Rate(rate))
    };
    Some(Bottleneck {
        weight,
        bps: usual.unwrap_or(goodput).max(goodput),
        observation,
        back: return_path::part(direction),
        shared: observations.spec.start_ns.is_some(),
    })
}

fn of_datagrams(observations: &Observations<'_>, direction: &DirectionView<'_>, sent: u64) -> Option<Bottleneck> {
    let lost = losses::on_path(direction) as f64 / sent.max(1) as f64;
    let rates = arrivals(direction);
    let weight =
        0.95 * ramp(lost, 0.02, 0.1) * (0.4 + 0.6 * steady(&rates)) * (1.0 - full_reader(observations, direction));
    let goodput = goodput_bps(direction)?;
    let observation = say!(
        "{:.1} % of the datagrams were lost there, with {} sent and {} received{}",
        100.0 * lost,
        Rate(super::observations::sent_bps(direction)?),
        Rate(goodput),
        varied(&rates)
    );
    Some(Bottleneck {
        weight,
        bps: usual(&rates).unwrap_or(goodput).max(goodput),
        observation,
        back: 0.0,
        shared: observations.spec.start_ns.is_some(),
    })
}

/// Whether more arrived than the rates between samples allow, from 0 to 1: then they are not those of a bottleneck.
fn exceeded(usual: Option<f64>, goodput: f64) -> f64 {
    usual.map_or(0.0, |usual| ramp(goodput / usual.max(1.0), 1.2, 1.6))
}

/// The rate of a bottleneck, if there are enough rates: a high quantile, because less may arrive at the bottleneck at times.
fn usual(rates: &[f64]) -> Option<f64> {
    quantile(rates, USUAL).filter(|_| rates.len() >= FEWEST)
}

/// The share of its smallest window (or send buffer) that a connection needs for its rate at the minimum RTT.
fn fills_window(direction: &DirectionView<'_>, flow: &SenderFlow<'_>) -> Option<f64> {
    Some(flow.rate_bps * flow.min_rtt_ns()? / (8e9 * smallest_window(direction, flow)?))
}

/// The smallest window or send buffer of a connection, bytes.
fn smallest_window(direction: &DirectionView<'_>, flow: &SenderFlow<'_>) -> Option<f64> {
    let buffers = direction.sender.flows().filter_map(send_buffer_bytes).map(|bytes| bytes as f64);
    flow.window_bytes().into_iter().chain(buffers).reduce(f64::min)
}

/// Whether a connection has room for less than two segments. The receiver then delays each acknowledgement (RFC 9293, section
/// 3.8.6.3), which raises the RTT without any queue.
pub(super) fn one_segment_at_a_time(direction: &DirectionView<'_>, flow: &SenderFlow<'_>) -> bool {
    smallest_window(direction, flow).zip(flow.mss()).is_some_and(|(window, mss)| window < 2.0 * mss)
}

/// Whether a measuring thread of either end ran all the time, from 0 to 1.
fn full_thread(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    let sender = busiest(observations, &direction.sender).map_or(0.0, |thread| ramp(thread.ran, 0.7, 0.95));
    sender.max(full_reader(observations, direction))
}

/// Whether segments waited for the programs themselves, from 0 to 1. Where TCP reports nothing over time the transport is the
/// programs' own (QUIC): they acknowledge only while they have CPU, and meanwhile data waits in their sockets.
fn late_acknowledgements(
    observations: &Observations<'_>,
    direction: &DirectionView<'_>,
    flows: &[SenderFlow<'_>],
) -> f64 {
    if flows.iter().any(|flow| !flow.samples().is_empty()) {
        return 0.0;
    }
    let busy = |side| busiest(observations, side).map_or(0.0, |thread| ramp(thread.share(), 0.5, 0.8));
    busy(&direction.sender).max(busy(&direction.receiver))
}

fn full_reader(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    busiest(observations, &direction.receiver).map_or(0.0, |thread| ramp(thread.ran, 0.7, 0.95))
}

/// Payload rates over the trial, bit/s: by the delivered segments of a single connection, which a slow reader does not change, else
/// by arrivals.
fn rates(direction: &DirectionView<'_>, flows: &[SenderFlow<'_>]) -> Vec<f64> {
    match flows {
        [only] => {
            Some(only.delivered_bps()).filter(|rates| rates.len() >= FEWEST).unwrap_or_else(|| arrivals(direction))
        }
        _ => arrivals(direction),
    }
}

/// Payload rates of the receiver's complete intervals without the first, bit/s.
pub(super) fn arrivals(direction: &DirectionView<'_>) -> Vec<f64> {
    let intervals = &direction.receiver.tally.intervals;
    // The median, because a busy host may prolong single intervals.
    let lengths: Vec<f64> = intervals.iter().map(|one| (one.end_ns - one.start_ns) as f64).collect();
    let usual = median(&lengths).unwrap_or(0.0);
    let complete = intervals.iter().skip(1).filter(|one| (one.end_ns - one.start_ns) as f64 > usual / 2.0);
    complete.map(|one| one.bytes_received as f64 * 8e9 / (one.end_ns - one.start_ns) as f64).collect()
}

/// The quantile of the rates that is taken as the bottleneck's rate.
const USUAL: f64 = 0.8;
/// Fewest rates from which steadiness is judged.
const FEWEST: usize = 5;

/// Whether rates are constant, or never exceed the same level, from 0 to 1.
fn steady(rates: &[f64]) -> f64 {
    let level = |q| quantile(rates, q).filter(|bps| *bps > 0.0);
    let known = (level(0.2), level(0.5), level(0.7), level(0.8), level(0.95));
    let (Some(low), Some(middle), Some(upper), Some(high), Some(top)) = known else {
        return if rates.len() < FEWEST { 0.6 } else { 0.0 };
    };
    if rates.len() < FEWEST {
        return 0.6;
    }
    let same = 1.0 - ramp((high - low) / middle, 0.08, 0.35);
    // A rate that falls to a small part of its level between bursts is a window's or a pause's.
    let bursts = ramp((high - low) / (high + low), 0.5, 0.8);
    let capped = 0.9 * (1.0 - ramp((top - upper) / top, 0.03, 0.12)) * (1.0 - bursts);
    same.max(capped)
}

/// `; the rate varied by 2 % between samples`: half the distance of the 20th and 80th percentiles, relative to the mean.
fn varied(rates: &[f64]) -> Text {
    let of = |q| quantile(rates, q);
    let spread = of(0.8).zip(of(0.2)).zip(mean(rates)).filter(|(_, mean)| rates.len() >= FEWEST && *mean > 0.0);
    spread.map_or(Text::default(), |((high, low), mean)| {
        let percent = 50.0 * (high - low) / mean;
        let by = if percent < 1.0 { "less than 1".to_owned() } else { format!("{percent:.0}") };
        say!("; the rate varied by {by} % between samples")
    })
}

//! The input of the rules: an outcome with its hosts, and each direction of each trial.

use model::tally::Window;
use model::{Direction, FlowTally, Outcome, Pass, Spec, TcpSample, Trial, Verdict, median};

use super::Recorded;
use crate::direction::{DirectionView, Side, directions, send_buffer_bytes};
use crate::outcome::Headline;
use crate::stats::{mean, quantile};
use crate::tcp_clocks::spans;

/// An outcome and what was recorded around it.
pub(super) struct Observations<'a> {
    pub(super) spec: &'a Spec,
    pub(super) headline: Headline,
    pub(super) outcome: &'a Outcome,
    /// The directions of its trials; those of cut trials only if there are no others.
    pub(super) directions: Vec<DirectionView<'a>>,
    /// Both ends are on one host.
    pub(super) one_host: bool,
    /// The largest packet that the path was found to carry, outbound and on return, bytes.
    path_mtu: [Option<u32>; 2],
}

impl<'a> Observations<'a> {
    pub(super) fn new(outcome: &'a Outcome, recorded: &Recorded<'a>) -> Self {
        let Recorded { passes, hosts, path_mtu } = *recorded;
        let complete: Vec<&Trial> =
            outcome.trials.iter().filter(|trial| !trial.verdicts.contains(&Verdict::CutShort)).collect();
        let trials = if complete.is_empty() { outcome.trials.iter().collect() } else { complete };
        let of = |trial: &&'a Trial| directions(&outcome.spec, trial, Pass::find(passes, trial.pass), hosts);
        let [near, far] = hosts;
        Self {
            spec: &outcome.spec,
            headline: Headline::of(&outcome.spec),
            directions: trials.iter().flat_map(of).collect(),
            outcome,
            path_mtu,
            one_host: near.boot_id.is_some() && near.boot_id == far.boot_id,
        }
    }

    /// The largest packet that the data's path was found to carry, bytes; `None` for payload in both directions.
    pub(super) fn path_mtu(&self) -> Option<u32> {
        match self.spec.direction {
            Direction::Send => self.path_mtu[0],
            Direction::Reverse => self.path_mtu[1],
            Direction::Both => None,
        }
    }

    /// Whether the pattern transfers bulk data, so the rate is what is limited.
    pub(super) fn bulk(&self) -> bool {
        self.headline == Headline::Goodput
    }
}

/// Goodput of a direction by its receiver, after the warm-up, in bit/s.
pub(super) fn goodput_bps(direction: &DirectionView<'_>) -> Option<f64> {
    rate_bps(direction.receiver.tally.arrivals())
}

/// Rate at which its sender passed data to the transport, in bit/s.
pub(super) fn sent_bps(direction: &DirectionView<'_>) -> Option<f64> {
    rate_bps(direction.sender.tally.sends())
}

fn rate_bps(Window { bytes, ns }: Window) -> Option<f64> {
    (bytes > 0 && ns > 0).then(|| bytes as f64 * 8e9 / ns as f64)
}

/// How long an end sent or received, ns.
pub(super) fn wall_ns(side: &Side<'_>) -> u64 {
    side.tally.sending_ns.max(side.tally.receiving_ns)
}

/// One connection of a trial as its sender's TCP reports it: a series if there is one, else the state of the socket at the end.
pub(super) struct SenderFlow<'a> {
    flow: &'a FlowTally,
    /// Goodput of the flow, bit/s.
    pub(super) rate_bps: f64,
}

/// The connections of a direction on which the sender sent and for which TCP reports something.
pub(super) fn sender_flows<'a>(direction: &DirectionView<'a>) -> Vec<SenderFlow<'a>> {
    let reported = |flow: &&FlowTally| !flow.tcp.is_empty() || flow.socket.srtt_ns.is_some();
    let sending = direction.sender.flows().filter(|flow| flow.bytes_sent > 0).filter(reported);
    sending.filter_map(|flow| Some(SenderFlow { rate_bps: rate_of(flow, direction)?, flow })).collect()
}

/// The flow's share of the direction's goodput.
fn rate_of(flow: &FlowTally, direction: &DirectionView<'_>) -> Option<f64> {
    let all: u64 = direction.sender.flows().map(|flow| flow.bytes_sent).sum();
    goodput_bps(direction).map(|bps| bps * flow.bytes_sent as f64 / all.max(1) as f64)
}

impl<'a> SenderFlow<'a> {
    pub(super) fn samples(&self) -> &'a [TcpSample] {
        &self.flow.tcp
    }

    fn middle(&self, of: impl Fn(&TcpSample) -> Option<f64>) -> Option<f64> {
        median(&self.flow.tcp.iter().filter_map(of).collect::<Vec<f64>>())
    }

    /// The samples without the first and the last one, which are taken with nothing in flight.
    fn inner(&self) -> &'a [TcpSample] {
        let all = &self.flow.tcp;
        if all.len() > 2 { &all[1..all.len() - 1] } else { all }
    }

    /// The share of the inner samples for which `holds` is true; `None` without a series.
    pub(super) fn part(&self, holds: impl Fn(&TcpSample) -> bool) -> Option<f64> {
        let inner = self.inner();
        (self.flow.tcp.len() > 2).then(|| inner.iter().filter(|one| holds(one)).count() as f64 / inner.len() as f64)
    }

    /// Median of the smoothed RTT over the trial, ns.
    pub(super) fn srtt_ns(&self) -> Option<f64> {
        let last = self.flow.socket.srtt_ns.map(|ns| ns as f64);
        self.middle(|one| (one.rtt_ns > 0).then_some(one.rtt_ns as f64)).or(last).filter(|ns| *ns > 0.0)
    }

    /// Minimum RTT, ns.
    pub(super) fn min_rtt_ns(&self) -> Option<f64> {
        let samples = self.flow.tcp.iter().filter_map(|one| one.min_rtt_ns);
        samples.chain(self.flow.socket.min_rtt_ns).filter(|ns| *ns > 0).min().map(|ns| ns as f64)
    }

    /// Segments retransmitted during the trial.
    pub(super) fn retransmits(&self) -> u64 {
        match self.flow.tcp.as_slice() {
            [first, .., last] => last.retransmits.saturating_sub(first.retransmits),
            _ => self.flow.socket.retransmits.unwrap_or(0),
        }
    }

    /// Of those, the ones that the other end already had; `None` if the kernel does not report them.
    pub(super) fn spurious(&self) -> Option<u64> {
        let (first, last) = (self.flow.tcp.first()?, self.flow.tcp.last()?);
        Some(last.spurious?.saturating_sub(first.spurious?))
    }

    /// Retransmission timeouts during the trial; `None` if the kernel does not report them.
    pub(super) fn timeouts(&self) -> Option<u64> {
        let (first, last) = (self.flow.tcp.first()?, self.flow.tcp.last()?);
        Some(last.timeouts?.saturating_sub(first.timeouts?))
    }

    /// By how many others a segment was overtaken, at most, as TCP learnt it; `None` without a series.
    pub(super) fn reordering(&self) -> Option<u32> {
        self.flow.tcp.iter().map(|one| one.reordering).max()
    }

    /// Share of the samples in which TCP had reduced its congestion window for segments that were missing in between.
    pub(super) fn recovering(&self) -> Option<f64> {
        self.part(|one| one.state >= 2)
    }

    /// Sending MSS, bytes.
    pub(super) fn mss(&self) -> Option<f64> {
        let last = self.flow.tcp.last().map(|one| one.mss).or(self.flow.socket.mss);
        last.filter(|mss| *mss > 0).map(f64::from)
    }

    /// Median congestion window over the trial, segments.
    pub(super) fn cwnd(&self) -> Option<f64> {
        let last = self.flow.socket.cwnd.map(f64::from);
        self.middle(|one| (one.cwnd > 0).then(|| f64::from(one.cwnd))).or(last)
    }

    /// The same in bytes.
    pub(super) fn cwnd_bytes(&self) -> Option<f64> {
        Some(self.cwnd()? * self.mss()?)
    }

    /// The largest window that the receiver announced, bytes.
    pub(super) fn window_bytes(&self) -> Option<f64> {
        let samples = self.flow.tcp.iter().filter_map(|one| one.peer_window_bytes).max();
        samples.max(self.flow.socket.peer_window_bytes).filter(|bytes| *bytes > 0).map(f64::from)
    }

    /// Median of the receiver's window, relative to its largest. A closed window counts as 0.
    pub(super) fn window_open(&self) -> Option<f64> {
        let largest = self.window_bytes()?;
        let read: Vec<f64> = self.flow.tcp.iter().map(|one| f64::from(one.peer_window_bytes.unwrap_or(0))).collect();
        Some(median(&read)? / largest)
    }

    /// Median pacing rate over the trial, bit/s.
    pub(super) fn pacing_bps(&self) -> Option<f64> {
        self.middle(|one| one.pacing_bps.map(|bps| bps as f64))
    }

    /// SO_SNDBUF as the kernel reports it, twice the requested size, bytes.
    pub(super) fn sndbuf(&self) -> Option<f64> {
        self.flow.socket.sndbuf.map(|bytes| bytes as f64)
    }

    /// Bytes in flight that the send buffer allows.
    pub(super) fn send_buffer_bytes(&self) -> Option<f64> {
        send_buffer_bytes(self.flow).map(|bytes| bytes as f64)
    }

    /// Congestion control.
    pub(super) fn cc(&self) -> Option<&'a str> {
        self.flow.socket.cc.as_deref()
    }

    /// Share of the samples in which the sender's program had supplied more than TCP had sent: a segment or more in the send queue, or
    /// a full congestion window. `None` without a series of the queue.
    pub(super) fn supplied(&self) -> Option<f64> {
        self.flow.tcp.last()?.notsent_bytes?;
        self.part(|one| one.notsent_bytes.is_some_and(|bytes| bytes >= u64::from(one.mss)) || is_full(one))
    }

    /// Whether what follows the sender's program held it back, from 0 to 1: data waited in the send queue, or for the receiver's window.
    pub(super) fn held_back(&self) -> Option<f64> {
        let [idle, rwnd, sndbuf, rest] = spans(&self.flow.tcp)?;
        let limited = ramp((rwnd + sndbuf) / (idle + rwnd + sndbuf + rest), 0.02, 0.1);
        Some(limited.max(ramp(self.supplied()?, 0.1, 0.4)))
    }

    /// Share of the samples in which the congestion window was full.
    pub(super) fn cwnd_full(&self) -> Option<f64> {
        self.part(is_full)
    }

    /// Share of the time in which the congestion window grew exponentially, as in slow start: by a third of a doubling or more in each
    /// RTT (with delayed acknowledgements slow start makes 0.58 doublings).
    pub(super) fn cwnd_growing(&self) -> Option<f64> {
        let between = |pair: &[TcpSample]| {
            let ns = pair[1].at_ns.checked_sub(pair[0].at_ns).filter(|ns| *ns > 0)? as f64;
            let doublings = (f64::from(pair[1].cwnd.max(1)) / f64::from(pair[0].cwnd.max(1))).log2();
            let grew = doublings >= LEAST_GROWTH && doublings * pair[1].rtt_ns as f64 / ns >= LEAST_GROWTH;
            Some((ns, f64::from(u8::from(grew))))
        };
        let spans: Vec<(f64, f64)> = self.flow.tcp.windows(2).filter_map(between).collect();
        let whole: f64 = spans.iter().map(|(ns, _)| ns).sum();
        (whole > 0.0).then(|| spans.iter().map(|(ns, grew)| ns * grew).sum::<f64>() / whole)
    }

    /// Share of the samples after a loss in which TCP was in recovery, or the congestion window was full near the threshold that the
    /// loss had set.
    pub(super) fn limited_by_loss(&self) -> Option<f64> {
        let before = self.flow.tcp.first()?.retransmits;
        self.part(|one| one.retransmits > before && (one.state >= 3 || is_near_threshold(one)))
    }

    /// Share of the samples in which the congestion window was full near its threshold.
    pub(super) fn near_threshold(&self) -> Option<f64> {
        self.part(is_near_threshold)
    }

    /// Share of the time in which TCP was busy and limited neither by the receiver's window nor by the send buffer.
    pub(super) fn network(&self) -> Option<f64> {
        let [idle, rwnd, sndbuf, rest] = spans(&self.flow.tcp)?;
        Some(rest / (idle + rwnd + sndbuf + rest))
    }

    /// Payload rates between the samples, by delivered segments, bit/s.
    pub(super) fn delivered_bps(&self) -> Vec<f64> {
        let Some(mss) = self.mss() else { return Vec::new() };
        let between = |pair: &[TcpSample]| {
            let ns = pair[1].at_ns.checked_sub(pair[0].at_ns).filter(|ns| *ns > 0)?;
            Some(pair[1].delivered?.saturating_sub(pair[0].delivered?) as f64 * mss * 8e9 / ns as f64)
        };
        self.inner().windows(2).filter_map(between).collect()
    }

    /// The 80th percentile of the smoothed RTT, ns.
    pub(super) fn long_rtt_ns(&self) -> Option<f64> {
        let rtts: Vec<f64> = self.inner().iter().map(|one| one.rtt_ns as f64).filter(|ns| *ns > 0.0).collect();
        quantile(&rtts, 0.8).or_else(|| self.srtt_ns())
    }

    /// Whether segments queued on the path at times, from 0 to 1, by the 80th percentile of the RTT.
    pub(super) fn queued(&self) -> Option<f64> {
        let (long, shortest) = (self.long_rtt_ns()?, self.min_rtt_ns()?);
        let added = long - shortest;
        Some(ramp(added, 1e6, 3e6) * ramp(added / shortest, 0.05, 0.2))
    }

    /// Whether there was a standing queue on the path, from 0 to 1. What a busy host adds to the RTT is below a millisecond or two, or
    /// a small part of it.
    pub(super) fn standing(&self) -> Option<f64> {
        let added = self.queueing_ns()?;
        Some(ramp(added, 1e6, 4e6) * ramp(added / self.min_rtt_ns()?, 0.25, 1.0))
    }

    /// The RTTs between which the delay varied by itself, ns: if the smoothed RTT, or its mean deviation, varies by more than what a busy
    /// host adds, and not with the data in flight as before a queue.
    pub(super) fn jitter(&self) -> Option<[f64; 2]> {
        let points: Vec<(f64, f64)> = self
            .inner()
            .iter()
            .filter(|one| one.rtt_ns > 0)
            .map(|one| (f64::from(one.unacked), one.rtt_ns as f64))
            .collect();
        let (in_flight, rtts): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let [low, high] = [quantile(&rtts, 0.1)?, quantile(&rtts, 0.9)?];
        let within = self.middle(|one| Some(one.rttvar_ns as f64))?;
        let least = LEAST_JITTER_NS.max(LEAST_JITTER * self.min_rtt_ns()?);
        let between = high - low >= 2.0 * least && correlation(&in_flight, &rtts).is_none_or(|found| found < 0.6);
        (between || within >= least).then_some([low.min(self.srtt_ns()? - within), high.max(self.srtt_ns()? + within)])
    }

    /// Median RTT minus minimum RTT, ns.
    pub(super) fn queueing_ns(&self) -> Option<f64> {
        Some((self.srtt_ns()? - self.min_rtt_ns()?).max(0.0))
    }
}

/// Doublings of the congestion window, between two samples and per RTT, from which it grows exponentially.
const LEAST_GROWTH: f64 = 1.0 / 3.0;

/// Deviation from the usual delay from which it is not a busy host's, ns and relative to the shortest RTT.
const LEAST_JITTER_NS: f64 = 1e6;
const LEAST_JITTER: f64 = 0.04;

/// Pearson's correlation; `None` if one of the lists does not vary.
fn correlation(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let [x, y] = [mean(xs)?, mean(ys)?];
    let sum = |of: &dyn Fn(f64, f64) -> f64| xs.iter().zip(ys).map(|(a, b)| of(a - x, b - y)).sum::<f64>();
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (scale > 0.0).then(|| sum(&|a, b| a * b) / scale)
}

/// Whether the congestion window was full and at most twice the threshold that the last reduction had set.
fn is_near_threshold(sample: &TcpSample) -> bool {
    is_full(sample) && sample.ssthresh.is_some_and(|threshold| sample.cwnd <= threshold.saturating_mul(2))
}

/// Whether the congestion window was full.
fn is_full(sample: &TcpSample) -> bool {
    sample.cwnd > 0 && f64::from(sample.unacked) >= 0.8 * f64::from(sample.cwnd)
}

/// The mean of a figure over connections, `None` if none has it.
pub(super) fn each<'a>(flows: &[SenderFlow<'a>], figure: impl Fn(&SenderFlow<'a>) -> Option<f64>) -> Option<f64> {
    mean(&flows.iter().filter_map(figure).collect::<Vec<f64>>())
}

/// 0 up to `from`, 1 from `to` on, linear between.
pub(super) fn ramp(value: f64, from: f64, to: f64) -> f64 {
    ((value - from) / (to - from)).clamp(0.0, 1.0)
}

//! The congestion window.

use model::LimiterKind;
use text::{Count, Rate, Text, Time, say};

use super::super::observations::{Observations, SenderFlow, each, ramp, sender_flows};
use super::super::{LIKELY, bottleneck, queues, sharing};
use super::packets::needless;
use super::{Rule, Signal};
use crate::direction::DirectionView;

/// Rate of Reno with a loss rate `p`: MSS / RTT times this over the square root of p.
const MATHIS: f64 = 1.22;

pub(super) const LOSS: Rule = Rule {
    name: "loss-window",
    speaks_for: &[LimiterKind::Loss],
    about: "TCP retransmitted segments, and its congestion window stayed near the threshold that losses had set.",
    source: "RFC 5681, section 3; M. Mathis, J. Semke, J. Mahdavi and T. Ott, The Macroscopic Behavior of the TCP Congestion \
             Avoidance Algorithm, CCR 27(3), 1997",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows: Vec<SenderFlow<'_>> = sender_flows(direction).into_iter().filter(reacts_to_loss).collect();
        let retransmitted: u64 = flows.iter().map(SenderFlow::retransmits).sum();
        if retransmitted == 0 {
            return Vec::new();
        }
        // Without a series: whether the rate is what that loss allows.
        let near_threshold = each(&flows, SenderFlow::limited_by_loss)
            .or_else(|| each(&flows, |flow| Some(1.0 - ramp(flow.rate_bps / mathis(flow)?, 2.0, 5.0))));
        // Losses at a bottleneck are its queue's overflow: the bottleneck is the limit.
        let weight = 0.9
            * near_threshold.unwrap_or(0.0)
            * (1.0 - bottleneck::weight(observations, direction))
            * (1.0 - 0.5 * sharing::weight(observations, direction))
            * (1.0 - needless(&flows));
        Signal::of(LimiterKind::Loss, weight, || {
            let sent: f64 = flows.iter().filter_map(|flow| segments(flow, direction)).sum();
            let part = retransmitted as f64 / sent.max(retransmitted as f64);
            let carried = flows.iter().map(mathis).sum::<Option<f64>>().unwrap_or(0.0);
            let rtt = each(&flows, SenderFlow::srtt_ns).map_or(Text::default(), |ns| say!(" over {}", Time(ns)));
            let did: f64 = flows.iter().map(|flow| flow.rate_bps).sum();
            let bound = if carried > 0.0 && did < FITS * carried {
                say!("; with this loss{rtt} TCP carries about {} (Mathis)", Rate(carried))
            } else {
                Text::default()
            };
            let segments = if retransmitted == 1 { "segment" } else { "segments" };
            say!(
                "{} {segments} retransmitted in one trial ({:.2} %); the congestion window was near the threshold set by loss for \
                 {:.0} % of the time{bound}",
                Count(retransmitted),
                100.0 * part,
                100.0 * near_threshold.unwrap_or(0.0)
            )
        })
    },
};

pub(super) const WINDOW: Rule = Rule {
    name: "congestion-window",
    speaks_for: &[LimiterKind::CongestionWindow, LimiterKind::Jitter],
    about: "The congestion window was full without loss, so its growth, delay, jitter or congestion marks set the rate.",
    source: "RFC 5681, section 3.1 (slow start), RFC 9406 (HyStart++), RFC 3168 (marks); tcpi_snd_cwnd in linux/tcp.h",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows = sender_flows(direction);
        if flows.iter().any(|flow| flow.retransmits() > 0) || queues::reduced_the_window(direction) > 0.0 {
            return Vec::new();
        }
        let full = each(&flows, SenderFlow::cwnd_full).unwrap_or(0.0);
        // A window that grows exponentially is used up in each round trip: TCP does not enlarge it otherwise (RFC 7661, section 4.3).
        let growing = each(&flows, SenderFlow::cwnd_growing).unwrap_or(0.0);
        let part = each(&flows, |flow| Some(flow.rate_bps * flow.srtt_ns()? / (8e9 * flow.cwnd_bytes()?)));
        let full_weight = 0.5 * full * ramp(part.unwrap_or(0.0), 0.3, 0.7);
        let elsewhere = bottleneck::weight(observations, direction);
        let weight = full_weight.max(0.9 * ramp(growing, 0.3, 0.8)) * (1.0 - elsewhere);
        let starting = each(&flows, |flow| flow.part(|one| one.ssthresh.is_none())).unwrap_or(0.0);
        let marks: u64 = flows.iter().filter_map(marks).sum();
        // One trial may end before its delay has varied much.
        let varying = || observations.directions.iter().flat_map(sender_flows).find_map(|flow| flow.jitter());
        let jitter = (starting < 0.5 && growing < 0.3 && marks == 0 && elsewhere < LIKELY).then(varying).flatten();
        let kind = if jitter.is_some() { LimiterKind::Jitter } else { LimiterKind::CongestionWindow };
        Signal::of(kind, weight, || {
            let why = match (starting >= 0.5, marks) {
                (true, _) if growing >= 0.3 => {
                    say!("it grew exponentially for {:.0} % of the time (slow start)", 100.0 * growing)
                }
                (true, _) => say!("it was in slow start for {:.0} % of the time", 100.0 * starting),
                (_, 0) => match jitter {
                    Some([low, high]) => say!(
                        "it stopped growing because the delay varies: RTTs from {} to {} do not follow the data in flight, but TCP \
                         takes them for a queue",
                        Time(low),
                        Time(high)
                    ),
                    None => "it stopped growing because of delay, without loss or marks".into(),
                },
                (_, marks) => say!("{} segments had a congestion mark (ECN)", Count(marks)),
            };
            let carried: f64 = flows.iter().filter_map(|flow| Some(flow.cwnd_bytes()? * 8e9 / flow.srtt_ns()?)).sum();
            say!(
                "the congestion window was full for {:.0} % of the time and carries {}; {why}",
                100.0 * full,
                Rate(carried)
            )
        })
    },
};

/// Number of segments that a connection sent, from its payload.
fn segments(flow: &SenderFlow<'_>, direction: &DirectionView<'_>) -> Option<f64> {
    let ns = direction.receiver.tally.receiving_ns.max(direction.sender.tally.sending_ns) as f64;
    Some(flow.rate_bps * ns / 8e9 / flow.mss()?)
}

/// Whether a connection's congestion control reacts to loss; BBR and delay-based ones do not.
fn reacts_to_loss(flow: &SenderFlow<'_>) -> bool {
    flow.cc().is_none_or(|cc| !["bbr", "bpf_fast", "vegas"].iter().any(|name| cc.starts_with(name)))
}

/// Whether a congestion control is Reno or grows like it. CUBIC does if losses are frequent relative to the RTT, so its own curve is
/// the lower one (RFC 9438, sections 4.3 and 5.1: 1.054 RTT^3/4 / p^3/4 below 1.22 / p^1/2, RTT in seconds).
fn like_reno(flow: &SenderFlow<'_>, loss: f64) -> bool {
    match flow.cc() {
        Some("reno") => true,
        Some("cubic") => flow.srtt_ns().is_some_and(|ns| (ns / 1e9).powi(3) < 1.8 * loss),
        _ => false,
    }
}

/// Losses in a burst count as one: the formula does not apply if the measured rate is more than this many times its result.
const FITS: f64 = 2.5;

/// The formula holds for losses that TCP repairs without a timeout: at most this share of the segments.
const MAX_LOSS: f64 = 0.02;

/// The rate that the losses of a connection allow, bit/s, from Mathis and others; `None` if their formula does not apply.
fn mathis(flow: &SenderFlow<'_>) -> Option<f64> {
    let (mss, rtt) = (flow.mss()?, flow.srtt_ns()?);
    let sent = flow
        .samples()
        .last()
        .zip(flow.samples().first())
        .and_then(|(last, first)| Some(last.delivered?.saturating_sub(first.delivered?) as f64));
    let sent = sent.filter(|sent| *sent > 0.0)?;
    let loss = flow.retransmits() as f64 / sent;
    let holds = loss > 0.0 && loss <= MAX_LOSS && like_reno(flow, loss);
    holds.then(|| mss * 8e9 / rtt * MATHIS / loss.sqrt())
}

/// Segments that arrived with an ECN mark.
fn marks(flow: &SenderFlow<'_>) -> Option<u64> {
    let (first, last) = (flow.samples().first()?, flow.samples().last()?);
    Some(last.delivered_ce?.saturating_sub(first.delivered_ce?))
}

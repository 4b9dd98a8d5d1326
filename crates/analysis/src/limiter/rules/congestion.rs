//! The congestion window.

use model::LimiterKind;
use model::units::{bits_per_second, seconds};

use super::super::bottleneck;
use super::super::observations::{Course, Observations, courses, each, ramp};
use super::{Rule, Seen};
use crate::direction::DirectionView;

/// Rate of a TCP of Reno's kind that loses a part `p` of its segments: MSS / RTT times this over the square root of p.
const MATHIS: f64 = 1.22;

pub(super) const LOSS: Rule = Rule {
    name: "loss-window",
    speaks_for: &[LimiterKind::Loss],
    about: "TCP sent segments again and kept its congestion window near the threshold that losses had set.",
    source: "RFC 5681, section 3; M. Mathis, J. Semke, J. Mahdavi and T. Ott, The Macroscopic Behavior of the TCP Congestion \
             Avoidance Algorithm, CCR 27(3), 1997",
    see: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let courses: Vec<Course<'_>> = courses(direction).into_iter().filter(gives_way).collect();
        let again: u64 = courses.iter().map(Course::retransmits).sum();
        if again == 0 {
            return Vec::new();
        }
        // Without a series: whether the rate is what so much loss allows.
        let held = each(&courses, Course::held_by_loss)
            .or_else(|| each(&courses, |course| Some(1.0 - ramp(course.rate_bps / mathis(course)?, 2.0, 5.0))));
        // Losses before a bottleneck are its overflow: what limits is what empties its queue.
        let weight = 0.9 * held.unwrap_or(0.0) * (1.0 - bottleneck::weight(observations, direction));
        Seen::of(LimiterKind::Loss, weight, || {
            let sent: f64 = courses.iter().filter_map(|course| segments(course, direction)).sum();
            let part = again as f64 / sent.max(again as f64);
            let carried = courses.iter().map(mathis).sum::<Option<f64>>().unwrap_or(0.0);
            let rtt = each(&courses, Course::srtt_ns).map_or(String::new(), |ns| format!(" over {}", seconds(ns)));
            let did: f64 = courses.iter().map(|course| course.rate_bps).sum();
            let bound = if carried > 0.0 && did < FITS * carried {
                format!("; with that loss{rtt} TCP carries about {} (Mathis)", bits_per_second(carried))
            } else {
                String::new()
            };
            format!(
                "{again} segments sent again ({:.2} %), and {:.0} % of the time the window stood near where loss had put it{bound}",
                100.0 * part,
                100.0 * held.unwrap_or(0.0)
            )
        })
    },
};

pub(super) const WINDOW: Rule = Rule {
    name: "congestion-window",
    speaks_for: &[LimiterKind::CongestionWindow],
    about: "Without loss the congestion window was full, so that its growth, delay or congestion marks set the rate.",
    source: "RFC 5681, section 3.1 (slow start), RFC 9406 (HyStart++), RFC 3168 (marks); tcpi_snd_cwnd in linux/tcp.h",
    see: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let courses = courses(direction);
        if courses.iter().any(|course| course.retransmits() > 0) {
            return Vec::new();
        }
        let full = each(&courses, Course::cwnd_full).unwrap_or(0.0);
        let part = each(&courses, |course| Some(course.rate_bps * course.srtt_ns()? / (8e9 * course.cwnd_bytes()?)));
        let weight =
            0.5 * full * ramp(part.unwrap_or(0.0), 0.3, 0.7) * (1.0 - bottleneck::weight(observations, direction));
        Seen::of(LimiterKind::CongestionWindow, weight, || {
            let starting = each(&courses, |course| course.part(|one| one.ssthresh.is_none())).unwrap_or(0.0);
            let marks: u64 = courses.iter().filter_map(marks).sum();
            let why = match (starting >= 0.5, marks) {
                (true, _) => format!("it was in slow start for {:.0} % of the time", 100.0 * starting),
                (_, 0) => "no loss and no mark: it had stopped growing for delay".to_owned(),
                (_, marks) => format!("{marks} segments bore a congestion mark (ECN)"),
            };
            let carried: f64 =
                courses.iter().filter_map(|course| Some(course.cwnd_bytes()? * 8e9 / course.srtt_ns()?)).sum();
            format!(
                "the congestion window was full for {:.0} % of the time and carries {}; {why}",
                100.0 * full,
                bits_per_second(carried)
            )
        })
    },
};

/// Segments that a connection sent, by its payload.
fn segments(course: &Course<'_>, direction: &DirectionView<'_>) -> Option<f64> {
    let ns = direction.receiver.tally.receiving_ns.max(direction.sender.tally.sending_ns) as f64;
    Some(course.rate_bps * ns / 8e9 / course.mss()?)
}

/// Whether a loss makes a connection's congestion control give way; BBR and those that go by the delay alone do not take it for their
/// measure.
fn gives_way(course: &Course<'_>) -> bool {
    course.cc().is_none_or(|cc| !["bbr", "bpf_fast", "vegas"].iter().any(|name| cc.starts_with(name)))
}

/// Whether a congestion control is Reno, or grows like it: CUBIC does where losses are frequent for the round trip, so that its own
/// curve is the lower one (RFC 9438, sections 4.3 and 5.1: 1.054 RTT^3/4 / p^3/4 below 1.22 / p^1/2, RTT in seconds).
fn like_reno(course: &Course<'_>, loss: f64) -> bool {
    match course.cc() {
        Some("reno") => true,
        Some("cubic") => course.srtt_ns().is_some_and(|ns| (ns / 1e9).powi(3) < 1.8 * loss),
        _ => false,
    }
}

/// Losses that come in bursts count as one: where more than this many times its rate was carried, the formula says nothing.
const FITS: f64 = 2.5;

/// The formula holds for losses that TCP mends without a timeout: this part of the segments at most.
const MOST_LOSS: f64 = 0.02;

/// What the losses that a connection saw allow, bit/s, from Mathis and others; `None` where their formula does not hold.
fn mathis(course: &Course<'_>) -> Option<f64> {
    let (mss, rtt) = (course.mss()?, course.srtt_ns()?);
    let sent = course
        .samples()
        .last()
        .zip(course.samples().first())
        .and_then(|(last, first)| Some(last.delivered?.saturating_sub(first.delivered?) as f64));
    let sent = sent.filter(|sent| *sent > 0.0)?;
    let loss = course.retransmits() as f64 / sent;
    let holds = loss > 0.0 && loss <= MOST_LOSS && like_reno(course, loss);
    holds.then(|| mss * 8e9 / rtt * MATHIS / loss.sqrt())
}

/// Segments that arrived with a mark.
fn marks(course: &Course<'_>) -> Option<u64> {
    let (first, last) = (course.samples().first()?, course.samples().last()?);
    Some(last.delivered_ce?.saturating_sub(first.delivered_ce?))
}

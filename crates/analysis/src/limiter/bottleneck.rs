//! A bottleneck on the path, known by what it does to all that passes it: payload arrives at one rate however much is sent, and what
//! is more than that waits before it or is lost there.

use model::units::{bits_per_second, seconds};
use model::{Direction, Inventory, Outcome};

use super::observations::{Course, Observations, courses, each, goodput_bps, ramp};
use super::rules::{busiest, held_by_qdisc};
use super::{STRONG, placed};
use crate::direction::{DirectionView, send_buffer_bytes};
use crate::stats::{mean, median, quantile};

/// The part of the rate that was asked for that counts as all of it.
const ASKED: f64 = 0.95;

/// A bottleneck as one direction of one trial shows it.
pub(super) struct Bottleneck {
    /// What the signs weigh, 0 to 1.
    pub(super) weight: f64,
    /// Payload that it lets through, bit/s.
    bps: f64,
    /// What shows it.
    signs: String,
}

impl Bottleneck {
    /// `a bottleneck of about 47.1 Mbit/s on the path: ...`.
    pub(super) fn statement(&self) -> String {
        format!("a bottleneck of about {} on the path: {}", bits_per_second(self.bps), self.signs)
    }
}

/// The bottleneck of a direction; `None` where nothing shows one.
pub(super) fn of(observations: &Observations<'_>, direction: &DirectionView<'_>) -> Option<Bottleneck> {
    if !observations.bulk() || gets_its_rate(observations, direction) {
        return None;
    }
    let (sender, receiver) = (direction.sender.tally, direction.receiver.tally);
    match (sender.datagrams, receiver.datagrams) {
        (Some(sent), Some(_)) => of_datagrams(observations, direction, sent.sent),
        _ => of_tcp(observations, direction),
    }
}

/// Whether what arrives is what the sender was asked for, so that nothing on the path holds it back: its own pace is as steady as that
/// of a bottleneck.
fn gets_its_rate(observations: &Observations<'_>, direction: &DirectionView<'_>) -> bool {
    let requested = observations.spec.rate_bps.map(|bps| ASKED * bps as f64);
    requested.zip(goodput_bps(direction)).is_some_and(|(requested, came)| came >= requested)
}

/// What speaks for a bottleneck on the path weighs so much against limits of the hosts and of the congestion window.
pub(super) fn weight(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    of(observations, direction).map_or(0.0, |one| one.weight)
}

/// Whether the sender sent more than arrived, from 0 to 1: then it is not what holds a stream of datagrams back.
pub(super) fn oversent(direction: &DirectionView<'_>) -> f64 {
    let datagrams = direction.sender.tally.datagrams.zip(direction.receiver.tally.datagrams);
    datagrams.map_or(0.0, |(sent, came)| ramp(1.0 - came.received as f64 / sent.sent.max(1) as f64, 0.02, 0.1))
}

/// The payload rate of an outcome's bottleneck, where its trials strongly show one, bit/s.
pub(crate) fn known_bps(outcome: &Outcome, near: &Inventory, far: &Inventory) -> Option<f64> {
    let observations = Observations::new(outcome, &[], [near, far]);
    if observations.spec.direction == Direction::Both {
        return None;
    }
    let all: Vec<Bottleneck> =
        observations.directions.iter().filter_map(|direction| of(&observations, direction)).collect();
    let weight = all.iter().map(|one| one.weight).sum::<f64>() / observations.directions.len().max(1) as f64;
    all.iter().map(|one| one.bps).reduce(f64::max).filter(|_| weight >= STRONG)
}

fn of_tcp(observations: &Observations<'_>, direction: &DirectionView<'_>) -> Option<Bottleneck> {
    let courses = courses(direction);
    let (shortest, added) = (each(&courses, Course::min_rtt_ns)?, each(&courses, Course::queueing_ns)?);
    let rates = rates(direction, &courses);
    let steady = steady(&rates);
    let unbound = 1.0 - ramp(each(&courses, |course| fills_window(direction, course)).unwrap_or(0.0), 0.6, 0.85);
    let open = |course: &Course<'_>| ramp(course.network().unwrap_or(0.5), 0.5, 0.9);
    // A queue that always stands is one that something empties all the time; a small one shows it where nothing else held TCP.
    let standing = each(&courses, Course::standing).unwrap_or(0.0) * (0.5 + 0.5 * steady);
    let little = each(&courses, |course| Some(course.queued()? * (0.3 + 0.7 * open(course)))).unwrap_or(0.0);
    // BBR paces at the rate that it takes the path's bottleneck to have.
    let own = |course: &Course<'_>| course.cc().is_some_and(|cc| cc.starts_with("bbr"));
    let estimate = |course: &Course<'_>| course.pacing_bps().filter(|_| own(course));
    let paced = each(&courses, |course| {
        let fits = ramp(course.rate_bps / estimate(course)?, 0.7, 0.9);
        Some(fits * open(course) * (1.0 - course.part(|one| one.app_limited)?))
    });
    let paced = paced.filter(|_| direction.sender.options.max_pacing_bps.is_none()).unwrap_or(0.0);
    let sign = standing.max(little * steady * unbound).max(paced * steady * unbound);
    let weight = 0.9 * sign * (1.0 - full_thread(observations, direction)) * (1.0 - held_by_qdisc(direction));
    let varied = varied(&rates);
    let signs = if standing.max(little) >= paced {
        format!(
            "the round trip stood at {} over its shortest of {}, with a queue before it{varied}",
            seconds(shortest + added),
            seconds(shortest)
        )
    } else {
        let rate: f64 = courses.iter().filter_map(estimate).sum();
        format!("bbr took it for {} and paced at that{varied}", bits_per_second(rate))
    };
    Some(Bottleneck { weight, bps: usual(&rates).or_else(|| goodput_bps(direction))?, signs })
}

fn of_datagrams(observations: &Observations<'_>, direction: &DirectionView<'_>, sent: u64) -> Option<Bottleneck> {
    let lost = placed::on_path(direction) as f64 / sent.max(1) as f64;
    let rates = arrivals(direction);
    let weight =
        0.95 * ramp(lost, 0.02, 0.1) * (0.4 + 0.6 * steady(&rates)) * (1.0 - full_reader(observations, direction));
    let came = goodput_bps(direction)?;
    let signs = format!(
        "{:.1} % of the datagrams went missing there, with {} sent and {} arriving{}",
        100.0 * lost,
        bits_per_second(super::observations::sent_bps(direction)?),
        bits_per_second(came),
        varied(&rates)
    );
    Some(Bottleneck { weight, bps: usual(&rates).unwrap_or(came), signs })
}

/// A bottleneck's own rate, where there are enough to tell it from what too little came to it at times.
fn usual(rates: &[f64]) -> Option<f64> {
    quantile(rates, USUAL).filter(|_| rates.len() >= FEWEST)
}

/// The part of its smaller window that a connection needs for its rate over the empty path; the send buffer is one, too.
fn fills_window(direction: &DirectionView<'_>, course: &Course<'_>) -> Option<f64> {
    let buffers = direction.sender.flows().filter_map(send_buffer_bytes).map(|bytes| bytes as f64);
    let window = course.window_bytes().into_iter().chain(buffers).reduce(f64::min)?;
    Some(course.rate_bps * course.min_rtt_ns()? / (8e9 * window))
}

/// Whether a measuring thread of either end ran all the time, from 0 to 1.
fn full_thread(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    let sender = busiest(observations, &direction.sender).map_or(0.0, |thread| ramp(thread.ran, 0.7, 0.95));
    sender.max(full_reader(observations, direction))
}

fn full_reader(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    busiest(observations, &direction.receiver).map_or(0.0, |thread| ramp(thread.ran, 0.7, 0.95))
}

/// Payload rates over the trial, bit/s: as a single connection's segments were delivered, which what is lost on the way to the reader
/// does not change, else as they arrived.
fn rates(direction: &DirectionView<'_>, courses: &[Course<'_>]) -> Vec<f64> {
    match courses {
        [only] => {
            Some(only.delivered_bps()).filter(|rates| rates.len() >= FEWEST).unwrap_or_else(|| arrivals(direction))
        }
        _ => arrivals(direction),
    }
}

/// Payload rates of the receiver's whole intervals but the first.
fn arrivals(direction: &DirectionView<'_>) -> Vec<f64> {
    let intervals = &direction.receiver.tally.intervals;
    // One that a busy host drew out says nothing of the length of the others.
    let lengths: Vec<f64> = intervals.iter().map(|one| (one.end_ns - one.start_ns) as f64).collect();
    let usual = median(&lengths).unwrap_or(0.0);
    let whole = intervals.iter().skip(1).filter(|one| (one.end_ns - one.start_ns) as f64 > usual / 2.0);
    whole.map(|one| one.bytes_received as f64 * 8e9 / (one.end_ns - one.start_ns) as f64).collect()
}

/// The quantile of the rates that is a bottleneck's own: below it are times at which too little came to it.
const USUAL: f64 = 0.8;
/// Fewest rates that show whether they are steady.
const FEWEST: usize = 5;

/// Whether rates stay the same, or always come up to the same height, from 0 to 1.
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
    let capped = 0.9 * (1.0 - ramp((top - upper) / top, 0.03, 0.12));
    same.max(capped)
}

/// `; the rate varied by 2 % between samples`: half the width of their middle six tenths, over their median.
fn varied(rates: &[f64]) -> String {
    let of = |q| quantile(rates, q);
    let spread = of(0.8).zip(of(0.2)).zip(mean(rates)).filter(|(_, mean)| rates.len() >= FEWEST && *mean > 0.0);
    spread.map_or(String::new(), |((high, low), mean)| {
        let percent = 50.0 * (high - low) / mean;
        let by = if percent < 1.0 { "less than 1".to_owned() } else { format!("{percent:.0}") };
        format!("; the rate varied by {by} % between samples")
    })
}

//! What tests that ran at the same time carried together: the bytes and the time of one window, by one clock.
//!
//! Each test has a window of its own as well; the sum of their rates would count the same capacity twice, where one test has what another
//! one leaves. Where one host is at an end of all tests, the window is from the first arrival to the last one by its clock: all bytes are
//! then known exactly. Elsewhere it is the time in which all tests sent.

use model::{EndTally, Spec, Stop, TrafficKind, Trial};

use crate::outcome::{receivers, senders};
use crate::steady::{confirmed, held_at, held_back};

/// The window of a traffic is at least this part of its tests, one divided by it, and two entries of their series.
const LEAST: u64 = 4;

/// What all tests carried in one window.
pub(super) struct Together {
    /// Bytes of each test.
    pub(super) bytes: Vec<f64>,
    /// The window, ns after the start of the first test.
    pub(super) window_ns: [u64; 2],
    /// Whether it is the time in which all tests sent. Otherwise it is that from the first arrival to the last one.
    pub(super) is_common: bool,
    /// From the start of the first test to that of the last one, ns, where one clock tells it.
    pub(super) apart_ns: Option<u64>,
}

impl Together {
    /// The goodput of all tests together, bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.bytes.iter().map(|bytes| self.rate(*bytes)).sum()
    }

    /// So many bytes in the window, bit/s.
    pub(super) fn rate(&self, bytes: f64) -> f64 {
        bytes * 8e9 / (self.window_ns[1] - self.window_ns[0]) as f64
    }
}

/// What these tests carried together; `None` if nothing arrived. One host of an incast or a fan-out is at an end of all tests, and its
/// clock says when each began. Other tests count as started at the same time, but for the delay that their specs ask for.
pub(super) fn together(specs: &[&Spec], trials: &[&Trial], traffic: Option<TrafficKind>) -> Option<Together> {
    let tests: Vec<Test> = specs.iter().zip(trials).map(|(spec, trial)| Test::of(spec, trial, traffic)).collect();
    let began: Option<Vec<u64>> = trials.iter().map(|trial| hub(traffic, trial)?.began_ns).collect();
    let first = began.as_ref().and_then(|began| began.iter().min().copied());
    let shift = |at: usize| began.as_ref().map_or(0, |began| began[at]) - first.unwrap_or(0);
    let apart_ns = began.as_ref().and_then(|began| Some(began.iter().max()? - first?));
    let shifted = |of: fn(&Test) -> Option<u64>| {
        tests.iter().enumerate().filter_map(move |(at, test)| Some(shift(at) + of(test)?)).collect::<Vec<u64>>()
    };
    let ready = shifted(|test| Some(test.ready_ns)).into_iter().max()?;
    // When one has filled the path, others that have not yet take their part of it.
    let from = shifted(|test| test.settled_ns).into_iter().min().map_or(ready, |settled| settled.max(ready));
    let to = shifted(|test| Some(test.stop_ns)).into_iter().min()?;
    let entries = specs.iter().map(|spec| 2 * spec.interval_ns).max()?;
    let length = tests.iter().map(|test| test.length_ns).min().filter(|_| traffic.is_some());
    let is_common = began.is_none() && to >= from.saturating_add(entries.max(length.map_or(0, |ns| ns / LEAST)));
    let window_ns = if is_common {
        [from, to]
    } else {
        let first = shifted(|test| test.curves.iter().filter_map(|curve| Some(curve.first()?.0)).min());
        let last = shifted(|test| test.curves.iter().filter_map(|curve| Some(curve.last()?.0)).max());
        [first.into_iter().min()?, last.into_iter().max()?]
    };
    let [from, to] = window_ns;
    let own = |(at, test): (usize, &Test)| {
        let until = |curve: &Curve, ns: u64| ns.checked_sub(shift(at)).map_or(0.0, |ns| by(curve, ns));
        test.curves.iter().map(|curve| (until(curve, to) - until(curve, from)).max(0.0)).sum()
    };
    let bytes: Vec<f64> = tests.iter().enumerate().map(own).collect();
    (to > from && bytes.iter().sum::<f64>() > 0.0).then_some(Together { bytes, window_ns, is_common, apart_ns })
}

/// The end at the one host that all tests have in common.
fn hub(traffic: Option<TrafficKind>, trial: &Trial) -> Option<&EndTally> {
    match traffic? {
        TrafficKind::Incast => Some(&trial.far),
        TrafficKind::FanOut => Some(&trial.near),
        TrafficKind::Ring | TrafficKind::Bisection | TrafficKind::Permutation => None,
    }
}

/// What had arrived by a time: points in ns and bytes, ascending, with a straight line between two of them.
type Curve = Vec<(u64, f64)>;

/// One test. Its times are ns since it was started.
struct Test {
    /// What arrived in each direction.
    curves: Vec<Curve>,
    /// When its warm-up was over and something had arrived.
    ready_ns: u64,
    /// When its start-up was over; `None` where that was not looked for.
    settled_ns: Option<u64>,
    /// When it stopped sending.
    stop_ns: u64,
    /// How long it sent.
    length_ns: u64,
}

impl Test {
    fn of(spec: &Spec, trial: &Trial, traffic: Option<TrafficKind>) -> Self {
        let after = spec.starts_after_ns();
        // Where the senders are on one host, its clock tells all that arrives; the receivers have a clock each.
        let by_sender = confirmed(&trial.near).filter(|_| traffic == Some(TrafficKind::FanOut));
        let ends = receivers(spec, &trial.near, &trial.far);
        let is_exact = traffic.is_some_and(TrafficKind::has_hub);
        let mut curves: Vec<Curve> = match by_sender {
            Some(points) => vec![from_first_arrival(points, &trial.near)],
            // Each end receives what the other one sends.
            None => {
                let senders = senders(spec, &trial.near, &trial.far).into_iter().rev();
                ends.iter().zip(senders).map(|(end, sender)| read(end, Some(sender).filter(|_| !is_exact))).collect()
            }
        };
        curves.iter_mut().flatten().for_each(|(at, _)| *at += after);
        let first = curves.iter().filter_map(|curve| Some(curve.first()?.0)).max();
        let last = curves.iter().filter_map(|curve| Some(curve.last()?.0)).max();
        let settled_ns = ends.iter().filter_map(|end| Some(after + end.steady_from_ns?)).max();
        let ready_ns = first.unwrap_or(after).max(after + spec.warmup_ns);
        let stop_ns = match spec.stop {
            Stop::TimeNs(ns) => after + ns,
            _ => last.unwrap_or(after),
        };
        Self { curves, ready_ns, settled_ns, stop_ns, length_ns: stop_ns - (after + spec.warmup_ns).min(stop_ns) }
    }
}

/// What a sender knew to have arrived, from about its first arrival on: a round trip after the first send, as each confirmation is.
fn from_first_arrival(points: Vec<(u64, u64)>, sender: &EndTally) -> Curve {
    let sent = sender.flows.iter().filter_map(|flow| flow.sending_ns).map(|[first, _]| first).min().unwrap_or(0);
    let round_trip = sender.flows.iter().filter_map(|flow| flow.socket.min_rtt_ns).min().unwrap_or(0);
    let first = sent + round_trip;
    let later = points.into_iter().filter(|(at, _)| *at > first).map(|(at, bytes)| (at, bytes as f64));
    std::iter::once((first, 0.0)).chain(later).collect()
}

/// What had arrived at an end of a trial, by its series: what was read, and what was held back behind a lost segment.
fn read(end: &EndTally, sender: Option<&EndTally>) -> Curve {
    // All bytes of a window that ends after the last arrival have been read.
    let held = sender.map_or_else(Vec::new, held_back);
    let spans = || end.flows.iter().filter_map(|flow| flow.receiving_ns);
    let begun = end.intervals.iter().find(|entry| entry.bytes_received > 0).map(|entry| entry.start_ns);
    let (Some(first), last) = (spans().map(|[first, _]| first).min().or(begun), spans().map(|[_, last]| last).max())
    else {
        return Vec::new();
    };
    // The sender's times are those of its own start.
    let flows = sender.into_iter().flat_map(|sender| &sender.flows);
    let sent = flows.filter_map(|flow| flow.sending_ns).map(|[first, _]| first).min();
    let held_at = |at: u64| held_at(&held, at.saturating_sub(first.saturating_sub(sent.unwrap_or(first))));
    // What came with the first arrival came in no time.
    let at_once = end.after_first.map_or(0, |after| end.bytes_received.saturating_sub(after.bytes));
    let mut points = vec![(first, at_once as f64)];
    let mut sum = 0;
    for entry in &end.intervals {
        sum += entry.bytes_received;
        // Nothing arrived after the last arrival.
        let at = entry.end_ns.min(last.unwrap_or(u64::MAX));
        if sum > 0 && at > first && points.last().is_some_and(|(last, _)| at > *last) {
            points.push((at, (sum + held_at(at)) as f64));
        }
    }
    points
}

/// What had arrived by a time.
fn by(curve: &Curve, at_ns: u64) -> f64 {
    let next = curve.partition_point(|(ns, _)| *ns <= at_ns);
    match (next.checked_sub(1).map(|last| curve[last]), curve.get(next)) {
        (None, _) => 0.0,
        (Some((_, bytes)), None) => bytes,
        (Some((from, before)), Some((to, after))) => {
            before + (after - before) * (at_ns - from) as f64 / (to - from) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Interval, Ledger, Pattern, TcpSample};
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    /// Length of an entry and of a test, ms.
    const ENTRY: u64 = 10;
    const LENGTH: u64 = 200;

    fn spec() -> Spec {
        Spec { stop: Stop::TimeNs(LENGTH * MS), interval_ns: ENTRY * MS, ..Spec::new("tcp", Pattern::Stream) }
    }

    /// A stream to a host whose clock was at `began` ms at its start: the bytes that arrived in each ms after that.
    fn trial(began: u64, arrived: &[u64], settled: Option<u64>) -> Trial {
        let entries = arrived.chunks(ENTRY as usize).zip(0..).map(|(bytes, at)| Interval {
            start_ns: at * ENTRY * MS,
            end_ns: (at + 1) * ENTRY * MS,
            bytes_received: bytes.iter().sum(),
            ..Interval::default()
        });
        let at = |of: Option<usize>| of.map_or(0, |ms| ms as u64 * MS);
        let first = at(arrived.iter().position(|bytes| *bytes > 0));
        let last = at(arrived.iter().rposition(|bytes| *bytes > 0)) + MS;
        let flow = FlowTally { receiving_ns: Some([first, last]), ..FlowTally::default() };
        let far = EndTally {
            began_ns: Some(began * MS),
            intervals: entries.collect(),
            flows: vec![flow],
            steady_from_ns: settled.map(|ms| ms * MS),
            ..EndTally::default()
        };
        of_ends(EndTally::default(), far)
    }

    fn of_ends(near: EndTally, far: EndTally) -> Trial {
        let (near, far, ledger) = (near.into(), far.into(), Ledger::default());
        Trial { cell: 0, pass: 0, position: 0, near, far, ledger, value: None, verdicts: Vec::new() }
    }

    fn of(trials: &[Trial], kind: TrafficKind) -> Together {
        let spec = spec();
        together(&vec![&spec; trials.len()], &trials.iter().collect::<Vec<_>>(), Some(kind)).unwrap()
    }

    /// A line of 1,000 bytes per ms. Until 100 ms the first stream has 900 of them, then the second one; both drain a queue to the end.
    fn in_turns() -> [Trial; 2] {
        let share = |ms: usize, early: u64| if ms < 100 { early } else { 1_000 - early };
        [900, 100].map(|early| {
            trial(
                7,
                &(0..400).map(|ms| share(ms, early)).collect::<Vec<u64>>(),
                Some(if early > 500 { 20 } else { 100 }),
            )
        })
    }

    #[test]
    fn the_window_is_the_time_in_which_all_send() {
        let found = of(&in_turns(), TrafficKind::Ring);
        assert_eq!((found.window_ns, found.is_common), ([20 * MS, 200 * MS], true));
        assert!((found.bps() - 8e6).abs() < 1.0, "{}", found.bps());
    }

    #[test]
    fn starts_that_are_apart_shift_by_the_clock_of_the_receiver() {
        // The second one began 60 ms later: the first one had the line alone until then.
        let line = |ms: u64| if ms < 60 { 1_000 } else { 500 };
        let first = trial(1_000, &(0..260).map(line).collect::<Vec<u64>>(), None);
        let later = trial(1_060, &vec![500; 200], None);
        let found = of(&[first, later], TrafficKind::Incast);
        assert_eq!((found.window_ns, found.apart_ns), ([0, 260 * MS], Some(60 * MS)));
        assert!((found.bps() - 8e6).abs() < 1.0, "{}", found.bps());
    }

    #[test]
    fn an_incast_has_all_bytes_over_the_time_from_the_first_arrival_to_the_last() {
        let found = of(&[0, 180].map(|began| trial(began, &[1_000; 200], None)), TrafficKind::Incast);
        assert_eq!((found.window_ns, found.is_common), ([0, 380 * MS], false));
        assert!((found.bps() - 400.0 / 380.0 * 8e6).abs() < 1.0, "{}", found.bps());
    }

    #[test]
    fn what_arrived_behind_a_lost_segment_counts_when_it_arrived() {
        // Nothing was read from 40 to 140 ms, in which the sender knew 100,000 bytes to be delivered; then all was read at once.
        let read = |ms: u64| match ms {
            0..40 | 150.. => 1_000,
            40..140 => 0,
            140 => 101_000,
            _ => 1_000,
        };
        let whole = trial(0, &(0..400).map(read).collect::<Vec<u64>>(), None);
        let sample = |at: u64| TcpSample {
            at_ns: at * ENTRY * MS,
            mss: 1_000,
            delivered: Some(at * ENTRY),
            bytes_acked: Some(1_000 * if (5..14).contains(&at) { 40 } else { at * ENTRY }),
            ..TcpSample::default()
        };
        let flow = FlowTally { bytes_sent: 1, tcp: (0..=40).map(sample).collect(), ..FlowTally::default() };
        let whole = of_ends(EndTally { flows: vec![flow], ..EndTally::default() }, EndTally::clone(&whole.far));
        // The other one ends the window while the first one waits.
        let short = trial(0, &[1_000; 100], None);
        let (long, spec) = (spec(), Spec { stop: Stop::TimeNs(100 * MS), ..spec() });
        let found = together(&[&long, &spec], &[&whole, &short], Some(TrafficKind::Ring)).unwrap();
        assert_eq!(found.window_ns, [0, 100 * MS]);
        assert!((found.bps() - 16e6).abs() < 1e5, "{}", found.bps());
    }

    #[test]
    fn a_fan_out_counts_what_its_one_host_knows_to_have_arrived() {
        let flow = |began: u64, from: u64| {
            let sample = |at: u64| TcpSample {
                at_ns: at * ENTRY * MS,
                mss: 1_000,
                delivered: Some(at.saturating_sub(from) * ENTRY),
                bytes_acked: Some(at.saturating_sub(from) * ENTRY * 1_000),
                ..TcpSample::default()
            };
            let tcp = (0..=25).map(sample).collect();
            let flows = vec![FlowTally { bytes_sent: 1, tcp, ..FlowTally::default() }];
            let near = EndTally { began_ns: Some(began * MS), flows, ..EndTally::default() };
            of_ends(near, EndTally::clone(&trial(0, &[9_999; 100], None).far))
        };
        let found = of(&[flow(500, 0), flow(520, 0)], TrafficKind::FanOut);
        assert_eq!((found.window_ns, found.apart_ns), ([0, 270 * MS], Some(20 * MS)));
        assert!((found.bps() - 500.0 / 270.0 * 8e6).abs() < 1.0, "{}", found.bps());
    }

    proptest! {
        /// Streams share a line in a random way, begin and settle at random times, and drain what they have queued.
        #[test]
        fn an_incast_never_exceeds_the_line(
            shares in prop::collection::vec(prop::collection::vec(0.0f64..1.0, 45), 2..6),
            began in prop::collection::vec(0u64..80, 6),
            settled in prop::collection::vec(prop::option::of(0u64..80), 6),
        ) {
            const LINE: u64 = 1_000;
            let parts: Vec<f64> = (0..45).map(|entry| shares.iter().map(|of| of[entry]).sum::<f64>().max(1.0)).collect();
            // Entries of all flows begin at the same times, so that a line between two points is exact.
            let trials: Vec<Trial> = shares.iter().enumerate().map(|(at, of)| {
                let began = began[at] / ENTRY * ENTRY;
                let arrived = (began..450).map(|ms| {
                    let entry = (ms / ENTRY) as usize;
                    (LINE as f64 * of[entry] / parts[entry]) as u64
                });
                trial(began, &arrived.collect::<Vec<u64>>(), settled[at])
            }).collect();
            let spec = spec();
            let refs: Vec<&Trial> = trials.iter().collect();
            if let Some(found) = together(&vec![&spec; refs.len()], &refs, Some(TrafficKind::Incast)) {
                prop_assert!(found.bps() <= LINE as f64 * 8e3 * 1.0001, "{} in {:?}", found.bps(), found.window_ns);
            }
        }
    }
}

//! A settled stream's goodput is that of the path, or it is called not settled: over simulated connections whose steady rate is known.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test's helpers")]

use analysis::steady::{delivered_rates, rates, settle};
use analysis::trial_value;
use model::{EndTally, FlowTally, Interval, Pattern, Spec, Stop, TcpSample};
use proptest::prelude::*;

const MSS: f64 = 1448.0;
const MS: u64 = 1_000_000;

/// How a congestion window grows after slow start.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Control {
    Reno,
    Cubic,
    /// Keeps the window at twice the path's product of rate and RTT, as BBR does.
    Constant,
}

/// A path and the connection over it.
#[derive(Debug, Clone, Copy)]
struct Connection {
    control: Control,
    bits_per_second: f64,
    rtt_ms: f64,
    /// Queue of the bottleneck, relative to the product of rate and RTT.
    queue: f64,
    /// Slow start ends at this part of what fits the path, without a loss; above 1 it ends with losses.
    exit: f64,
    /// Limit of the receiver's window, in segments.
    receive_window: f64,
}

/// The state of the connection in one step of 10 ms.
struct State {
    window: f64,
    threshold: Option<f64>,
    /// Of CUBIC: the window before the last reduction and after it, and the time since. The end of slow start without a loss reduces
    /// nothing.
    peak: f64,
    reduced: f64,
    since_s: f64,
    retransmits: u64,
    delivered: f64,
}

impl Connection {
    fn segments_per_s(&self) -> f64 {
        self.bits_per_second / 8.0 / MSS
    }

    /// Both ends' tallies of a trial.
    fn trial(&self, length_ms: u64) -> (EndTally, EndTally) {
        let mut samples = vec![self.sample(0, &self.begin(), self.rtt_ms)];
        let mut intervals = Vec::new();
        let mut state = self.begin();
        let mut before = 0.0;
        for step in 1..=length_ms / 10 {
            let rtt_ms = self.step(&mut state);
            if step.is_multiple_of(10) {
                samples.push(self.sample(step * 10, &state, rtt_ms));
                let bytes = ((state.delivered - before) * MSS) as u64;
                let (start_ns, end_ns) = ((step - 10) * 10 * MS, step * 10 * MS);
                intervals.push(Interval { start_ns, end_ns, bytes_received: bytes, ..Interval::default() });
                before = state.delivered;
            }
        }
        let bytes = (state.delivered * MSS) as u64;
        let flow = FlowTally { bytes_sent: bytes, tcp: samples, ..FlowTally::default() };
        let near = EndTally { bytes_sent: bytes, flows: vec![flow], ..EndTally::default() };
        let far = EndTally { bytes_received: bytes, receiving_ns: length_ms * MS, intervals, ..EndTally::default() };
        (near, far)
    }

    fn begin(&self) -> State {
        State { window: 10.0, threshold: None, peak: 0.0, reduced: 0.0, since_s: 0.0, retransmits: 0, delivered: 0.0 }
    }

    fn sample(&self, at_ms: u64, state: &State, rtt_ms: f64) -> TcpSample {
        let used = state.window.min(self.receive_window);
        TcpSample {
            at_ns: at_ms * MS,
            rtt_ns: (rtt_ms * 1e6) as u64,
            cwnd: state.window as u32,
            ssthresh: state.threshold.map(|threshold| threshold as u32),
            mss: MSS as u32,
            unacked: used as u32,
            retransmits: state.retransmits,
            delivered: Some(state.delivered as u64),
            ..TcpSample::default()
        }
    }

    /// 10 ms pass. Returns the RTT.
    fn step(&self, state: &mut State) -> f64 {
        let product = self.segments_per_s() * self.rtt_ms / 1e3;
        let flight = state.window.min(self.receive_window);
        let rtt_ms = self.rtt_ms * (flight / product).max(1.0);
        let delivered = flight * 10.0 / rtt_ms;
        state.delivered += delivered;
        state.since_s += 0.01;
        // A window grows only while the flow uses it up.
        let used = flight >= state.window * 0.9;
        match (state.threshold, self.control) {
            (None, _) if used => state.window += delivered,
            (None, _) => {}
            (Some(_), Control::Reno) if used => state.window += delivered / state.window,
            (Some(_), Control::Cubic) if used => {
                let wait = ((state.peak - state.reduced) / 0.4).cbrt();
                let cubic = 0.4 * (state.since_s - wait).powi(3) + state.peak;
                state.window = cubic.max(state.window + 0.5 * delivered / state.window);
            }
            _ => {}
        }
        let full = product * (1.0 + self.queue);
        if state.threshold.is_none() && (state.window >= self.exit * product) {
            (state.threshold, state.since_s, state.reduced) = (Some(state.window), 0.0, state.window);
            state.peak = if self.exit < 1.0 { state.window } else { state.window / 0.7 };
            if self.control == Control::Constant {
                state.window = 2.0 * product;
            }
        } else if state.window > full && self.control != Control::Constant {
            let factor = if self.control == Control::Reno { 0.5 } else { 0.7 };
            (state.peak, state.since_s) = (state.window, 0.0);
            state.window *= factor;
            state.reduced = state.window;
            state.threshold = Some(state.window);
            state.retransmits += 5;
        }
        rtt_ms
    }

    /// The goodput of the trial by the settled part, and whether it had settled.
    fn measured(&self, length_ms: u64) -> (f64, bool) {
        let spec = Spec { steady: true, stop: Stop::TimeNs(length_ms * MS), ..Spec::new("tcp", Pattern::Stream) };
        let (mut near, mut far) = self.trial(length_ms);
        let settled = settle(&spec, &mut near, &mut far).expect("a series");
        (trial_value(&spec, &near, &far).unwrap_or(0.0), settled)
    }

    /// The rate of a settled connection, bit/s: the path's, because the queue outlasts a reduction of the window, or the window's.
    fn steady(&self) -> f64 {
        self.bits_per_second.min(self.receive_window * MSS * 8e3 / self.rtt_ms)
    }
}

fn path(control: Control, mbit: f64, rtt_ms: f64) -> Connection {
    let (bits_per_second, receive_window) = (mbit * 1e6, f64::INFINITY);
    Connection { control, bits_per_second, rtt_ms, queue: 1.0, exit: 1.5, receive_window }
}

#[test]
fn a_short_path_settles_within_a_second() {
    for control in [Control::Reno, Control::Cubic, Control::Constant] {
        let connection = path(control, 100.0, 2.0);
        let (bps, settled) = connection.measured(1_000);
        assert!(settled && (bps / connection.steady() - 1.0).abs() < 0.01, "{control:?}: {bps}");
    }
}

#[test]
fn slow_start_alone_is_not_settled() {
    let satellite = path(Control::Cubic, 5.0, 600.0);
    assert!(!satellite.measured(2_000).1);
    let (bps, settled) = satellite.measured(60_000);
    assert!(settled && (bps / satellite.steady() - 1.0).abs() < 0.03, "{bps}");
}

#[test]
fn a_window_that_grows_slowly_towards_the_path_is_not_settled() {
    for control in [Control::Reno, Control::Cubic] {
        let early = Connection { exit: 0.5, ..path(control, 100.0, 200.0) };
        assert!(!early.measured(4_000).1, "{control:?}");
    }
}

#[test]
fn a_growth_that_ends_with_the_trial_is_not_settled() {
    for (control, mbit, rtt_ms, exit, length_ms) in [
        (Control::Reno, 29.8, 24.0, 0.4, 1_000),
        (Control::Cubic, 83.7, 10.8, 0.3, 1_100),
        (Control::Reno, 12.5, 40.0, 0.42, 1_200),
        (Control::Reno, 121.8, 17.2, 0.5, 1_800),
    ] {
        let early = Connection { exit, ..path(control, mbit, rtt_ms) };
        assert!(!early.measured(length_ms).1, "{early:?}");
    }
}

#[test]
fn a_full_path_whose_next_loss_empties_its_queue_is_not_settled() {
    // The queue would overflow at a fifth of what is in flight.
    let short = |control| Connection { queue: 0.2, exit: 0.9, ..path(control, 1000.0, 20.0) };
    for (control, cc) in [(Control::Reno, "reno"), (Control::Cubic, "cubic")] {
        let spec = Spec { steady: true, stop: Stop::TimeNs(2_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
        let settled = |connection: Connection, cc: &str| {
            let (mut near, mut far) = connection.trial(2_000);
            near.flows[0].socket.cc = Some(cc.to_owned());
            for one in &mut near.flows[0].tcp {
                // Its window has passed what the path holds, and the queue begins to fill.
                (one.retransmits, one.cwnd) = (0, 1_800 + (one.at_ns / MS / 20) as u32);
                (one.unacked, one.ssthresh, one.state) = (one.cwnd, Some(1_700), 0);
                (one.min_rtt_ns, one.rtt_ns) = (Some(20 * MS), 20 * MS + one.at_ns / 500);
            }
            settle(&spec, &mut near, &mut far).expect("a series")
        };
        assert!(!settled(short(control), cc), "{cc}");
        assert!(settled(short(control), "bbr"), "bbr does not wait for a loss");
    }
}

#[test]
fn what_waits_behind_a_lost_segment_does_not_widen_the_interval() {
    let connection = path(Control::Constant, 10.0, 100.0);
    let spec = Spec { steady: true, stop: Stop::TimeNs(20_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
    let (mut near, mut far) = connection.trial(20_000);
    settle(&spec, &mut near, &mut far).expect("a series");
    // The receiver reads nothing for a second, and then all of it.
    let held: u64 = far.intervals[100..110].iter_mut().map(|entry| std::mem::take(&mut entry.bytes_received)).sum();
    far.intervals[110].bytes_received += held;
    let spread = |rates: &[f64]| {
        let (low, high) =
            rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        (high - low) / connection.bits_per_second
    };
    assert!(spread(&rates(&spec, &far)) > 9.0);
    let delivered = delivered_rates(&spec, &near, &far).expect("a series");
    assert!(delivered.len() > 100 && spread(&delivered) < 0.05, "{delivered:?}");
    near.flows[0].tcp.iter_mut().for_each(|one| one.delivered = None);
    assert_eq!(delivered_rates(&spec, &near, &far), None, "the kernel does not report it");
}

#[test]
fn what_waits_behind_a_lost_segment_at_the_end_has_arrived() {
    let connection = path(Control::Constant, 10.0, 20.0);
    let spec = Spec { steady: true, stop: Stop::TimeNs(4_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
    let (mut near, mut far) = connection.trial(6_000);
    // A segment is lost after 2.5 s and arrives after 5.5 s, when the sender has long stopped.
    let mut held = 0;
    for entry in &mut far.intervals {
        if (2_500 * MS..5_500 * MS).contains(&entry.start_ns) {
            held += std::mem::take(&mut entry.bytes_received);
        } else {
            entry.bytes_received += std::mem::take(&mut held);
        }
    }
    for one in &mut near.flows[0].tcp {
        let delivered = one.delivered.unwrap() * u64::from(one.mss);
        let lost_at = (10e6 / 8.0 * 2.5) as u64;
        let waits = (2_500 * MS..5_500 * MS).contains(&one.at_ns);
        // Every hundredth segment is not full.
        one.bytes_acked = Some(if waits { delivered.min(lost_at) } else { delivered } - delivered / 200);
    }
    settle(&spec, &mut near, &mut far).expect("a series");
    let bps = trial_value(&spec, &near, &far).expect("a window");
    assert!((bps / connection.steady() - 1.0).abs() < 0.01, "{bps}");
}

#[test]
fn a_flow_that_its_receiver_limits_is_settled() {
    let limited = Connection { receive_window: 400.0, ..path(Control::Cubic, 1000.0, 50.0) };
    let (bps, settled) = limited.measured(5_000);
    assert!(settled && (bps / limited.steady() - 1.0).abs() < 0.01, "{bps}");
}

#[test]
fn a_reader_that_did_not_run_after_the_start_leaves_the_whole_trial() {
    let connection = path(Control::Constant, 10.0, 0.5);
    let spec = Spec { steady: true, stop: Stop::TimeNs(1_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
    let (near, mut far) = connection.trial(1_000);
    let read: u64 = far.intervals.iter_mut().map(|entry| std::mem::take(&mut entry.bytes_received)).sum();
    far.intervals[0].bytes_received = read;
    settle(&spec, &mut near.clone(), &mut far).expect("a series");
    assert_eq!(far.measured, None);
    assert!(trial_value(&spec, &near, &far).is_some_and(|bps| bps > 0.0));
}

#[test]
fn what_came_in_before_the_window_does_not_count_in_it() {
    let connection = path(Control::Constant, 10.0, 0.5);
    let spec = Spec { steady: true, stop: Stop::TimeNs(1_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
    let measured = |gap: std::ops::RangeInclusive<usize>| {
        let (mut near, mut far) = connection.trial(1_000);
        // The reader has no CPU in these entries, and reads what came in meanwhile in the next two.
        let late: u64 = far.intervals[gap.clone()].iter_mut().map(|one| std::mem::take(&mut one.bytes_received)).sum();
        far.intervals[gap.end() + 1].bytes_received += late * 2 / 3;
        far.intervals[gap.end() + 2].bytes_received += late - late * 2 / 3;
        settle(&spec, &mut near, &mut far).expect("a series");
        (trial_value(&spec, &near, &far).unwrap() / connection.steady(), far.measured.is_some())
    };
    for gap in [0..=1, 1..=2, 0..=3] {
        let (share, is_window) = measured(gap.clone());
        assert!(is_window && (share - 1.0).abs() < 0.01, "{gap:?}: {share}");
    }
    let (share, is_window) = measured(0..=6);
    assert!(!is_window && share < 1.01, "too little is left: {share}");
}

#[test]
fn a_host_that_is_busy_at_the_end_of_a_short_path_does_not_lengthen_its_start() {
    let connection = path(Control::Constant, 10.0, 0.5);
    let spec = Spec { steady: true, stop: Stop::TimeNs(1_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
    let (mut near, mut far) = connection.trial(1_000);
    // Nothing but the last parts is as fast as the second half.
    let mut sum = 0;
    for (at, one) in (0..).zip(&mut near.flows[0].tcp) {
        sum += if at < 7 { 200 } else { 50 + at % 2 };
        one.delivered = Some(sum);
    }
    assert!(settle(&spec, &mut near, &mut far).expect("a series"));
    near.flows[0].tcp.iter_mut().for_each(|one| one.rtt_ns = 0);
    assert!(!settle(&spec, &mut near, &mut far).expect("a series"), "the round trip is unknown");
}

#[test]
fn a_host_that_becomes_faster_long_after_the_start_does_not_unsettle_a_short_path() {
    let quicker = |rtt_ms: f64| {
        let connection = path(Control::Constant, 10.0, rtt_ms);
        let spec = Spec { steady: true, stop: Stop::TimeNs(3_000 * MS), ..Spec::new("tcp", Pattern::Stream) };
        let (mut near, mut far) = connection.trial(3_000);
        for one in &mut near.flows[0].tcp {
            one.delivered = one.delivered.map(|segments| segments + segments * (one.at_ns / MS) / 6_000);
        }
        settle(&spec, &mut near, &mut far).expect("a series")
    };
    assert!(quicker(0.5), "its small window has grown after 60 round trips");
    assert!(!quicker(100.0), "within 30 round trips it may be the window that grows");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_settled_goodput_is_that_of_the_path(
        control in prop_oneof![Just(Control::Reno), Just(Control::Cubic), Just(Control::Constant)],
        mbit in 5.0..300.0f64, rtt_ms in 1.0..300.0f64, queue in 1.0..3.0f64, exit in 0.3..2.0f64,
        trial in prop_oneof![Just(30.0), Just(100.0), Just(300.0)],
    ) {
        let connection = Connection { queue, exit, ..path(control, mbit, rtt_ms) };
        let length_ms = ((trial * rtt_ms / 100.0).ceil() as u64 * 100).clamp(1_000, 60_000);
        let (bps, settled) = connection.measured(length_ms);
        let off = bps / connection.steady() - 1.0;
        prop_assert!(!settled || off.abs() < 0.05, "{connection:?}: {off:+.3} after {length_ms} ms");
    }
}

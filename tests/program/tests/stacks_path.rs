//! The textbook behaviour of TCP stacks on an emulated path. As root.
//!
//! Nothing here is timed by this machine's clock: growth is counted in windows of acknowledged segments, which a machine that is
//! late does not change, and each number is the median over the cycles from one loss to the next. H-TCP's own growth goes by the
//! time since a loss; the paper's is then taken for the times at which the kernel was asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use model::TcpSample;
use program::skip::skip;
use program::stacks::turn;
use program::{Agent, Running, Sandbox, binary};

/// Two hosts, 10 ms there and back, and an agent on the second one.
struct Path {
    lab: Lab,
    agent: Agent,
    sandbox: Sandbox,
}

impl Path {
    fn of(test: &str, rate_bps: u64, queue_bytes: u64) -> Option<Self> {
        let direction = DirectionSpec {
            delay: Duration::from_millis(5),
            rate_bps: Some(rate_bps),
            queue_bytes,
            ..DirectionSpec::default()
        };
        let reverse = DirectionSpec { rate_bps: None, ..direction.clone() };
        let spec = PathSpec { link: CrossoverSpec::default(), forward: direction, reverse, seed: 1 };
        match lab::available().and_then(|()| Lab::path(&spec)) {
            Ok(lab) => {
                let b = lab.host("b").unwrap();
                let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &format!("{}:0", b.v4)]);
                Some(Self { lab, agent, sandbox: Sandbox::new() })
            }
            Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
                skip(test, &error.to_string());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Segments that fill the path without its queue.
    fn segments(rate_bps: u64) -> u64 {
        rate_bps / 100 / 8 / (1_500 + u64::from(DirectionSpec::ETHERNET))
    }

    /// What TCP said at the sender, every 5 ms of a stream under a congestion control. The receiver keeps its own.
    fn stream(&self, cc: &str, time: &str) -> Vec<TcpSample> {
        let fixed = [
            "stream",
            "--trials",
            "1",
            "--no-path",
            "--observe",
            "off",
            "--interval",
            "5ms",
            "--no-store",
            "--json",
            "-",
        ];
        let flags = ["--cc", &format!("{cc},"), "--time", time, self.agent.host()];
        let host = self.lab.host("a").unwrap();
        let run = Running::of(self.sandbox.prepare(host.command(binary::thru()), &[fixed.as_slice(), &flags].concat()));
        let doc = run.wait().ok().doc();
        let flow = &doc.trials()[0].near.flows[0];
        assert!(flow.socket.cc.as_ref().is_some_and(|name| name.starts_with("bpf_")), "{:?}", flow.socket.cc);
        flow.tcp.clone()
    }
}

/// What happened between two losses.
#[derive(Debug)]
struct Cycle {
    /// Window at the first of them, segments, and the part of it that was left.
    at: f64,
    left: f64,
    /// Time since then, s.
    since: f64,
    /// Segments that the window has grown by since.
    grown: f64,
    /// Round trips for that: windows' worth of acknowledged segments.
    trips: f64,
    /// Segments that the paper lets the window grow by in these.
    papers: f64,
    /// Smallest and largest RTT since the loss before, ms.
    rtt_ms: (f64, f64),
}

impl Cycle {
    /// The growth as a part of the paper's.
    fn growth(&self) -> f64 {
        self.grown / self.papers
    }
}

/// The cycles of congestion avoidance. `growth` is what the paper adds to a window in a round trip at this time of a cycle, segments.
fn cycles(samples: &[TcpSample], growth: impl Fn(&Cycle, f64) -> f64) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    let mut current: Option<Cycle> = None;
    let mut longest_ms = 0_f64;
    let mut loss_ns = 0;
    for pair in samples.windows(2) {
        let [before, now] = pair else { continue };
        let (Some(threshold), Some(old)) = (now.ssthresh, before.ssthresh) else { continue };
        longest_ms = longest_ms.max(before.rtt_ns as f64 / 1e6);
        // The next loss may come at the same window.
        if threshold != old || (before.state < 2 && now.state >= 2) {
            cycles.extend(current.take());
            let least = before.min_rtt_ns.map_or(longest_ms, |ns| ns as f64 / 1e6);
            let left = f64::from(threshold) / f64::from(before.cwnd);
            current = Some(Cycle {
                at: f64::from(before.cwnd),
                left,
                since: 0.0,
                grown: 0.0,
                trips: 0.0,
                papers: 0.0,
                rtt_ms: (least, longest_ms),
            });
            longest_ms = 0.0;
            loss_ns = before.at_ns;
        }
        // 0 and 1: nothing is under repair. A window that is not used, by a sender without a core say, does not grow.
        let counts = |sample: &TcpSample| sample.state < 2 && sample.unacked * 10 >= sample.cwnd * 9;
        let Some(cycle) = current.as_mut().filter(|_| counts(before) && counts(now)) else { continue };
        let acked = (now.bytes_acked.unwrap() - before.bytes_acked.unwrap()) as f64 / f64::from(now.mss);
        let (window, part) = (f64::from(before.cwnd), acked / f64::from(before.cwnd));
        cycle.grown += f64::from(now.cwnd) - window;
        cycle.trips += part;
        cycle.since = (before.at_ns - loss_ns) as f64 / 1e9;
        cycle.papers += part * growth(cycle, window);
    }
    // One that a second loss has cut short tells nothing.
    cycles.retain(|cycle| cycle.trips >= 4.0 && cycle.grown > 0.0);
    for cycle in &cycles {
        println!("{cycle:.3?}");
    }
    assert!(cycles.len() >= 2, "too few losses to tell");
    cycles
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn between(what: &str, value: f64, least: f64, most: f64) {
    println!("{what}: {value:.3}");
    assert!((least..=most).contains(&value), "{what}: {value}, where {least} to {most} is expected");
}

/// RFC 3649, appendix B: from this window on, that increase and that decrease.
const RFC3649: [(f64, f64, f64); 5] =
    [(0.0, 1.0, 0.5), (118.0, 2.0, 0.44), (221.0, 3.0, 0.41), (347.0, 4.0, 0.38), (495.0, 5.0, 0.37)];

fn rfc3649(window: f64) -> (f64, f64) {
    let row = RFC3649.iter().rfind(|row| row.0 <= window).unwrap();
    (row.1, row.2)
}

/// A loss takes the part of the window that the paper says, and each round trip gives what the paper says.
#[test]
#[ignore = "half a minute of both cores: scripts/test-long.sh whole"]
fn responses_to_loss_and_growth_are_those_of_the_papers() {
    let test = "responses_to_loss_and_growth_are_those_of_the_papers";
    let Some(_turn) = turn(test) else { return };
    const RATE: u64 = 160_000_000;
    // 130 segments fill the path, half as many its queue: losses come at windows of some 190.
    let Some(path) = Path::of(test, RATE, Path::segments(RATE) / 2 * 1_538) else { return };

    let found = cycles(&path.stream("aimd:a=4,b=0.3", "2s"), |_, _| 4.0);
    between("AIMD: what a loss leaves", median(found.iter().map(|cycle| cycle.left)), 0.67, 0.73);
    between("AIMD: growth by the paper's", median(found.iter().map(Cycle::growth)), 0.85, 1.15);

    let found = cycles(&path.stream("highspeed", "5s"), |_, window| rfc3649(window).0);
    let off = |cycle: &Cycle| cycle.left - (1.0 - rfc3649(cycle.at).1);
    between("HighSpeed: what a loss leaves beyond the table's", median(found.iter().map(off)), -0.03, 0.03);
    between("HighSpeed: growth by the table's", median(found.iter().map(Cycle::growth)), 0.85, 1.15);

    // Leith and Shorten: alpha(D), times 2 (1 - beta), and here from 50 ms on.
    let alpha = |cycle: &Cycle| {
        let late = (cycle.since - 0.05).max(0.0);
        1.0 + 10.0 * late + (late / 2.0).powi(2)
    };
    let by_the_clock = |cycle: &Cycle, _: f64| 2.0 * (1.0 - cycle.left) * alpha(cycle);
    let found = cycles(&path.stream("htcp:delta_l=0.05", "5s"), by_the_clock);
    between("H-TCP: growth by the paper's", median(found.iter().map(Cycle::growth)), 0.85, 1.15);

    // What it gives up is what the queue held, or half where the throughput changed by more than a fifth, as it has at the first loss
    // and may have at others on a busy machine. One that always gives up half is not H-TCP.
    let queue = |cycle: &Cycle| (cycle.rtt_ms.0 / cycle.rtt_ms.1).clamp(0.5, 0.8);
    let off = |cycle: &Cycle| (cycle.left - queue(cycle)).abs();
    let or_half = |cycle: &Cycle| off(cycle).min((cycle.left - 0.5).abs());
    between("H-TCP: what a loss leaves off RTTmin / RTTmax, or half", median(found.iter().map(or_half)), 0.0, 0.08);
    let reported = found.iter().filter(|cycle| queue(cycle) > 0.6).map(off).fold(1.0, f64::min);
    between("H-TCP: where it is nearest to RTTmin / RTTmax, and that is not half", reported, 0.0, 0.05);
    let found = cycles(&path.stream("htcp:delta_l=0.05,adapt=0", "3s"), by_the_clock);
    between("H-TCP that is told to give up half", median(found.iter().map(|cycle| cycle.left)), 0.47, 0.53);

    // FAST wants more in the queue than it holds. Its growth is a matter of single round trips, and tested in
    // `crates/stacks/tests/all/arithmetic.rs`.
    let found = cycles(&path.stream("fast:alpha=100,gamma=0.1", "2s"), |_, _| 1.0);
    between("FAST: what a loss leaves", median(found.iter().map(|cycle| cycle.left)), 0.47, 0.53);
}

/// The time to make up for a loss is the same at a window four times as large; Reno's would be four times as long.
#[test]
fn scalable_recovers_within_the_same_round_trips_at_any_window() {
    let test = "scalable_recovers_within_the_same_round_trips_at_any_window";
    let Some(_turn) = turn(test) else { return };
    let mut found = Vec::new();
    for rate in [80_000_000, 320_000_000] {
        let Some(path) = Path::of(test, rate, Path::segments(rate) / 2 * 1_538) else { return };
        let cycles = cycles(&path.stream("scalable", "2s"), |_, window| window / 100.0);
        between("Scalable: what a loss leaves", median(cycles.iter().map(|cycle| cycle.left)), 0.85, 0.9);
        let trips =
            |cycle: &Cycle| cycle.trips * (1.0_f64 / 0.875).ln() / (1.0 + cycle.grown / (cycle.at * cycle.left)).ln();
        found.push((median(cycles.iter().map(|cycle| cycle.at)), median(cycles.iter().map(trips))));
    }
    let [(small, first), (large, second)] = found[..] else { panic!("{found:?}") };
    assert!(large > 3.0 * small, "{found:?}");
    // log(1 / (1 - b)) / log(1 + a) = 13.4
    between("Scalable: round trips to recover, small window", first, 11.0, 17.0);
    between("Scalable: round trips to recover, large window", second, 11.0, 17.0);
}

/// Whatever alpha is, that many segments wait, and nothing is lost.
#[test]
fn fast_keeps_alpha_in_the_queue_without_a_loss() {
    let test = "fast_keeps_alpha_in_the_queue_without_a_loss";
    let Some(_turn) = turn(test) else { return };
    // 48 segments fill the path. The queue holds what slow start brings.
    let Some(path) = Path::of(test, 60_000_000, 1 << 20) else { return };
    for alpha in [40, 120] {
        let samples = path.stream(&format!("fast:alpha={alpha}"), "2s");
        let settled = samples[samples.len() / 2..].iter();
        let queue = |sample: &TcpSample| {
            f64::from(sample.cwnd) * (1.0 - sample.min_rtt_ns.unwrap() as f64 / sample.rtt_ns as f64)
        };
        let waiting = median(settled.map(queue)) / f64::from(alpha);
        between(&format!("FAST: segments in the queue by alpha, {alpha}"), waiting, 0.8, 1.2);
    }
    let lost: u64 = path
        .lab
        .emulator()
        .unwrap()
        .counts()
        .iter()
        .map(|direction| direction.dropped_queue + direction.dropped_ring)
        .sum();
    assert_eq!(lost, 0, "it does not wait for a loss");
}

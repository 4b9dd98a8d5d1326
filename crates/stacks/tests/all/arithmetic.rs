//! The stacks' arithmetic: their own C, compiled for user space (`bpf/harness.c` emulates the kernel), compared with
//! the papers' equations.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use stacks::stack;

use crate::manual;

/// A connection under one congestion control.
struct Flow {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    stack: &'static str,
    /// Segments.
    window: u32,
    ssthresh: u32,
    /// The socket options that it set at the last command.
    calls: String,
}

const NO_SSTHRESH: u32 = 0x7fff_ffff;

impl Flow {
    fn of(name: &'static str) -> Self {
        Self::from(name, Path::new(&format!("{name}.bpf.c")))
    }

    fn from(name: &'static str, source: &Path) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        // Tests run in parallel; each compiles its own.
        let thread = format!("{:?}", std::thread::current().id()).replace(|c: char| !c.is_ascii_digit(), "");
        let program =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{thread}", std::process::id()));
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.current_dir(folder).args(["-O1", "-w", "-fsanitize=undefined", "-fno-sanitize-recover=undefined"]);
        cc.arg(format!("-DSTACK_FILE=\"{}\"", source.display())).args(["-I.", "harness.c", "-o"]).arg(&program);
        let compiled = cc.output().expect("a C compiler, which the build of this workspace needs too");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let mut process = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::fs::remove_file(&program).unwrap();
        let (orders, answers) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, orders, answers, stack: name, window: 0, ssthresh: 0, calls: String::new() }
    }

    fn order(&mut self, order: &str) -> &mut Self {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut words = line.trim().splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        (self.window, self.ssthresh) = number().zip(number()).unwrap_or_else(|| panic!("{order}: {line:?}"));
        self.calls = words.next().unwrap_or_default().to_owned();
        self
    }

    fn set(&mut self, name: &str, value: f64) -> &mut Self {
        let parameters = stack(self.stack).unwrap().parameters().unwrap();
        let index = parameters.iter().position(|parameter| parameter.name == name).unwrap();
        let value = (value * f64::from(parameters[index].unit)).round();
        self.order(&format!("set {index} {value}"))
    }

    /// A connection in congestion avoidance.
    fn at(&mut self, window: u32) -> &mut Self {
        self.order(&format!("start {window} {window}"))
    }

    /// A round trip: acknowledgements for the whole window, two segments each as most receivers do.
    fn round_trip(&mut self, rtt_us: u32) -> &mut Self {
        self.order(&format!("trip {rtt_us}"))
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn close(what: &str, value: f64, expected: f64, by: f64) {
    assert!((value - expected).abs() <= by, "{what}: {value}, expected {expected} within {by}");
}

#[test]
fn every_stack_starts_slowly_and_only_with_a_window_that_is_used() {
    for name in ["aimd", "scalable", "highspeed", "htcp", "fast"] {
        let mut flow = Flow::of(name);
        flow.order("start 10 0");
        assert_eq!(flow.round_trip(10_000).window, 20, "{name} doubles in a round trip (RFC 5681)");
        flow.order("start 100 100").order("used 0");
        assert_eq!(flow.round_trip(10_000).window, 100, "{name} keeps a window that is not used");
        flow.order("used 1").order("start 100 100").order("loss");
        assert!(flow.window < 100, "{name}");
        assert_eq!(flow.order("undo").window, 100, "{name} comes back from a loss that was none");
        // Two segments are the minimum (RFC 5681).
        flow.order("start 2 2");
        assert_eq!(flow.order("loss").window, 2, "{name}");
    }
}

#[test]
fn aimd_adds_a_and_gives_up_b() {
    let mut flow = Flow::of("aimd");
    flow.set("a", 2.5).set("b", 0.3).at(400);
    for _ in 0..40 {
        flow.round_trip(1_000);
    }
    // Each round trip adds a/w for each segment of its initial window w.
    let mut model = 400.0_f64;
    for _ in 0..40 {
        let before = model.floor();
        let mut left = before;
        while left > 0.0 {
            model += 2.5 / model.floor();
            left -= 1.0;
        }
    }
    close("after 40 round trips", flow.window.into(), model, 1.0);
    let before = flow.window;
    assert_eq!(flow.order("loss").window, before - before * 3 / 10);
}

#[test]
fn scalable_recovers_in_the_same_time_at_every_window() {
    let mut flow = Flow::of("scalable");
    // Kelly, section 3: log(1 / (1 - b)) / log(1 + a) round trips.
    let expected = (1.0_f64 / 0.875).ln() / 1.01_f64.ln();
    close("the paper's", expected, 13.4, 0.05);
    for window in [200, 1_000, 10_000, 40_000] {
        flow.at(window).order("loss");
        assert_eq!(flow.window, window - window / 8);
        let mut trips = 0;
        while flow.window < window {
            flow.round_trip(1_000);
            trips += 1;
        }
        // Whole segments and whole round trips.
        close(&format!("round trips at {window}"), f64::from(trips), expected, 1.5);
    }
    // Up to the legacy window it equals Reno.
    assert_eq!(flow.at(16).round_trip(1_000).window, 17);
    assert_eq!(flow.at(16).order("loss").window, 8);
}

/// The equations of RFC 3649, section 5: b(w) and a(w) for the window w above 38.
fn rfc3649(w: f64) -> (f64, f64) {
    let b = (0.1 - 0.5) * (w.ln() - 38_f64.ln()) / (83_000_f64.ln() - 38_f64.ln()) + 0.5;
    let p = 0.078 / w.powf(1.2);
    (w * w * p * 2.0 * b / (2.0 - b), b)
}

#[test]
fn highspeed_follows_the_table_which_follows_the_equations() {
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/rfc3649.h")).unwrap();
    let rows: Vec<(u32, f64)> = header
        .split('{')
        .filter_map(|row| {
            let (window, b) = row.split('}').next()?.split_once(',')?;
            Some((window.trim().parse().ok()?, b.trim().parse::<f64>().ok()? / 100.0))
        })
        .collect();
    assert_eq!(rows.len(), 73);
    let mut flow = Flow::of("highspeed");
    for (index, (window, b)) in rows.iter().enumerate() {
        let a = index as u32 + 1;
        let (exact_a, exact_b) = rfc3649(f64::from(*window));
        // The paper prints two digits, and the window is the first whole one at which a(w) has grown by one.
        close(&format!("a({window})"), exact_a, f64::from(a), 0.06);
        close(&format!("b({window})"), exact_b, *b, 0.0061);
        // In the middle of the row, so that a round trip stays within it.
        let inside = rows.get(index + 1).map_or(window + 500, |next| (window + next.0) / 2);
        let grown = flow.at(inside).round_trip(1_000).round_trip(1_000).round_trip(1_000).window - inside;
        // A fraction may still be pending.
        assert!((3 * a - 1..=3 * a).contains(&grown), "the increase at {inside}: {grown} in three round trips");
        let left = inside - (f64::from(inside) * b + 1e-9) as u32;
        assert_eq!(flow.at(inside).order("loss").window, left, "what is left of {inside}");
    }
    assert_eq!(flow.at(30).round_trip(1_000).window, 31, "Reno below 38");
    assert_eq!(flow.at(30).order("loss").window, 15);
    // RFC 3742: from max_ssthresh on at most half of it in a round trip.
    flow.set("max_ssth", 100.0).order("start 60 0");
    assert_eq!(flow.round_trip(1_000).window, 102 + 9, "doubles, but above 100 adds half of what is acknowledged");
    for _ in 0..20 {
        let before = flow.window;
        let grown = flow.round_trip(1_000).window - before;
        assert!((40..=50).contains(&grown), "{before} + {grown}");
    }
}

#[test]
fn highspeed_takes_its_knobs_from_the_rule_of_the_destination() {
    let any = ["0"; 8].join(" ");
    // 192.0.2.0/24 as words in memory.
    let words = |bytes: [u8; 4]| format!("{:x}", u32::from_ne_bytes(bytes));
    let mapped = words([0, 0, 255, 255]);
    let net = format!("0 0 {mapped} {} {1} {1} {1} {2}", words([192, 0, 2, 0]), "ffffffff", words([255, 255, 255, 0]));
    // Port 5001; buffers 1 MiB and 64 KiB; increase 6, decrease 0.3; no table; a full local queue is no loss; divided.
    let rule = format!("rule 0 1 {any} {net} 0 1389 100000 10000 1770 12c 0 0 1 1");
    let mut flow = Flow::of("highspeed");
    flow.order(&rule);
    let to = |last: &str, port| format!("ends 2 {}0a000001 40000 {}{last} {port}", "0".repeat(24), "0".repeat(24));
    flow.order(&to("c0000207", 5_001)).at(1_000);
    assert_eq!(flow.calls, "1:7=1048576 1:8=65536");
    assert_eq!(flow.round_trip(1_000).round_trip(1_000).window, 1_011, "6 in each, and a fraction waits");
    assert_eq!(flow.at(1_000).order("loss").window, 700);
    // Now two connections count as open, since none was closed.
    assert_eq!(flow.at(1_000).calls, "1:7=349525 1:8=21845", "three share");
    flow.order("release").order("release");
    // A drop of this host's own queue is not a loss; a mark of the network is one.
    assert_eq!(flow.at(1_000).order("local").window, 1_000);
    assert_eq!(flow.at(1_000).order("marked").window, 700);
    assert_eq!(flow.order("start 1000 0").order("local").ssthresh, NO_SSTHRESH, "slow start goes on");
    // Another port, another network: the table.
    for elsewhere in [to("c0000207", 5_002), to("c0000307", 5_001)] {
        flow.order(&elsewhere).at(1_000);
        assert_eq!(flow.calls, "");
        assert_eq!(flow.order("loss").window, 660, "b(1000) = 0.34");
        assert_eq!(flow.at(1_000).order("local").window, 660);
    }
}

/// FAST by section IV of the paper, in real numbers: w <- min(2w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha(w, queue))) once in a
/// round trip, with RTT averaged by the weight min(3 / w, 1 / 4) for each acknowledged segment. What the paper leaves open is as
/// the head of `fast.bpf.c` says.
struct Fast {
    alpha: f64,
    gamma: f64,
    mi: f64,
    w: f64,
    /// µs: averaged; smallest of all; smallest of this round trip.
    rtt: Option<f64>,
    base: f64,
    round: f64,
    /// Segments sent and acknowledged in all, and how many end this round trip.
    sent: f64,
    acked: f64,
    end: f64,
}

impl Fast {
    fn of(alpha: f64, gamma: f64, mi: f64, w: u32) -> Self {
        let w = f64::from(w);
        let none = f64::INFINITY;
        Self { alpha, gamma, mi, w, rtt: None, base: none, round: none, sent: w, acked: 0.0, end: w }
    }

    fn ack(&mut self, segments: u32, rtt: f64) {
        let segments = f64::from(segments);
        self.acked += segments;
        self.base = self.base.min(rtt);
        self.round = self.round.min(rtt);
        let weight = (3.0 * segments / self.w).min(0.25);
        let average = self.rtt.map_or(rtt, |old| old + weight * (rtt - old));
        self.rtt = Some(average);
        if self.acked >= self.end {
            let queue = self.w * (1.0 - self.base / self.round);
            let alpha = if queue < self.alpha / 8.0 { self.alpha.max(self.mi * self.w) } else { self.alpha };
            let aim = self.base / average * self.w + alpha;
            self.w = (2.0 * self.w).min((1.0 - self.gamma) * self.w + self.gamma * aim);
            (self.end, self.round) = (self.sent, f64::INFINITY);
        }
        self.sent = self.acked + self.w.round();
    }
}

#[test]
fn fast_moves_by_its_equation_once_in_a_round_trip() {
    let mut flow = Flow::of("fast");
    // The queue comes and goes, in a few round trips and in one.
    let parts = [1.0, 1.0, 1.0, 1.0, 1.05, 1.1, 1.2, 1.6, 1.6, 1.3, 1.9, 1.2, 1.0, 1.0, 1.5, 2.5, 2.5, 1.4, 1.4, 1.4];
    let mut doubled = 0;
    // The last is acknowledged a window at a time, so that the averaged RTT changes by a quarter.
    for (alpha, gamma, mi, window, base, at_once) in [
        (200.0, 0.5, 0.125, 2_000, 100_000.0, 2),
        (50.0, 0.3, 0.25, 3_000, 40_000.0, 2),
        (800.0, 1.0, 0.0, 100, 10_000.0, 2),
        (30.0, 0.05, 1.0, 600, 1_000.0, 2),
        (100.0, 0.7, 0.125, 500, 20_000.0, u32::MAX),
    ] {
        flow.set("alpha", alpha).set("gamma", gamma).set("mi", mi).at(window);
        let mut model = Fast::of(alpha, gamma, mi, window);
        for (trip, part) in parts.iter().cycle().take(60).enumerate() {
            let rtt = f64::round(base * part);
            let before = flow.window;
            let mut left = before;
            while left > 0 {
                let segments = left.min(at_once);
                model.ack(segments, rtt);
                left -= segments;
            }
            flow.order(&if at_once == 2 { format!("trip {rtt}") } else { format!("ack {before} {rtt}") });
            // Whole segments: queue and aim are cut to them, the window is rounded.
            let what = format!("alpha {alpha}, gamma {gamma}, trip {trip}, {before} at {rtt} us");
            close(&what, flow.window.into(), model.w, 1.6);
            doubled += usize::from(flow.window == 2 * before);
            // Each step separately; the averaged RTT continues.
            model.w = flow.window.into();
        }
    }
    assert!(doubled >= 2, "no step was as large as the equation lets it be");
}

#[test]
fn fast_keeps_alpha_in_the_queue_of_a_link() {
    // A link of 10 segments in a ms behind 50 ms: what the window has beyond 500 waits, 100 us each.
    let mut flow = Flow::of("fast");
    flow.set("alpha", 80.0).order("start 10 0");
    let mut most = 0;
    for _ in 0..400 {
        let queued = flow.window.saturating_sub(500);
        flow.round_trip(50_000 + 100 * queued);
        most = most.max(flow.window);
    }
    close("the queue", f64::from(flow.window) - 500.0, 80.0, 3.0);
    assert!(most < 1_200, "slow start went to {most} where 500 fill the path");
    // After a loss: half, and back without waiting for hundreds of round trips.
    flow.order("loss");
    let mut trips = 0;
    while flow.window < 560 {
        let queued = flow.window.saturating_sub(500);
        flow.round_trip(50_000 + 100 * queued);
        trips += 1;
        assert!(trips < 60, "{}", flow.window);
    }
    // A given base RTT is not measured.
    flow.set("base_us", 40_000.0).order("start 580 580");
    for _ in 0..400 {
        let queued = flow.window.saturating_sub(500);
        flow.round_trip(50_000 + 100 * queued);
    }
    // w (1 - 40 / rtt) = alpha, where rtt is 50 ms as long as w is below 500: w = 80 / 0.2.
    close("with too small a base RTT", flow.window.into(), 400.0, 5.0);
}

#[test]
fn htcp_grows_with_the_time_since_the_last_loss() {
    // Leith and Shorten: alpha(D) = 1 up to 1 s, then 1 + 10 (D - 1) + ((D - 1) / 2)^2; times 2 (1 - beta).
    let alpha = |d: f64| if d <= 1.0 { 1.0 } else { 1.0 + 10.0 * (d - 1.0) + ((d - 1.0) / 2.0).powi(2) };
    let mut flow = Flow::of("htcp");
    flow.at(4_000).order("loss");
    assert_eq!(flow.window, 2_000, "half where the throughput before is not known");
    let mut model = 2_000.0;
    for trip in 1..=100 {
        flow.round_trip(100_000);
        // beta = 0.5, so that the factor is 1; the fraction of a segment is kept.
        model += alpha(f64::from(trip) / 10.0);
        close(&format!("after {trip} round trips"), flow.window.into(), model, 0.01 * (model - 2_000.0) + 2.0);
    }
}

#[test]
fn htcp_backs_off_by_the_queue_unless_the_throughput_changed() {
    let mut flow = Flow::of("htcp");
    // Throughput is counted over round trips of a steady window; RTTs from 100 to 140 ms: beta = 100 / 140.
    let steady = |flow: &mut Flow, window: u32| {
        flow.order("used 0");
        flow.order("ack 1 100000");
        for _ in 0..20 {
            flow.order("time 140000").order(&format!("ack {window} 140000"));
        }
        flow.order("used 1");
    };
    flow.order("start 1000 1000");
    steady(&mut flow, 1_000);
    flow.order("loss");
    assert_eq!(flow.window, 500, "the first loss knows no throughput before");
    steady(&mut flow, 1_000);
    let before = flow.window;
    flow.order("loss");
    close("beta", f64::from(flow.window) / f64::from(before), 100.0 / 140.0, 0.005);
    // Half of the throughput: more than a fifth less.
    steady(&mut flow, 500);
    let before = flow.window;
    flow.order("loss");
    close("beta after a change", f64::from(flow.window) / f64::from(before), 0.5, 0.005);
}

#[test]
fn htcp_restores_its_state_after_a_spurious_loss() {
    let mut flow = Flow::of("htcp");
    // Round trips of a steady window at RTTs from 100 ms on.
    let steady = |flow: &mut Flow, segments: u32, rtt_us: u32| {
        flow.order("used 0").order("ack 1 100000");
        for _ in 0..20 {
            flow.order(&format!("time {rtt_us}")).order(&format!("ack {segments} {rtt_us}"));
        }
        flow.order("used 1");
    };
    let left = |flow: &mut Flow| {
        let before = flow.window;
        f64::from(flow.order("loss").window) / f64::from(before)
    };
    flow.order("start 1000 1000");
    steady(&mut flow, 1_000, 140_000);
    flow.order("loss");
    // The largest RTT, and the growth by the time since that loss: 2.8 s.
    steady(&mut flow, 1_000, 140_000);
    let before = flow.window;
    let grown = flow.round_trip(100_000).window - before;
    assert!(grown > 10, "{grown}");
    flow.order("loss");
    let before = flow.order("undo").window;
    let again = flow.round_trip(100_000).window - before;
    assert!(again + 1 >= grown, "{again} in a round trip, where {grown} were before");
    steady(&mut flow, 1_000, 120_000);
    close("beta by the RTTs of the whole time", left(&mut flow), 100.0 / 140.0, 0.005);
    // But the RTTs since then count too.
    steady(&mut flow, 1_000, 120_000);
    flow.order("loss").order("ack 1 150000").order("undo");
    steady(&mut flow, 1_000, 120_000);
    close("beta by RTTs after it", left(&mut flow), 100.0 / 150.0, 0.005);
    // The throughput before is that at the last congestion, not that at what was none.
    steady(&mut flow, 500, 120_000);
    flow.order("loss").order("undo");
    steady(&mut flow, 500, 120_000);
    close("beta where the throughput has changed", left(&mut flow), 0.5, 0.005);
}

#[test]
fn the_stack_of_the_manual_backs_off_less_without_a_queue() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("mine.bpf.c");
    std::fs::write(&source, manual::example()).unwrap();
    let mut flow = Flow::from("mine", &source);
    assert_eq!(flow.at(1_000).round_trip(40_000).round_trip(40_000).window, 1_002);
    assert_eq!(flow.order("loss").window, 1_002 - 100);
    flow.at(1_000).round_trip(40_000).round_trip(60_000);
    assert_eq!(flow.order("loss").window, 1_002 - 330);
}

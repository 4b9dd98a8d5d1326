//! The same loopback path by `thru` and by other people's programs, in turn.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use program::peers::{free_port, iperf3};
use program::process::eventually;
use program::{Agent, Running, Sandbox, skip, thorough};

/// Rounds in which each program measures once: at least so many, and more while the best ones do not agree.
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=40;

/// How far the best rounds may be apart.
///
/// Both programs move the same bytes through the same kernel over the same loopback with blocks of one size, and their two
/// ends sit on the same two cores; on a quiet machine they are within some 10 % of each other. The cores may be shared with
/// strangers, who can take half of one for whole rounds. Such a disturbance only ever slows a round down, so each side is
/// judged by its best of interleaved rounds, and further rounds can only bring the two closer to what the path gives. What
/// the tests are there to find stays apart however many rounds there are: bytes taken for bits are a factor of 8, half a
/// round trip taken for a whole one (or the rate that NetPIPE makes of it) is 2, and a rate over what the sender's buffer
/// took is any factor with short trials.
const FACTOR: f64 = 1.8;

/// One at a time: each pair of programs needs all of a small machine. Between tests of their own processes
/// .config/nextest.toml does this.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the near and the far end run: left to the kernel, the placement alone moves a round trip by a factor of three.
fn cores() -> [&'static str; 2] {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores > 1 { ["0", "1"] } else { ["0", "0"] }
}

/// The better of two values: the higher rate, the shorter time.
type Best = fn(f64, f64) -> f64;

/// Lets `round` measure ours and theirs, a list of figures each, until the best of each figure agree.
fn assert_agree(what: &str, figures: &[(&str, Best)], mut round: impl FnMut() -> [Vec<f64>; 2]) {
    let mut best: Option<[Vec<f64>; 2]> = None;
    let mut said = String::new();
    for count in 1..=*ROUNDS.end() {
        let fresh = round();
        let best = best.get_or_insert_with(|| fresh.clone());
        for (kept, new) in best.iter_mut().zip(&fresh) {
            for ((kept, new), (_, better)) in kept.iter_mut().zip(new).zip(figures) {
                *kept = better(*kept, *new);
            }
        }
        let ratios: Vec<f64> = best[0].iter().zip(&best[1]).map(|(ours, theirs)| ours / theirs).collect();
        let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
        said = format!("{what} ({}), best of {count}: ratios {ratios:.2?}, ours and theirs {best:?}", names.join(", "));
        if count >= *ROUNDS.start() && ratios.iter().all(|ratio| (1.0 / FACTOR..FACTOR).contains(ratio)) {
            println!("{said}");
            return;
        }
    }
    panic!("{said}");
}

#[test]
fn goodput_agrees_with_iperf3() {
    if !skip::program("goodput_agrees_with_iperf3", "iperf3", "iperf3") {
        return;
    }
    let _alone = alone();
    let (agent, sandbox, port, [near, far]) = (Agent::start(), Sandbox::new(), free_port(), cores());
    let pin = format!("{near},{far}");
    let _server = iperf3(&port, &["--bind", "127.0.0.1"]);
    // How several flows get on with each other is the tool's own doing (iperf3 has one thread for all before 3.16); at a rate
    // that both keep they agree, or one of them adds up wrongly.
    let one: [&[&str]; 2] = [&["--flows", "1"], &["--parallel", "1"]];
    let four: [&[&str]; 2] =
        [&["--flows", "4", "--reverse", "--rate", "400M"], &["--parallel", "4", "--reverse", "--bitrate", "100M"]];
    for [ours, theirs] in [one, four] {
        assert_agree(&ours.join(" "), &[("goodput in bit/s", f64::max)], || {
            let stream = ["stream", "--time", "1s", "--trials", "1", "--pin", &pin, agent.host()];
            let ours = sandbox.measure(&[&stream[..], ours].concat()).goodput();
            let client = ["--client", "127.0.0.1", "--port", &port, "--json", "--time", "1", "--length", "128K"];
            let said = sandbox.tool("iperf3", &[&client[..], &["--affinity", &pin], theirs].concat()).ok();
            let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
            let theirs = json.pointer("/end/sum_received/bits_per_second").and_then(serde_json::Value::as_f64).unwrap();
            [vec![ours], vec![theirs]]
        });
    }
}

#[test]
fn round_trips_and_their_rates_agree_with_netpipe() {
    let test = "round_trips_and_their_rates_agree_with_netpipe";
    if !skip::program(test, "NPtcp", "netpipe-tcp") || !skip::program(test, "taskset", "util-linux") {
        return;
    }
    let _alone = alone();
    let (agent, sandbox, [near, far]) = (Agent::start(), Sandbox::new(), cores());
    let pin = format!("{near},{far}");
    // One size is enough to see that the two agree; the others are other parts of the curve.
    for block in if thorough() { &["1", "4096", "131072"][..] } else { &["4096"] } {
        let figures: [(&str, Best); 2] = [("rate in Mbps", f64::max), ("half a round trip in s", f64::min)];
        assert_agree(&format!("NetPIPE's blocks of {block} B"), &figures, || {
            let sizes = ["curve", "--first", block, "--to", block, "--perturbation", "0", "--no-ceiling"];
            let rest = ["--trials", "20", "--pin", &pin, "--np", "ours.out", "--quiet", agent.host()];
            sandbox.run(&[&sizes[..], &rest].concat()).ok();
            netpipe(&sandbox, block, [near, far]);
            ["ours.out", "theirs.out"].map(|name| np_row(&sandbox, name)[1..].to_vec())
        });
    }
}

/// Runs NPtcp against itself over loopback with one block size and leaves its output in `theirs.out`.
fn netpipe(sandbox: &Sandbox, block: &str, [near, far]: [&str; 2]) {
    let port = free_port();
    let start = |core: &str, args: &[&str]| {
        let mut command = Command::new("taskset");
        // Trials of its own choice last a quarter of a second, which no program has a busy core for.
        command
            .args(["--cpu-list", core, "NPtcp", "-P", &port, "-l", block, "-u", block, "-p", "0", "-n", "50"])
            .args(args);
        command.current_dir(sandbox.path(""));
        Running::of(command)
    };
    let receiver = start(far, &["-o", "receiver.out"]);
    let hexadecimal = format!(":{:04X} ", port.parse::<u16>().unwrap());
    eventually("NPtcp listens", || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        // State 0A is LISTEN (proc(5)).
        sockets.lines().any(|line| line.contains(&hexadecimal) && line.contains(" 0A "))
    });
    start(near, &["-h", "127.0.0.1", "-o", "theirs.out"]).wait_at_most(Duration::from_secs(60)).ok();
    let _ = receiver.wait_at_most(Duration::from_secs(60));
}

/// The one line of an np.out: bytes, Mbps (2^20 bit/s), seconds of half a round trip.
fn np_row(sandbox: &Sandbox, name: &str) -> [f64; 3] {
    let text = std::fs::read_to_string(sandbox.path(name)).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("one line of three columns in {name}:\n{text}"))
}

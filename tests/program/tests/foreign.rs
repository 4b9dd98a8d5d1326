//! The same loopback path by `thru` and by other people's programs, in turn.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::net::TcpListener;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use program::process::{Process, eventually};
use program::{Agent, Desk, Running, skip};

/// Rounds in which each program measures once.
const ROUNDS: usize = 5;

/// How far the best rounds may be apart.
///
/// Both programs move the same bytes through the same kernel over the same loopback with blocks of one size, and their two
/// ends sit on the same two cores; on a quiet machine they are within some 20 % of each other. The cores may be shared with
/// strangers, who can take half of one for whole rounds. Such a disturbance only ever slows a round down, so each side is
/// judged by its best of five interleaved rounds, and what is left of the weather fits in this factor. What the tests are there
/// to find does not: bytes taken for bits are a factor of 8, half a round trip taken for a whole one (or the rate that
/// NetPIPE makes of it) is 2, and a rate over what the sender's buffer took is any factor with short trials.
const FACTOR: f64 = 1.8;

/// One at a time: each pair of programs needs all of a small machine.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the near and the far end run: left to the kernel, the placement alone moves a round trip by a factor of three.
fn cores() -> [&'static str; 2] {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores > 1 { ["0", "1"] } else { ["0", "0"] }
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// `best` picks the better of two values: the higher rate, the shorter time.
fn assert_agree(what: &str, best: fn(f64, f64) -> f64, ours: &[f64], theirs: &[f64]) {
    let of = |values: &[f64]| values.iter().copied().reduce(best).unwrap();
    let ratio = of(ours) / of(theirs);
    let all = format!("{what}: ratio {ratio:.2}; ours {ours:.3?}, theirs {theirs:.3?}");
    println!("{all}");
    assert!((1.0 / FACTOR..FACTOR).contains(&ratio), "{all}");
}

#[test]
fn goodput_agrees_with_iperf3() {
    if !skip::program("goodput_agrees_with_iperf3", "iperf3", "iperf3") {
        return;
    }
    let _alone = alone();
    let (agent, desk, port, [near, far]) = (Agent::start(), Desk::new(), free_port(), cores());
    let pin = format!("{near},{far}");
    let mut command = Command::new("iperf3");
    command.args(["--server", "--bind", "127.0.0.1", "--port", &port, "--forceflush"]);
    let server = Process::spawn(command);
    eventually("iperf3 listens", || server.stdout().contains("Server listening"));
    for (flow, reverse) in [("1", false), ("4", true)] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let way: &[&str] = if reverse { &["--reverse"] } else { &[] };
            let stream = ["stream", "--time", "1s", "--trials", "1", "--flows", flow, "--pin", &pin, agent.host()];
            ours.push(desk.measure(&[&stream, way].concat()).goodput());
            let client = ["--client", "127.0.0.1", "--port", &port, "--json", "--time", "1", "--length", "128K"];
            let said =
                desk.tool("iperf3", &[&client[..], &["--parallel", flow, "--affinity", &pin], way].concat()).ok();
            let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
            theirs.push(json.pointer("/end/sum_received/bits_per_second").and_then(serde_json::Value::as_f64).unwrap());
        }
        assert_agree(&format!("goodput of {flow} flows, reverse {reverse}, in bit/s"), f64::max, &ours, &theirs);
    }
}

#[test]
fn round_trips_and_their_rates_agree_with_netpipe() {
    let test = "round_trips_and_their_rates_agree_with_netpipe";
    if !skip::program(test, "NPtcp", "netpipe-tcp") || !skip::program(test, "taskset", "util-linux") {
        return;
    }
    let _alone = alone();
    let (agent, desk, [near, far]) = (Agent::start(), Desk::new(), cores());
    let pin = format!("{near},{far}");
    for block in ["1", "4096", "131072"] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let sizes = ["curve", "--first", block, "--to", block, "--perturbation", "0", "--no-ceiling"];
            let rest = ["--trials", "20", "--pin", &pin, "--np", "ours.out", "--quiet", agent.host()];
            desk.run(&[&sizes[..], &rest].concat()).ok();
            ours.push(np_row(&desk, "ours.out"));
            netpipe(&desk, block, [near, far]);
            theirs.push(np_row(&desk, "theirs.out"));
        }
        for (column, what, best) in [(1, "rate in Mbps", f64::max as fn(f64, f64) -> f64), (2, "time in s", f64::min)] {
            let values = |rows: &[[f64; 3]]| rows.iter().map(|row| row[column]).collect::<Vec<_>>();
            assert_agree(&format!("NetPIPE's {what} with blocks of {block} B"), best, &values(&ours), &values(&theirs));
        }
    }
}

/// Runs NPtcp against itself over loopback with one block size and leaves its output in `theirs.out`.
fn netpipe(desk: &Desk, block: &str, [near, far]: [&str; 2]) {
    let port = free_port();
    let start = |core: &str, args: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", core, "NPtcp", "-P", &port, "-l", block, "-u", block, "-p", "0"]).args(args);
        command.current_dir(desk.path(""));
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
fn np_row(desk: &Desk, name: &str) -> [f64; 3] {
    let text = std::fs::read_to_string(desk.path(name)).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("one line of three columns in {name}:\n{text}"))
}

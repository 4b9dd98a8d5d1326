//! netperf between our own ends, and flent's rrul against our server: four streams each way and three series of round trips over UDP at the same time, each with
//! its own mark, and ping beside them. No netperf is in Debian 12: in its place stands a script that calls `thru --speak netperf` with what
//! flent asks for, and prints `--as netperf-k`, which flent has to read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use program::peers::free_port;
use program::process::eventually;
use program::skip::skip;
use program::{Agent, Running, Sandbox, binary};

/// netperf's words as flent writes them, in ours. Without a test it is asked which options it has.
const NETPERF: &str = "#!/bin/sh
tos=0
while [ $# -gt 0 ] && [ \"$1\" != -- ]; do
    case $1 in
    -t) test=$2; shift ;;
    -H) host=$2; shift ;;
    -p) port=$2; shift ;;
    -l) seconds=$2; shift ;;
    -Y) tos=$((${2%,*})); shift ;;
    -P | -v | -F | -f) shift ;;
    esac
    shift
done
case $test in
TCP_STREAM) set -- stream --interval 200ms ;;
TCP_MAERTS) set -- stream --interval 200ms --reverse ;;
UDP_RR) set -- rr --udp ;;
*) exec sleep 1 ;;
esac
exec \"$THRU\" \"$@\" \"$host:$port\" --speak netperf --time \"${seconds}s\" --trials 1 --dscp $((tos >> 2)) --no-store --as netperf-k
";

/// The marks of rrul's streams: CS0, CS1, CS5 and EF.
const MARKS: [u32; 4] = [0, 0x20, 0xa0, 0xb8];

#[test]
fn both_directions_between_our_own_ends() {
    let (sandbox, port) = (Sandbox::new(), free_port());
    let agent = Agent::with(&["--speak", &format!("netperf={port}")]);
    let host = format!("127.0.0.1:{port}");
    let brief = ["--speak", "netperf", "--time", "200ms", "--trials", "1", "--quiet"];
    let doc = sandbox.measure(&[&["stream", &host][..], &brief].concat());
    let trial = &doc.trials()[0];
    assert!(doc.goodput() > 0.0 && trial.ledger.balanced, "{trial:?}");
    assert_eq!(trial.near.bytes_sent, trial.far.bytes_received);
    assert_eq!(doc.run.header.tool.far_version, "netserver 2.6 or 2.7");
    let doc = sandbox.measure(&[&["rr", &host][..], &brief].concat());
    let trial = &doc.trials()[0];
    assert!(trial.ledger.balanced && trial.near.rtt.is_some() && trial.far.bytes_received > 0, "{trial:?}");
    eventually("the agent tells of both", || agent.log().contains("netperf measures tcp rr"));
    let wrong = sandbox.run(&["stream", &host, "--speak", "netperf", "--both", "--count", "9"]).ended_with(2).message();
    assert!(wrong.contains("a count with several flows with netperf"), "{wrong}");
    // Each flow in each direction is a test of its own, and the machine has one place.
    let whole = ["--speak", "netperf", "--time", "1s", "--trials", "1", "--both", "--flows", "2", "--quiet"];
    let refused = sandbox.run(&[&["stream", &host][..], &whole].concat());
    assert!(refused.message().contains("the server refused with error 16"), "{}", refused.stderr);
    let (sandbox, port) = (Sandbox::new(), free_port());
    let _agent = Agent::with(&["--speak", &format!("netperf={port}"), "--concurrent", "4"]);
    let host = format!("127.0.0.1:{port}");
    let doc = sandbox.measure(&[&["stream", &host][..], &whole].concat());
    let trial = &doc.trials()[0];
    assert!(trial.ledger.balanced && trial.far.flows.len() == 4, "{trial:?}");
    for end in [&trial.near, &trial.far] {
        assert!(end.bytes_sent > 0 && end.bytes_received > 0, "{trial:?}");
    }
    let base = ["stream", &host, "--speak", "netperf", "--quiet", "--reverse", "--time", "2s"];
    let doc = sandbox.measure(&[&base[..], &["--warmup", "1s", "--trials", "1"]].concat());
    let measured = doc.trials()[0].near.measured.unwrap();
    assert!(measured.bytes > 0 && measured.bytes < doc.trials()[0].near.bytes_received, "{measured:?}");
}

struct TestBed {
    sandbox: Sandbox,
    agent: Agent,
    port: String,
}

impl TestBed {
    fn new() -> Self {
        let port = free_port();
        let agent = Agent::with(&["--speak", &format!("netperf={port}"), "--concurrent", "16", "--max-clients", "32"]);
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("netperf"), NETPERF).unwrap();
        std::fs::set_permissions(sandbox.path("netperf"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { sandbox, agent, port }
    }

    fn command(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap();
        command.current_dir(self.sandbox.path("")).env("THRU", binary::thru());
        command.env("PATH", format!("{}:{path}", self.sandbox.path("").display()));
        command
    }

    /// One of rrul's tests in flent's words.
    fn netperf(&self, test: &str, mark: u32) -> Running {
        let mut command = self.command(self.sandbox.path("netperf"));
        let marking = format!("{mark:#x},{mark:#x}");
        command.args(["-P", "0", "-v", "0", "-D", "-0.20", "-4", "-Y", &marking, "-H", "127.0.0.1", "-p", &self.port]);
        command.args([
            "-t",
            test,
            "-l",
            "1",
            "-F",
            "/dev/urandom",
            "-f",
            "m",
            "--",
            "-H",
            "127.0.0.1",
            "-k",
            "THROUGHPUT",
        ]);
        Running::of(command)
    }
}

#[test]
fn all_of_rruls_tests_at_once() {
    let bench = TestBed::new();
    let streams = |test| MARKS.map(|mark| (test, mark));
    let set =
        [&streams("TCP_STREAM")[..], &streams("TCP_MAERTS"), &[("UDP_RR", 0xb8), ("UDP_RR", 0x20), ("UDP_RR", 0)]];
    let running: Vec<_> =
        set.concat().into_iter().map(|(test, mark)| (test, mark, bench.netperf(test, mark))).collect();
    for (test, mark, one) in running {
        let said = one.wait().ok().stdout;
        let value =
            |key: &str| said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned);
        let number = |key: &str| value(key).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        assert!(number("THROUGHPUT") > 1.0 && number("ELAPSED_TIME") > 0.5, "{test}: {said}");
        assert_eq!(value("REMOTE_SOCKET_TOS"), Some(format!("{mark:#04x}")), "{test}: {said}");
        assert!(said.contains("NETPERF_INTERIM_RESULT[0]="), "{test}: {said}");
        if test != "UDP_RR" {
            let [sent, received] = if test == "TCP_STREAM" {
                ["LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"]
            } else {
                ["REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD"]
            };
            assert!(number(received) > 0.0 && value(sent) == value(received), "{test}: {said}");
        }
    }
    let log = bench.agent.log();
    assert!(log.matches(" netperf measures ").count() == 11 && !log.contains("refused"), "{log}");
}

#[test]
fn flent_runs_rrul_and_reads_all() {
    let module = binary::workspace().join("target/python/flent");
    if !module.is_dir() {
        return skip("flent as judge", "the Python module flent is not there: scripts/setup.sh test");
    }
    let bench = TestBed::new();
    let mut flent = bench.command("python3".into());
    flent.env("PYTHONPATH", module.with_file_name(""));
    flent.args(["-c", "import flent; flent.run_flent()", "rrul", "-H", "127.0.0.1", "-l", "2", "-d", "1"]);
    flent.args(["--netperf-control-port", &bench.port, "-f", "summary", "-o", "summary.txt"]);
    let said = Running::of(flent).wait_at_most(Duration::from_secs(60)).ok();
    let summary = std::fs::read_to_string(bench.sandbox.path("summary.txt")).unwrap();
    for series in ["TCP upload", "TCP download"]
        .into_iter()
        .flat_map(|direction| ["BE", "BK", "CS5", "EF"].map(|mark| format!("{direction} {mark}")))
    {
        let line =
            summary.lines().find(|line| line.contains(&series)).unwrap_or_else(|| panic!("no {series}: {summary}"));
        assert!(line.contains("Mbits/s") && !line.contains("No data"), "{summary}{}", said.stderr);
    }
    for mark in ["BE", "BK", "EF"] {
        let line = summary.lines().find(|line| line.contains(&format!("UDP {mark}"))).unwrap();
        assert!(line.contains(" ms ") && !line.contains("No data"), "{summary}{}", said.stderr);
    }
    assert!(!bench.agent.log().contains("refused"), "{}", bench.agent.log());
}

//! Results in the words of other tools, read by this program's own readers and by one of the tools' users.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::Command;

use program::skip::skip;
use program::{Agent, Sandbox, binary};
use serde_json::{Value, json};

/// What iperf3-python makes of a document, as JSON.
const JUDGE: &str = "
import json, sys
from iperf3.iperf3 import TestResult
result = TestResult(open(sys.argv[1]).read())
keys = 'protocol num_streams blksize sent_bytes received_bytes received_bps reverse remote_port type error'.split()
print(json.dumps({key: getattr(result, key) for key in keys}))
";

#[test]
fn what_another_tool_would_print_is_read_by_its_readers() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let stream = ["stream", "--count", "500", "--trials", "3", "--block", "64KiB"];
    let text = sandbox.run(&[&stream[..], &["--as", "iperf3-json", agent.host()]].concat()).ok().stdout;
    let document: Value = serde_json::from_str(&text).expect("one JSON document");
    let doc = sandbox.run(&["show", "last", "--json"]).ok().doc();
    let summary = doc.summary();
    let end = &document["end"];
    assert_eq!(end["sum_sent"]["bytes"], json!(summary.bytes_sent), "{end}");
    assert_eq!(end["sum_received"]["bytes"], json!(summary.bytes_received), "{end}");
    assert!(end["cpu_utilization_percent"]["host_total"].as_f64().is_some_and(|percent| percent > 0.0), "{end}");
    assert!(end["sum_sent"]["retransmits"].is_u64(), "{end}");
    let intervals = document["intervals"].as_array().expect("intervals");
    let over_time: u64 = intervals.iter().filter_map(|interval| interval["sum"]["bytes"].as_u64()).sum();
    assert_eq!(json!(over_time), end["sum_sent"]["bytes"], "those of all trials");
    std::fs::write(sandbox.path("iperf3.json"), &text).unwrap();
    judge(&sandbox, &doc.run);

    let iperf3 = sandbox.run(&["show", "last", "--as", "iperf3"]).ok().stdout;
    let ends = |line: &str, end: &str| line.starts_with("[  5]") && line.trim_end().ends_with(end);
    assert_eq!(iperf3.lines().filter(|line| ends(line, "sender") || ends(line, "receiver")).count(), 2, "{iperf3}");
    assert!(iperf3.contains("[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"), "{iperf3}");

    // What is printed is imported again as the same rate: iperf3 divides the sums, netperf has the mean, nttcp
    // divides each trial's: they count what came with the first arrival.
    let trials = &doc.outcome().trials;
    let (bytes, ns) = trials
        .iter()
        .fold((0, 0), |(bytes, ns), trial| (bytes + trial.far.bytes_received, ns + trial.far.receiving_ns));
    let rate = |bytes: u64, ns: u64| bytes as f64 * 8e9 / ns as f64;
    let (whole, mean) = (rate(bytes, ns), summary.goodput_bps.unwrap());
    let first = rate(trials[0].far.bytes_received, trials[0].far.receiving_ns);
    let forms = [("iperf3-json", whole), ("netperf", mean), ("netperf-k", mean), ("nttcp", first), ("rapid", first)];
    for (form, expected) in forms {
        let file = format!("{form}.txt");
        sandbox.run(&["export", &doc.run.header.id, "--format", form, "-o", &file]).ok();
        sandbox.run(&["import", &file, "--name", form]).ok();
        let imported = sandbox.run(&["show", form, "--json"]).ok().doc();
        let value = imported.outcome().trials[0].value.unwrap();
        // netperf's last digit is 10 kbit/s.
        assert!((value / expected - 1.0).abs() < 1e-3, "{form}: {value} is not {expected}");
    }

    let rapid = sandbox.run(&["show", &doc.run.header.id, "--as", "rapid"]).ok().stdout;
    assert_eq!(rapid.matches("total amount transferred: 32768000.0 bytes\n").count(), 3, "{rapid}");

    let refused = sandbox.run(&["rr", "--as", "iperf3", "--trials", "1", "--time", "50ms", agent.host()]).ended_with(2);
    assert!(refused.message().contains("--as iperf3 cannot show the pattern rr"), "{}", refused.message());
    let rr = sandbox.run(&["rr", "--as", "netperf", "--trials", "1", "--time", "50ms", agent.host()]).ok().stdout;
    assert!(rr.starts_with("MIGRATED TCP REQUEST/RESPONSE TEST from "), "{rr}");
    let unknown = sandbox.run(&["show", "--as", "iperf4"]).ended_with(2);
    assert!(unknown.stderr.contains("iperf3-json"), "{}", unknown.stderr);
}

/// iperf3-python, where `make setup` (scripts/setup.sh) could install it.
fn judge(sandbox: &Sandbox, run: &model::Run) {
    let mut python = Command::new("python3");
    python
        .env("PYTHONPATH", binary::workspace().join("target/python"))
        .args(["-c", JUDGE])
        .arg(sandbox.path("iperf3.json"));
    let output = match python.output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError") => output,
        _ => {
            return skip(
                "iperf3-python as judge",
                "python3 with the module iperf3 is not there: scripts/setup.sh test",
            );
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outcome = &run.outcomes[0];
    assert_eq!((&read["protocol"], &read["type"], &read["error"]), (&"TCP".into(), &"client".into(), &Value::Null));
    assert_eq!(read["sent_bytes"], json!(outcome.summary.bytes_sent));
    assert_eq!(read["received_bytes"], json!(outcome.summary.bytes_received));
    assert_eq!((&read["blksize"], &read["num_streams"]), (&outcome.spec.block.into(), &outcome.spec.flows.into()));
    assert!(read["remote_port"].as_u64().is_some_and(|port| port > 0), "{read}");
}

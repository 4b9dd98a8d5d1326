//! `thru serve --metrics`: judged by the parser of Prometheus' own client, and within its bounds.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use program::{Agent, Sandbox, binary, eventually, skip};

/// An agent with an endpoint, and its address.
fn agent() -> (Agent, String) {
    let agent = Agent::with(&["--metrics", "127.0.0.1:0"]);
    let mut address = None;
    eventually("the endpoint listens", || {
        let log = agent.log();
        address = log.lines().find_map(|line| Some(line.split_once("http://")?.1.strip_suffix("/metrics")?.to_owned()));
        address.is_some()
    });
    (agent, address.unwrap())
}

/// What the endpoint answers to these bytes; nothing if it closes the connection.
fn ask(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A refused request may be cut off while it is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn scrape(address: &str) -> String {
    let request = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text\r\n\r\n";
    let answer = ask(address, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("application/openmetrics-text"), "{head}");
    body.to_owned()
}

/// The value of a sample.
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{sample} in {text}")).parse().unwrap()
}

const JUDGE: &str = r"
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
print(json.dumps({family.name: [family.type, len(family.samples)] for family in families}))
";

#[test]
fn an_agents_state_is_openmetrics() {
    let (agent, address) = agent();
    let before = scrape(&address);
    assert_eq!(
        (value(&before, "throughline_agent_measuring"), value(&before, "throughline_agent_trials_total")),
        (0.0, 0.0)
    );
    let sandbox = Sandbox::new();
    let doc = sandbox.measure(&["stream", "--time", "100ms", "--warmup", "0s", "--trials", "3", agent.host()]);
    let mut after = String::new();
    eventually("the agent is idle again", || {
        after = scrape(&address);
        value(&after, "throughline_agent_measuring") == 0.0 && value(&after, "throughline_agent_clients") == 0.0
    });
    let trials = &doc.outcome().trials;
    assert!(value(&after, "throughline_agent_trials_total") >= trials.len() as f64, "{after}");
    let received = "throughline_agent_payload_bytes_total{direction=\"received\"}";
    assert!(
        value(&after, received) >= trials.iter().map(|trial| trial.far.bytes_received as f64).sum::<f64>(),
        "{after}"
    );
    let rate = value(&after, "throughline_agent_last_trial_bits_per_second{direction=\"received\"}");
    let last = trials.iter().max_by_key(|trial| trial.pass).unwrap();
    assert!((rate / last.value.unwrap() - 1.0).abs() < 1e-6, "{rate} {:?}", last.value);
    assert!(value(&after, "throughline_host_interface_bytes_total{interface=\"lo\",direction=\"received\"}") > 0.0);
    assert!(!after.contains("127.0.0.1"), "no client is named");

    let mut python = Command::new("python3");
    python.env("PYTHONPATH", binary::workspace().join("target/python")).args(["-c", JUDGE]);
    let spawned = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let judged = spawned.and_then(|mut child| {
        child.stdin.take().unwrap().write_all(after.as_bytes()).ok();
        child.wait_with_output()
    });
    let output = match judged {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError") => output,
        _ => {
            let missing = "python3 with the module prometheus_client is not there: scripts/setup.sh test";
            return skip::skip("prometheus_client as judge", missing);
        }
    };
    assert!(output.status.success(), "{}\n{after}", String::from_utf8_lossy(&output.stderr));
    let families: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(families["throughline_agent"][0], "info");
    assert_eq!(families["throughline_agent_payload_bytes"], serde_json::json!(["counter", 2]));
    assert_eq!(families["throughline_host_cpu_seconds"][0], "counter");
}

#[test]
fn the_endpoint_reads_one_short_request() {
    let (agent, address) = agent();
    assert!(ask(&address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(&address, b"DELETE /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask(&address, &[b'a'; 100_000]).starts_with("HTTP/1.1 431 "), "too long");
    // Too slow, and none at all: closed without an answer.
    assert_eq!(ask(&address, b"GET /metrics HTTP/1.1\r\n"), "");
    // More connections than it keeps do not keep it from answering when they have timed out.
    let held: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    eventually("the endpoint answers again", || {
        ask(&address, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 ")
    });
    drop(held);
    assert!(agent.log().lines().count() < 20, "requests are not logged: {}", agent.log());
}

#[test]
fn without_the_flag_there_is_no_endpoint() {
    let agent = Agent::start();
    assert!(!agent.log().contains("/metrics"), "{}", agent.log());
}

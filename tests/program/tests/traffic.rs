//! `thru mesh --traffic`: hosts that send at the same time, and the collapse of a switch port with a small buffer.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;

use model::{FindingKind, FlowTally, Run, Verdict};
use program::{Doc, Finished, Sandbox, skip};

/// Hosts n1 to nN around a router, each with a link of 100 Mbit/s; the queue towards n1 has `queue`. However the test ends, the lab is
/// taken down.
struct Port {
    sandbox: Sandbox,
    name: String,
}

impl Port {
    fn new(hosts: usize, queue: &str) -> Self {
        let port =
            Self { sandbox: Sandbox::new(), name: format!("port-{}-{}", queue.to_lowercase(), std::process::id()) };
        // Both queues are emulated: a token bucket would pass the beginning of each burst at any rate.
        let link = |host: usize| {
            let queue = if host == 1 { format!("queue = \"{queue}\"\ndelay = \"50us\"\n") } else { String::new() };
            format!("[[link]]\nbetween = [\"n{host}\", \"port\"]\nrate = \"100Mbit\"\n{queue}")
        };
        let links: String = (1..=hosts).map(link).collect();
        let nodes = format!("[[host]]\nname = \"n\"\ncount = {hosts}\n[[router]]\nname = \"port\"\n");
        fs::write(port.sandbox.path("lab.toml"), nodes + &links).unwrap();
        fs::write(port.sandbox.path("fleet.toml"), format!("[[host]]\nname = \"n[1-{hosts}]\"\n")).unwrap();
        port.sandbox.run(&["lab", "up", "lab.toml", "--name", &port.name]).ok();
        // A timeout takes a second, which is long beside what a busy machine adds to a transfer.
        for host in 1..=hosts {
            port.on(host, &["sysctl", "-qw", "net.ipv4.tcp_rto_min_us=1000000"]).ok();
        }
        port
    }

    fn on(&self, host: usize, command: &[&str]) -> Finished {
        self.sandbox.run(&[&["lab", "exec", "--lab", &self.name, &format!("n{host}"), "--"], command].concat())
    }

    /// An incast into n1 of one sender and of all, with blocks of 256 KiB, and whether the emulator was on time. On a busy machine it may
    /// not have been; the outcomes and the exit code say so then.
    fn incast(&self, senders: usize) -> (Run, bool) {
        let senders = format!("1,{senders}");
        let mesh = ["thru", "mesh", "fleet.toml", "--traffic", "incast", "--to", "n1", "--transfer", "256KiB"];
        let flags = ["--senders", &senders, "--rounds", "8", "--set", "cc=cubic", "--json", "incast.json"];
        let ended = self.on(1, &[&mesh[..], &flags].concat());
        let run =
            Doc::try_parse(&fs::read_to_string(self.sandbox.path("incast.json")).unwrap()).expect(&ended.stderr).run;
        let late = run.outcomes.iter().any(|outcome| outcome.summary.verdicts.contains(&Verdict::EmulatorLate));
        ended.ended_with(if late { 8 } else { 0 });
        (run, !late)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _ = self.sandbox.command(&["lab", "down", &self.name]).output();
    }
}

/// The first sentence on the goodput, the time until all transfers of the largest step had ended in ns, and the flows that waited for a
/// retransmission timeout.
fn said(run: &Run) -> (String, f64, usize) {
    let mut found = run.findings.iter().filter(|finding| finding.kind == FindingKind::Traffic);
    let (found, ended) = (found.next().expect("the goodput"), found.next().expect("the completion times"));
    assert!(ended.statement.plain().contains("all transfers of 256 KiB ended within"), "{:?}", ended.statement);
    let all_ns = ended.estimate.as_ref().expect("a value").value;
    let flows = run.outcomes.iter().flat_map(|outcome| &outcome.trials).flat_map(|trial| &trial.near.flows);
    let waited = |flow: &&FlowTally| flow.tcp.last().and_then(|last| last.timeouts).is_some_and(|count| count > 0);
    (found.statement.clone().plain(), all_ns, flows.filter(waited).count())
}

/// What is said of the goodput of streams, for each kind of traffic with one host at an end, never exceeds the port.
#[test]
fn streams_never_carry_more_than_the_port() {
    let test = "streams_never_carry_more_than_the_port";
    if let Err(error) = lab::available() {
        return skip::skip(test, &error.to_string());
    }
    let port = Port::new(5, "64KiB");
    for kind in [["incast", "--to", "n1"], ["fan-out", "--from", "n1"]] {
        let mesh = [&["thru", "mesh", "fleet.toml", "--traffic"], &kind[..]].concat();
        let ended = port.on(1, &[&mesh[..], &["-t", "300ms", "--rounds", "3", "--json", "streams.json"]].concat());
        let text = fs::read_to_string(port.sandbox.path("streams.json")).expect(&ended.stderr);
        let run = Doc::try_parse(&text).expect(&ended.stderr).run;
        let found: Vec<f64> = run
            .findings
            .iter()
            .filter(|finding| finding.kind == FindingKind::Traffic)
            .filter_map(|finding| finding.estimate.as_ref().map(|estimate| estimate.value))
            .collect();
        assert!(!found.is_empty() && found.iter().all(|bps| *bps <= 100e6), "{kind:?}: {found:?} {:#?}", run.findings);
    }
}

/// With THRU_TRAFFIC_HOSTS=16 as scripts/test-long.sh runs it.
#[test]
fn a_port_with_a_small_buffer_collapses_under_incast_and_one_with_a_large_buffer_does_not() {
    let test = "a_port_with_a_small_buffer_collapses_under_incast_and_one_with_a_large_buffer_does_not";
    if let Err(error) = lab::available() {
        return skip::skip(test, &error.to_string());
    }
    if !Path::new("/proc/sys/net/ipv4/tcp_rto_min_us").exists() {
        return skip::skip(test, "the least retransmission timeout of a namespace can be set from Linux 6.11 on");
    }
    let count = std::env::var("THRU_TRAFFIC_HOSTS").ok().and_then(|count| count.parse().ok()).unwrap_or(9);
    // Eight segments: a burst of so many senders does not fit.
    let (run, _) = Port::new(count, "12KiB").incast(count - 1);
    let (statement, _, timeouts) = said(&run);
    println!("{statement} ({timeouts} timeouts)");
    assert!(statement.starts_with("Goodput into n1 is ") && timeouts > 0, "{statement}");
    assert!(statement.contains(" and collapses to "), "{statement}");
    assert!(statement.contains("waited for a retransmission timeout"), "{statement}");
    // All blocks fit into the queue, so that nothing is lost there.
    let (run, on_time) = Port::new(count, "8MiB").incast(count - 1);
    let (statement, all_ns, timeouts) = said(&run);
    println!("{statement} ({timeouts} timeouts)");
    assert_eq!(timeouts, 0, "{statement}");
    assert!(!on_time || !(statement.contains(" collapses to ") || statement.contains(" falls to ")), "{statement}");
    // However far apart the hosts began.
    let goodput_bps = ((count - 1) * (256 << 10) * 8) as f64 * 1e9 / all_ns;
    assert!(!on_time || goodput_bps < 100e6, "more than the port carries: {goodput_bps} bit/s; {statement}");
}

//! `thru check`, on the emulated path of a DSL line (root only): with an agent, with another program, and with nothing at the far end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use model::{Direction, FindingKind, Outcome, Run, RunKind};
use program::{Agent, Doc, Finished, Running, Sandbox, binary, eventually, skip};

/// 1 Mbit/s out and 15 Mbit/s back, 20 ms there and back; the queue out holds a second.
fn dsl(test: &str) -> Option<Lab> {
    let direction = |rate_bps, queue_bytes| DirectionSpec {
        delay: Duration::from_millis(10),
        rate_bps: Some(rate_bps),
        queue_bytes,
        ..DirectionSpec::default()
    };
    let (forward, reverse) = (direction(1_000_000, 125_000), direction(15_000_000, 60_000));
    let spec = PathSpec { link: CrossoverSpec::default(), forward, reverse, seed: 51 };
    match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => Some(lab),
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            skip::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A command on the near host.
fn checked(lab: &Lab, sandbox: &Sandbox, args: &[&str]) -> Finished {
    Running::of(sandbox.prepare(lab.host("a").unwrap().command(binary::thru()), args)).wait()
}

fn goodput(outcomes: &[Outcome], direction: Direction) -> f64 {
    let own = outcomes.iter().find(|outcome| outcome.spec.direction == direction && outcome.spec.rate_bps.is_none());
    own.expect("a stream").estimate.as_ref().expect("a goodput").value
}

fn document(sandbox: &Sandbox, name: &str) -> Run {
    Doc::try_parse(&std::fs::read_to_string(sandbox.path(name)).unwrap()).unwrap().run
}

#[test]
fn a_host_alone_is_checked_in_both_directions() {
    let Some(lab) = dsl("a_host_alone_is_checked_in_both_directions") else { return };
    let far = lab.host("b").unwrap();
    let agent = Agent::spawn(far.command(binary::thru()), &["--open", "--listen", &format!("{}:0", far.v4)]);
    let sandbox = Sandbox::new();
    let args = [agent.host(), "--json", "check.json", "--expect", "out>=800k,back>=20M,rtt<=1s"];
    let checked = checked(&lab, &sandbox, &args).ended_with(10);
    let (run, screen) = (document(&sandbox, "check.json"), &checked.stdout);
    assert_eq!((run.header.kind, run.outcomes.len()), (RunKind::Check, 4));
    // A segment of 1,448 bytes has 1,500 with its headers; the lab counts those and 14 of Ethernet.
    let [out, back] = [Direction::Send, Direction::Reverse].map(|direction| goodput(&run.outcomes, direction));
    assert!((0.80e6..0.97e6).contains(&out) && (12.5e6..14.6e6).contains(&back), "{out} and {back}");
    let findings = |kind| run.findings.iter().filter(|finding| finding.kind == kind).count();
    assert_eq!(findings(FindingKind::Unmet), 1, "{screen}");
    assert!(findings(FindingKind::Concern) >= 1, "the queue of a second: {screen}");
    for part in
        ["Verdict      not as expected (1 of 3)\n", "RTT loaded   ", "Lost         0 of 62", "Found        back is 1"]
    {
        assert!(screen.contains(part), "{part} is not in {screen}");
    }
    assert!(screen.contains("more: ") && screen.contains("(grade "), "{screen}");
}

#[test]
fn without_an_agent_it_measures_with_what_answers() {
    let Some(lab) = dsl("without_an_agent_it_measures_with_what_answers") else { return };
    let (far, sandbox) = (lab.host("b").unwrap(), Sandbox::new());
    let host = far.v4.to_string();
    let nothing = checked(&lab, &sandbox, &["check", &host, "--json", "nothing.json"]).ended_with(3);
    assert!(nothing.stdout.contains("Verdict      not measured\n"), "{nothing:?}");
    let run = document(&sandbox, "nothing.json");
    assert!(run.outcomes.is_empty() && run.header.path_outbound.unwrap().ping.unwrap().received > 0);

    if !skip::program("without_an_agent_it_measures_with_what_answers", "iperf3", "iperf3") {
        return;
    }
    let mut server = far.command("iperf3");
    server.args(["--server", "--forceflush"]);
    let mut server = Running::of(server);
    server.until_printed("Server listening");
    let with_iperf3 = checked(&lab, &sandbox, &["check", &host, "--json", "iperf3.json"]);
    assert!(with_iperf3.stderr.contains("no agent answers at "), "{with_iperf3:?}");
    assert!(with_iperf3.stdout.contains("The far end is iperf3"), "{with_iperf3:?}");
    let outcomes = document(&sandbox, "iperf3.json").outcomes;
    let [out, back] = [Direction::Send, Direction::Reverse].map(|direction| goodput(&outcomes, direction));
    assert!((0.7e6..1.0e6).contains(&out) && (12e6..14.6e6).contains(&back), "{out} and {back}");
}

/// Waits until something in the far host listens on NPtcp's port.
fn listens(lab: &Lab) {
    eventually("NPtcp listens", || {
        let mut table = lab.host("b").unwrap().command("cat");
        let table = table.arg("/proc/net/tcp").output().unwrap().stdout;
        String::from_utf8_lossy(&table).lines().any(|line| line.contains(":138A ") && line.contains(" 0A "))
    });
}

/// NPtcp on the far host, without options.
fn nptcp(lab: &Lab) -> Running {
    let server = Running::of(lab.host("b").unwrap().command("NPtcp"));
    listens(lab);
    server
}

#[test]
fn nptcp_is_measured_with_at_its_only_connection() {
    let test = "nptcp_is_measured_with_at_its_only_connection";
    let Some(lab) = dsl(test) else { return };
    if !skip::program(test, "NPtcp", "netpipe-tcp") {
        return;
    }
    let (sandbox, host) = (Sandbox::new(), lab.host("b").unwrap().v4.to_string());
    let server = nptcp(&lab);
    let args = [&host, "--json", "nptcp.json", "--expect", "rtt<=1s,out>=100k"];
    let with_nptcp = checked(&lab, &sandbox, &args).ended_with(10);
    let screen = &with_nptcp.stdout;
    for part in [
        "Verdict      not as expected (1 of 2)\n",
        "one figure for out and back in turn",
        "Far end      NPtcp (NetPIPE)",
        "Not known    goodput of each direction",
        "path MTU 1500 B",
        "Found        out was not measured, and 100 kbit/s is expected\n",
    ] {
        assert!(screen.contains(part), "{part} is not in {screen}");
    }
    let run = document(&sandbox, "nptcp.json");
    let rtt = run.outcomes[0].summary.rtt_p50_ns.unwrap();
    assert!(run.outcomes[0].spec.block == 1 && (20e6..40e6).contains(&rtt), "{rtt} ns");
    // Half of the time for both directions: twice the harmonic mean of 1 and 15 Mbit/s is 1.9 Mbit/s.
    let rates = run.outcomes.iter().filter_map(|outcome| outcome.summary.netpipe_bps);
    let peak = rates.fold(0.0, f64::max);
    assert!((1.0e6..2.0e6).contains(&peak), "{peak} bit/s");
    // It has ended by itself.
    let _ended = server.wait();
}

#[test]
fn something_else_on_nptcps_port_is_skipped() {
    let Some(lab) = dsl("something_else_on_nptcps_port_is_skipped") else { return };
    let (sandbox, host) = (Sandbox::new(), lab.host("b").unwrap().v4.to_string());
    // An agent waits for its client's first words.
    let agent_like = lab.host("b").unwrap().command(binary::thru());
    let _silent = Agent::spawn(agent_like, &["--open", "--listen", &format!("{host}:5002")]);
    let nothing = checked(&lab, &sandbox, &["check", &host]).ended_with(3);
    assert!(nothing.stdout.contains("Verdict      not measured\n"), "{nothing:?}");
    assert!(nothing.stdout.contains("there is nothing at"), "{nothing:?}");
}

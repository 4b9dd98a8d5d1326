//! Thousands of flows in two threads: all come up, all are served, and each one's share is told.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::Command;
use std::time::Duration;

use program::binary::thru;
use program::process::{Signal, eventually};
use program::{Agent, Running, Sandbox, check, skip, thorough};

/// Most that the processes of one end may take, KiB: a gibibyte.
const MEMORY_KIB: u64 = 1 << 20;

#[test]
fn thousands_of_flows_have_their_round_trips_and_their_shares() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let files = std::fs::read_to_string(format!("/proc/{}/limits", agent.pid())).unwrap();
    let limit =
        files.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
    let flows = if !thorough() {
        2_000
    } else if limit.is_none_or(|limit: u64| limit > 11_000) {
        10_000
    } else {
        skip::skip(
            "thousands_of_flows_have_their_round_trips_and_their_shares",
            "the limit of open files; 800 flows instead",
        );
        800
    };
    let count = flows.to_string();
    let mut running = sandbox.start(&[
        "rr",
        "--flows",
        &count,
        "--threads",
        "2",
        "--trials",
        "1",
        "--time",
        "1s",
        "--json",
        "-",
        agent.host(),
    ]);
    let mut peak = 0;
    while running.runs() {
        let workers = agent.workers().into_iter().chain(program::agent::children(running.pid()));
        peak = workers.filter_map(peak_kib).max().unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(50));
    }
    let finished = running.wait_at_most(Duration::from_secs(1)).ok();
    let doc = finished.doc();
    check::document(&doc, "thousands of flows");
    let trial = &doc.trials()[0];
    assert_eq!((trial.near.flows.len(), trial.far.flows.len()), (flows, flows));
    let shares = doc.summary().shares.expect("several flows have shares");
    let fairness = doc.summary().fairness.expect("several flows have a fairness");
    assert!(fairness > 0.0 && fairness <= 1.0 && shares.min <= shares.median && shares.median <= shares.max);
    let none = trial.near.flows.iter().filter(|flow| flow.transactions == 0).count();
    assert_eq!(none, shares.empty as usize);
    assert_eq!(none > 0, doc.has(model::Verdict::Starved));
    let reported = doc.run.findings.iter().any(|finding| finding.statement.plain().contains("of an equal share"));
    assert!(reported, "{:?}", doc.run.findings);
    assert!(peak > 0 && peak < MEMORY_KIB, "{peak} KiB");
}

/// The most memory that a process has had (proc(5), status).
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().trim_end_matches(" kB").parse().ok())
}

/// Waits until the agent's worker moves payload over hundreds of flows: it has all its connections, and works half a second more.
fn moves_payload(agent: &Agent) {
    let open = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    eventually("all flows are open", || agent.workers().iter().map(open).sum::<usize>() >= 500);
    let worked = || agent.workers().into_iter().filter_map(worked_ticks).sum::<u64>();
    let before = worked();
    eventually("the flows are used", || worked() >= before + 50);
}

/// The time that a process has run, in hundredths of a second (utime and stime, proc_pid_stat(5)).
fn worked_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which ends with a parenthesis: state is field 3, the two times are fields 14 and 15.
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[test]
fn streams_of_a_thousand_flows_by_readiness_and_by_completion() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for wait in ["epoll", "uring"] {
        let args =
            ["stream", "--flows", "1000", "--threads", "2", "--block", "16KiB", "--trials", "1", "--time", "300ms"];
        let finished = sandbox
            .start(&[&args[..], &["--wait", wait, "--json", "-", agent.host()]].concat())
            .wait_at_most(Duration::from_secs(60));
        if wait == "uring" && finished.stderr.contains("--wait uring on this host") {
            skip::skip("streams_of_a_thousand_flows_by_completion", "io_uring");
            continue;
        }
        let doc = finished.ok().doc();
        check::document(&doc, wait);
        let trial = &doc.trials()[0];
        for (near, far) in trial.near.flows.iter().zip(&trial.far.flows) {
            assert_eq!((near.flow, near.bytes_sent), (far.flow, far.bytes_received), "{wait}");
        }
        assert!(
            trial.far.flows[0].socket.cc.is_some() && trial.far.flows[999].socket.cc.is_none(),
            "brief beyond the first 256"
        );
        assert!(trial.far.flows[999].socket.retransmits.is_some(), "{wait}");
    }
}

#[test]
fn a_worker_that_dies_with_hundreds_of_flows_costs_one_trial() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let running =
        sandbox.start(&["rr", "--flows", "500", "--threads", "2", "--time", "30s", "--trials", "1", agent.host()]);
    eventually("a worker measures", || !agent.workers().is_empty() && agent.log().contains("measures rr"));
    moves_payload(&agent);
    for worker in agent.workers() {
        let killed = Command::new("kill").args(["-KILL", &worker.to_string()]).status().unwrap();
        assert!(killed.success());
    }
    let finished = running.wait_at_most(Duration::from_secs(30));
    assert!(finished.code != Some(0), "{}", finished.stderr);
    let again = ["rr", "--flows", "500", "--threads", "2", "--time", "200ms", "--trials", "1", agent.host()];
    let doc = sandbox.measure(&again);
    assert_eq!(doc.trials()[0].near.flows.len(), 500, "the agent serves the next one");
}

#[test]
fn an_interrupt_ends_hundreds_of_flows_and_keeps_what_they_counted() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let running = sandbox.start(&[
        "stream",
        "--flows",
        "500",
        "--threads",
        "2",
        "--time",
        "30s",
        "--trials",
        "1",
        "--json",
        "-",
        agent.host(),
    ]);
    eventually("a worker measures", || agent.log().contains("measures stream"));
    moves_payload(&agent);
    running.signal(Signal::INT);
    let doc = running.wait_at_most(Duration::from_secs(30)).ended_with(130).doc();
    assert!(doc.has(model::Verdict::CutShort));
    assert_eq!(doc.trials()[0].far.flows.len(), 500);
}

#[test]
fn more_flows_than_a_process_may_open_files_are_refused_before_anything_is_sent() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let script = format!("ulimit -n 300 && exec {} \"$@\"", thru().display());
    let mut command = Command::new("sh");
    command.args(["-c", &script, "thru"]);
    let command = sandbox.prepare(command, &["rr", "--flows", "500", "--threads", "2", "--trials", "1", agent.host()]);
    let finished = Running::of(command).wait();
    assert!(finished.code != Some(0));
    let said = finished.message();
    assert!(said.contains("500 flows") && said.contains("300 files") && said.contains("--processes"), "{said}");
}

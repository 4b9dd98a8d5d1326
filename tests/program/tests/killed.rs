//! Either end killed, interrupted or stopped in mid-test: the other one says so, what was finished is kept, and the agent is
//! ready for the next client.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::{Duration, Instant};

use model::Verdict;
use program::agent::children;
use program::process::{Signal, eventually, send, within};
use program::{Agent, Doc, Finished, Running, Sandbox};

/// An agent has two seconds to free itself of a client that vanished; one more for a busy machine.
const FREED: Duration = Duration::from_secs(3);
/// Many short trials, as lines of events.
const MANY: [&str; 8] = ["stream", "--time", "200ms", "--trials", "64", "--live", "--stall=2s", "--no-path"];
/// One trial that does not end by itself.
const LONG: [&str; 5] = ["stream", "--time", "10m", "--trials", "1"];

fn to(agent: &Agent, args: &[&str]) -> Vec<String> {
    args.iter().copied().chain([agent.host()]).map(str::to_owned).collect()
}

fn measurements(agent: &Agent) -> usize {
    agent.log().matches(": measures ").count()
}

fn still_serves(agent: &Agent, sandbox: &Sandbox) {
    sandbox.measure(&to(agent, &["transfer", "--count", "3", "--no-path"]));
}

/// Waits until a client with `--live` has finished some trials.
fn until_trials(client: &Running, count: usize) {
    eventually("trials are finished", || finished_trials(&client.stdout()) >= count);
}

fn finished_trials(events: &str) -> usize {
    events.lines().filter(|line| line.starts_with("{\"event\":\"trial\"")).count()
}

/// The last run as the store has it.
fn kept(sandbox: &Sandbox) -> Doc {
    let shown = sandbox.run(&["show", "last", "--json"]).ok();
    let text = sandbox.run(&["show", "last"]).ok();
    assert!(text.stdout.contains("bit/s"), "{}", text.stdout);
    shown.doc()
}

/// The store has the trials whose ends were announced, and the run says how it ended.
fn assert_kept(sandbox: &Sandbox, finished: &Finished, how: &str) -> Doc {
    let doc = kept(sandbox);
    let announced = finished_trials(&finished.stdout);
    assert_eq!(doc.trials().len(), announced, "trials kept, and trials announced");
    assert_eq!(doc.run.ending.as_ref().map(|ending| ending.how.as_str()), Some(how));
    assert!(doc.has(Verdict::CutShort), "{}", doc.remarks());
    doc
}

#[test]
fn a_killed_client_makes_room_for_the_next_one_within_two_seconds() {
    let (agent, sandboxes) = (Agent::start(), [Sandbox::new(), Sandbox::new()]);
    for pattern in [&LONG[..], &["rr", "--time", "10m", "--trials", "1", "--flows", "8"]] {
        let before = measurements(&agent);
        let first = sandboxes[0].start(&to(&agent, pattern));
        eventually("the first client measures", || measurements(&agent) == before + 1 && !agent.workers().is_empty());
        let mut second = sandboxes[1].start(&to(&agent, &["transfer", "--count", "3"]));
        second.until_printed("is busy: 1 ahead in the queue");
        first.signal(Signal::KILL);
        within(FREED, "the second client has its turn", || measurements(&agent) == before + 2);
        second.wait().ok();
    }
}

#[test]
fn the_trials_of_a_killed_client_are_in_its_store() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let client = sandbox.start(&to(&agent, &MANY));
    until_trials(&client, 3);
    client.signal(Signal::KILL);
    let finished = client.wait();
    assert_eq!(finished.code, None, "a signal ended it");
    let doc = kept(&sandbox);
    // An event is kept before it is told, so the store may be one ahead, never behind.
    let announced = finished_trials(&finished.stdout);
    assert!((announced..=announced + 1).contains(&doc.trials().len()), "{} of {announced}", doc.trials().len());
    assert!(doc.run.ending.is_none() && doc.has(Verdict::CutShort), "{}", doc.remarks());
    still_serves(&agent, &sandbox);
}

#[test]
fn a_killed_agent_ends_the_client_with_one_message_and_its_trials_kept() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let client = sandbox.start(&to(&agent, &MANY));
    until_trials(&client, 3);
    agent.signal(Signal::KILL);
    let finished = client.wait_at_most(Duration::from_secs(20)).ended_with(5);
    let message = finished.message();
    assert!(message.contains(agent.host()) && message.contains("trials are kept"), "{message}");
    assert_kept(&sandbox, &finished, "failed");
}

#[test]
fn a_dead_worker_of_either_end_ends_the_run_and_not_the_agent() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let transports = ["tcp", "tls", "quic"];
    for (far, transport) in [true, false].into_iter().flat_map(|far| transports.map(|transport| (far, transport))) {
        let client = sandbox.start(&to(&agent, &[&MANY[..], &["--transport", transport]].concat()));
        until_trials(&client, 2);
        let workers = || if far { agent.workers() } else { children(client.pid()) };
        eventually("a worker runs", || !workers().is_empty());
        send(workers()[0], Signal::KILL);
        let finished = client.wait_at_most(Duration::from_secs(20)).ended_with(5);
        let message = finished.message();
        assert!(message.contains("worker process ended") || message.contains("lost"), "{message}");
        assert_kept(&sandbox, &finished, "failed");
        still_serves(&agent, &sandbox);
    }
}

#[test]
fn an_interrupt_keeps_what_was_finished() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for signal in [Signal::INT, Signal::TERM] {
        let client = sandbox.start(&to(&agent, &MANY));
        until_trials(&client, 3);
        client.signal(signal);
        let finished = client.wait_at_most(Duration::from_secs(20)).ended_with(130);
        let doc = assert_kept(&sandbox, &finished, "interrupted");
        let whole = doc.trials().iter().filter(|trial| trial.verdicts.is_empty()).count();
        assert!(whole >= 3 && doc.goodput() > 0.0, "{}", doc.remarks());
        still_serves(&agent, &sandbox);
    }
}

#[test]
fn an_interrupt_in_a_long_trial_a_curve_or_the_queue_ends_the_command_soon() {
    let (agent, sandboxes) = (Agent::start(), [Sandbox::new(), Sandbox::new()]);
    let first = sandboxes[0].start(&to(&agent, &LONG));
    eventually("the first client measures", || measurements(&agent) == 1);
    let mut second = sandboxes[1].start(&to(&agent, &["curve", "--budget", "10m", "--target", "0.001%"]));
    second.until_printed("is busy: 1 ahead in the queue");
    second.signal(Signal::INT);
    let reported = second.wait_at_most(Duration::from_secs(20)).ended_with(130);
    assert!(reported.message().contains("interrupted"), "{}", reported.stderr);
    let mut curve = sandboxes[1].start(&to(&agent, &["curve", "--budget", "10m", "--target", "0.001%", "--json", "-"]));
    curve.until_printed("is busy: 1 ahead in the queue");
    first.signal(Signal::INT);
    first.wait_at_most(Duration::from_secs(20)).ended_with(130);
    curve.until_printed(" sizes left");
    curve.signal(Signal::INT);
    let doc = curve.wait_at_most(Duration::from_secs(20)).ended_with(130).doc();
    assert!(doc.run.outcomes.len() > 10, "{} sizes", doc.run.outcomes.len());
    still_serves(&agent, &sandboxes[0]);
}

#[test]
fn a_stopped_worker_does_not_hold_the_run_for_ever() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let client = sandbox.start(&to(&agent, &["stream", "--both", "--time", "10m", "--trials", "1", "--stall", "1s"]));
    eventually("a worker runs", || !agent.workers().is_empty());
    let worker = agent.workers()[0];
    // It is measuring once it has used some time of a processor.
    eventually("it measures", || ticks(worker) > 5);
    send(worker, Signal::STOP);
    let finished = client.wait_at_most(Duration::from_secs(40));
    match finished.code {
        // Both ends could say what they counted.
        Some(8) => assert!(kept(&sandbox).has(Verdict::Stalled), "{}", kept(&sandbox).remarks()),
        // The one that is stopped could not.
        Some(5) => {
            assert!(finished.message().contains("a measuring process there may be stopped"), "{}", finished.stderr);
        }
        code => panic!("exit code {code:?}: {}", finished.stderr),
    }
    still_serves(&agent, &sandbox);
    eventually("the stopped process is gone", || ticks(worker) == 0);
}

#[test]
fn a_stopped_client_loses_its_turn() {
    let (agent, sandboxes) = (Agent::start(), [Sandbox::new(), Sandbox::new()]);
    let first = sandboxes[0].start(&to(&agent, &LONG));
    eventually("the first client measures", || measurements(&agent) == 1);
    let mut second = sandboxes[1].start(&to(&agent, &["transfer", "--count", "3"]));
    second.until_printed("is busy: 1 ahead in the queue");
    let stopped = Instant::now();
    first.signal(Signal::STOP);
    second.wait_at_most(Duration::from_secs(40)).ok();
    // Its kernel still answers for it, so this takes longer than for one that is gone.
    assert!(stopped.elapsed() > Duration::from_secs(2), "it had time to come back");
    first.signal(Signal::KILL);
}

/// Clock ticks that a process has used; 0 when there is none.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // utime and stime (proc_pid_stat(5), fields 14 and 15).
    number(11) + number(12)
}

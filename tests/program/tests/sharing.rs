//! Several clients of one agent: one after the other, at the same time, and many.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::thread;

use model::Verdict;
use program::process::{Signal, eventually};
use program::{Agent, Sandbox, check, thorough};

const HALF_SECOND: [&str; 5] = ["stream", "--time", "500ms", "--trials", "2"];

#[test]
fn of_two_clients_the_second_waits_and_is_told_its_place() {
    let (agent, sandboxes) = (Agent::start(), [Sandbox::new(), Sandbox::new()]);
    let first = sandboxes[0].start(&[&HALF_SECOND[..], &["--json", "-", agent.host()]].concat());
    eventually("the first one measures", || agent.log().contains("measures stream"));
    let mut second = sandboxes[1].start(&[&HALF_SECOND[..], &["--json", "-", agent.host()]].concat());
    second.until_printed("is busy: 1 ahead in the queue");
    let (first, second) = (first.wait().ok().doc(), second.wait().ok().doc());
    for doc in [&first, &second] {
        check::document(doc, "one of two clients");
        assert!(!doc.has(Verdict::Overlapped), "they came one after the other");
        assert!(doc.run.passes.iter().all(|pass| pass.overlapped_by == 0));
    }
    // The second one started to measure when the first one had ended, by the one clock that both share.
    let end_of = |doc: &program::Doc| {
        doc.run.header.started_unix_ns + doc.run.ending.as_ref().map_or(0, |ending| ending.duration_ns)
    };
    assert!(end_of(&first) <= second.run.header.started_unix_ns, "they overlapped");
}

#[test]
fn concurrent_measurements_overlap_and_say_so() {
    let (agent, sandboxes) = (Agent::with(&["--concurrent", "2"]), [Sandbox::new(), Sandbox::new()]);
    let long = ["rr", "--rate", "500/s", "--time", "1s", "--trials", "3", "--json", "-", agent.host()];
    let running = sandboxes.each_ref().map(|sandbox| sandbox.start(&long));
    let docs = running.map(|running| running.wait().ok().doc());
    for doc in &docs {
        check::document(doc, "one of two at once");
        assert!(doc.has(Verdict::Overlapped), "{}", doc.remarks());
        assert!(doc.run.passes.iter().any(|pass| pass.overlapped_by == 1), "{:?}", doc.run.passes);
    }
    // A third one that comes alone is not blamed for what was before it.
    let alone = sandboxes[0].measure(&["rr", "--time", "100ms", "--trials", "1", agent.host()]);
    assert!(!alone.has(Verdict::Overlapped), "{}", alone.remarks());
}

#[test]
fn clients_leave_nothing_behind() {
    // A leak of one connection's buffers (a reader's 64 KiB) per client would be 12 MiB for two hundred, 2.5 MiB for forty.
    let (first, later, most_kib) = if thorough() { (40, 200, 4_096) } else { (20, 40, 2_048) };
    let (agent, sandbox) = (Agent::with(&["--concurrent", "3"]), Sandbox::new());
    let client = |number: usize| {
        // Each kind of worker and socket that an agent has to do with; the last one looks at the path too.
        let kind: &[&str] = match number % 5 {
            0 => &["transfer", "--count", "1", "--transport", "udp", "--no-path"],
            1 => &["transfer", "--count", "2", "--flows", "2", "--processes", "2", "--no-path"],
            2 => &["rr", "--connect", "--count", "3", "--trials", "1", "--no-path"],
            3 => &["transfer", "--count", "1", "--sndbuf", "64KiB", "--no-path"],
            _ => &["transfer", "--count", "1"],
        };
        sandbox.run(&[kind, &["--no-store", "--quiet", agent.host()]].concat()).ok();
    };
    // One of four waits in the queue while the others are served.
    let clients = |count: usize| {
        thread::scope(|scope| {
            for first in 0..4 {
                scope.spawn(move || (first..count).step_by(4).for_each(client));
            }
        });
    };
    // The allocator and the runtime take what they need once.
    clients(first);
    let settled = || {
        eventually("the workers are gone", || agent.workers().is_empty());
        (agent.descriptors(), agent.resident_kib())
    };
    let (descriptors, resident) = settled();
    clients(later);
    let (descriptors_after, resident_after) = settled();
    assert!(descriptors_after <= descriptors + 1, "{descriptors} descriptors before, {descriptors_after} after");
    assert!(resident_after < resident + most_kib, "{resident} KiB before, {resident_after} KiB after");
}

#[test]
fn connections_that_say_nothing_or_nonsense_do_not_stand_in_the_way() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let before = agent.descriptors();
    let silent: Vec<_> = (0..50).map(|_| std::net::TcpStream::connect(agent.host()).unwrap()).collect();
    for bytes in [b"GET / HTTP/1.0\r\n\r\n".as_slice(), &[0xff; 4096], b"THRUCTLS\xff\xff\xff\xff", b"THRUDATA"] {
        use std::io::Write;
        let _ = std::net::TcpStream::connect(agent.host()).unwrap().write_all(bytes);
    }
    sandbox.measure(&["transfer", "--count", "1", agent.host()]);
    drop(silent);
    eventually("the agent has closed them", || agent.descriptors() <= before + 1);
    sandbox.measure(&["transfer", "--count", "1", agent.host()]);
}

#[test]
fn an_agent_for_one_measurement_ends_after_it() {
    let (mut agent, sandbox) = (Agent::with(&["--once"]), Sandbox::new());
    sandbox.measure(&["transfer", "--count", "1", agent.host()]);
    assert_eq!(agent.wait().code(), Some(0));
}

#[test]
fn sigterm_ends_an_agent_and_its_workers() {
    let (mut agent, sandbox) = (Agent::start(), Sandbox::new());
    let client = sandbox.start(&["stream", "--time", "60s", "--trials", "1", agent.host()]);
    eventually("a worker runs", || !agent.workers().is_empty());
    let workers = agent.workers();
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    eventually("its workers are gone", || workers.iter().all(|pid| !runs(*pid)));
    client.wait().ended_with(5);
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).is_some_and(|state| state != 'Z')
}

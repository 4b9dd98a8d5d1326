//! Groups of flows: simultaneous tests over several connections to one agent, which have its machine together.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use model::{Direction, FindingKind, Outcome, RunKind, Stop, Verdict};
use program::wire::{Message, Wire};
use program::{Agent, Doc, Running, Sandbox, binary, check, client, skip};
use serde_json::json;

fn group<'a>(doc: &'a Doc, name: &str) -> &'a Outcome {
    let cell = doc.run.header.cells.iter().find(|cell| cell.levels["group"] == name).expect(name);
    doc.run.outcomes.iter().find(|outcome| outcome.cell == cell.id).expect(name)
}

#[test]
fn groups_are_measured_together_each_with_its_own_outcome() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &[]);
    let args = ["stream", "--time", "400ms", "--trials", "3"];
    let groups = [
        "--group",
        "name=bulk,flows=2,block=64KiB,cc=reno",
        "--group",
        "name=back,direction=reverse,rate=20M,cc=reno",
        "--group",
        "name=voice,transport=udp,rate=2M,block=200",
    ];
    let doc = sandbox.measure(&[&args[..], &groups, &[agent.host()]].concat());
    check::document(&doc, "three groups");
    assert_eq!((doc.run.header.kind, doc.run.outcomes.len()), (RunKind::Stream, 3));
    let [bulk, back, voice] = ["bulk", "back", "voice"].map(|name| group(&doc, name));
    assert_eq!((bulk.spec.flows, bulk.spec.block, bulk.spec.direction), (2, 64 << 10, Direction::Send));
    assert_eq!((back.spec.flows, back.spec.direction, back.spec.rate_bps), (1, Direction::Reverse, Some(20_000_000)));
    assert_eq!((voice.spec.transport.as_str(), voice.spec.block), ("udp", 200));
    assert_eq!((bulk.spec.near.cc.as_deref(), back.spec.far.cc.as_deref()), (Some("reno"), Some("reno")));
    for outcome in [bulk, back, voice] {
        assert_eq!(outcome.trials.len(), 3);
        assert!(outcome.trials.iter().all(|trial| trial.ledger.balanced && trial.ledger.received > 0));
        assert!(!outcome.summary.verdicts.contains(&Verdict::Overlapped), "{:?}", outcome.summary.verdicts);
    }
    // The three passes of a round began as one.
    for round in 0..3 {
        let passes = || doc.run.passes.iter().filter(move |pass| pass.round == Some(round));
        let begun: BTreeSet<u64> = passes().map(|pass| pass.started_ns).collect();
        assert_eq!((passes().count(), begun.len()), (3, 1));
        assert!(passes().all(|pass| pass.overlapped_by == 0));
    }
    // The two that send the same way are compared.
    let found: Vec<_> = doc.run.findings.iter().filter(|finding| finding.kind == FindingKind::Fairness).collect();
    assert!(found.iter().any(|finding| finding.statement.plain().starts_with("The groups together: ")), "{found:#?}");
    assert!(found.iter().any(|finding| finding.statement.plain().starts_with("Jain's fairness index")), "{found:#?}");
    assert!(found.iter().all(|finding| !finding.cells.contains(&back.cell)), "{found:#?}");
    // One measurement for the agent, with a connection for each group.
    let log = agent.log();
    assert_eq!(log.matches("measures 3 groups of flows").count(), 1, "{log}");
    assert_eq!(log.matches("measures at the same time 3 groups of flows").count(), 2, "{log}");
    // The stored run is shown in each form.
    let text = sandbox.run(&["show", "last"]).ok().stdout;
    assert!(text.contains("bulk") && text.contains("voice") && text.contains("share"), "{text}");
    let csv = sandbox.run(&["export", "last", "--format", "csv"]).ok().stdout;
    assert!(csv.lines().count() == 4 && csv.contains("voice"), "{csv}");
    for form in ["md", "html", "svg", "ndjson"] {
        sandbox.run(&["export", "last", "--format", form, "--output", &format!("there.{form}")]).ok();
    }
}

#[test]
fn a_group_sends_between_its_start_and_its_stop() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let args = ["stream", "--time", "800ms", "--trials", "1", "--rate", "40M", "--interval", "20ms"];
    let groups = ["--group", "name=whole", "--group", "name=part,start=200ms,stop=400ms"];
    let doc = sandbox.measure(&[&args[..], &groups, &[agent.host()]].concat());
    check::document(&doc, "two groups of different length");
    let [whole, part] = ["whole", "part"].map(|name| group(&doc, name));
    assert_eq!((part.spec.start_ns, part.spec.stop), (Some(200_000_000), Stop::TimeNs(200_000_000)));
    assert_eq!((whole.spec.start_ns, whole.spec.stop), (Some(0), Stop::TimeNs(800_000_000)));
    // At the same rate, a quarter of the time is a quarter of the bytes; half is a wide margin for a busy host.
    let bytes = |outcome: &Outcome| outcome.trials[0].ledger.received;
    assert!(bytes(part) > 0 && 2 * bytes(part) < bytes(whole), "{} of {}", bytes(part), bytes(whole));
    let statement = doc.run.findings.iter().find(|it| it.kind == FindingKind::Fairness).unwrap().statement.plain();
    // The window begins with the first bytes of the later group, which a busy host may send late.
    let (_, window) = statement.split_once("while all of them sent (").unwrap();
    let (from, _) = window.split_once(" ms to 400 ms after the start)").unwrap();
    let from: f64 = from.parse().unwrap();
    assert!((200.0..300.0).contains(&from), "{statement:?}");
}

#[test]
fn a_transport_of_one_host_has_groups_too() {
    let sandbox = Sandbox::new();
    let args = ["stream", "--transport", "unix", "--time", "100ms", "--trials", "1"];
    let doc = sandbox.measure(&[&args[..], &["--group", "flows=2", "--group", "block=4KiB"]].concat());
    check::document(&doc, "groups over unix sockets");
    assert_eq!(doc.run.outcomes.len(), 2);
}

#[test]
fn mistakes_name_the_group_and_the_key() {
    let sandbox = Sandbox::new();
    for (flags, words) in [
        (&["--group", "flow=1"] as &[&str], "group 1: a group has no 'flow'; did you mean 'flows'?"),
        (&["--group", "flows=1", "--group", "name=web,rate=1GB"], "group 2 (web): rate: '1GB' has the unit byte"),
        (&["--group", "start=3s,stop=2s"], "group 1: `stop` (2.00 s) is not after `start` (3.00 s)"),
        (&["--group", "transport=memcpy"], "group 1: memcpy cannot have groups: it has one end only"),
        (&["--group", "flows=1", "--speak", "iperf3"], "--speak"),
        (&["--group", "flows=1", "--find-no-loss"], "--find-no-loss"),
    ] {
        let message = sandbox.run(&[&["stream"], flags, &["127.0.0.1:9"]].concat()).ended_with(2).message();
        assert!(message.contains(words), "{flags:?}: {message}");
    }
    assert!(!sandbox.store().exists());
}

#[test]
fn the_limits_of_an_agent_are_for_all_groups_together() {
    let (agent, sandbox) = (Agent::with(&["--max-flows", "3"]), Sandbox::new());
    let with = |flows: &'static str| {
        ["stream", "--time", "50ms", "--trials", "1", "--group", "flows=2", "--group", flows].map(str::to_owned)
    };
    let args = |flows| [&with(flows)[..], &[agent.host().to_owned()]].concat();
    let message = sandbox.run(&args("flows=2")).ended_with(4).message();
    assert!(message.contains("4 flows in simultaneous tests exceed this agent's limit of 3"), "{message}");
    let mut fits = args("flows=1");
    fits.extend(["--json".to_owned(), "-".to_owned()]);
    check::document(&sandbox.run(&fits).ok().doc(), "three flows");
}

#[test]
fn an_agent_for_one_client_serves_all_its_connections() {
    let (mut agent, sandbox) = (Agent::with(&["--once"]), Sandbox::new());
    let args = ["stream", "--time", "50ms", "--trials", "3", "--group", "flows=1", "--group", "flows=2", agent.host()];
    sandbox.run(&args).ok();
    assert!(agent.wait().success());
}

/// An authenticated connection.
fn connected(agent: &Agent) -> Wire {
    let wire = Wire::dial(agent.host());
    wire.authenticate(client::TOKEN);
    assert_eq!(wire.receive().unwrap().name, "welcome");
    wire
}

fn acquire(wire: &Wire, join: Option<&str>) -> Message {
    wire.send(&match join {
        Some(ticket) => json!({"acquire": {"purpose": "a test", "join": ticket}}),
        None => json!({"acquire": {"purpose": "a test"}}),
    });
    wire.receive().unwrap()
}

#[test]
fn only_the_holder_of_the_ticket_joins_and_others_wait_for_the_last() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &["--allow-tuning"]);
    let first = connected(&agent);
    let granted = acquire(&first, None);
    let ticket = granted["ticket"].as_str().expect("a ticket").to_owned();
    assert!(granted.name == "granted" && ticket.len() == 32, "{granted}");
    let stranger = connected(&agent);
    let refused = acquire(&stranger, Some(&"0".repeat(32)));
    assert_eq!((refused.name.as_str(), stranger.next_message()), ("refused", None), "{refused}");
    let second = connected(&agent);
    let joined = acquire(&second, Some(&ticket));
    assert!(joined.name == "granted" && joined["ticket"].is_null(), "{joined}");
    // The first connection has the settings.
    second.send(&json!({"tune": {"settings": [{"key": "sysctl.net.ipv4.tcp_sack", "value": "1"}]}}));
    let untuned = second.receive().unwrap();
    assert!(
        untuned.name == "untuned" && untuned["reason"]["statement"].as_str().unwrap().contains("joined another"),
        "{untuned}"
    );
    let other = connected(&agent);
    assert_eq!(acquire(&other, None)["ahead"], 1, "both are one measurement");
    first.send(&json!("release"));
    drop(first);
    let third = connected(&agent);
    assert_eq!(acquire(&third, Some(&ticket)).name, "granted", "the measurement goes on");
    drop(third);
    second.send(&json!("release"));
    assert_eq!(other.receive().unwrap().name, "granted");
    let late = connected(&agent);
    assert_eq!(acquire(&late, Some(&ticket)).name, "refused", "the ticket has ended");
}

#[test]
fn two_congestion_controls_share_a_link() {
    let delay = Duration::from_millis(5);
    let direction =
        DirectionSpec { delay, rate_bps: Some(100_000_000), queue_bytes: 125_000, ..DirectionSpec::default() };
    let spec = PathSpec { link: CrossoverSpec::default(), forward: direction.clone(), reverse: direction, seed: 7 };
    let lab = match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => lab,
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            return skip::skip("two_congestion_controls_share_a_link", &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let (sandbox, b) = (Sandbox::new(), lab.host("b").unwrap());
    let listen = format!("{}:0", b.v4);
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &listen]);
    let args = ["stream", "--time", "2s", "--trials", "2", "--json", "-", agent.host()];
    let groups = ["--group", "name=cubic,cc=cubic,flows=2", "--group", "name=reno,cc=reno,flows=2"];
    let command = lab.host("a").unwrap().command(binary::thru());
    let doc = Running::of(sandbox.prepare(command, &[&args[..], &groups].concat())).wait().ok().doc();
    let rates = ["cubic", "reno"].map(|name| group(&doc, name).summary.goodput_bps.expect(name));
    let sum: f64 = rates.iter().sum();
    // Headers take 5 %; a late start and a sawtooth take some more.
    assert!((60e6..100e6).contains(&sum) && rates.iter().all(|rate| *rate > 1e6), "{rates:?}");
    let found =
        doc.run.findings.iter().find(|it| it.statement.plain().starts_with("By congestion control: ")).expect("it");
    assert!(
        found.statement.plain().contains("cubic took ") && found.statement.plain().contains("reno took "),
        "{:?}",
        found.statement
    );
}

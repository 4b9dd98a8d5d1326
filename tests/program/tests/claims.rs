//! What a result is measured against: its ceiling, its cost, and the host's self-test.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::Command;
use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use model::{BoundKind, Claim, SelfTest, Verdict};
use program::{Agent, Running, Sandbox, binary, check, skip};

#[test]
fn a_paced_stream_stands_beside_the_rate_it_was_asked_for_and_says_what_it_cost() {
    // Both ends are root, so that they lack cycles for the same reason.
    let (agent, sandbox) = (Agent::with(&["--user", "root"]), Sandbox::new());
    let flags = ["stream", agent.host(), "--rate", "40Mbit", "--block", "4KiB", "--time", "200ms", "--trials", "3"];
    let doc = sandbox.measure(&flags);
    check::document(&doc, "a paced stream");
    let ceiling = doc.summary().ceiling.as_ref().expect("a ceiling");
    assert_eq!((ceiling.kind, ceiling.bound_bps), (BoundKind::Rate, 40e6));
    // The kernel knows of a window and a round trip over loopback too; an interface's rate there is none.
    let others: Vec<BoundKind> = ceiling.others.iter().map(|bound| bound.kind).collect();
    assert!(!others.contains(&BoundKind::Line), "{ceiling:?}");
    assert!(!doc.has(Verdict::AboveCeiling), "{ceiling:?} {}", doc.goodput());
    let cost = doc.summary().cost.as_ref().expect("a cost");
    for end in [&cost.near, cost.far.as_ref().expect("two ends")] {
        assert!(end.process_s_per_gb.unwrap() > 0.0 && end.host_s_per_gb.is_some(), "{end:?}");
        assert_eq!(end.cycles_per_byte.is_some(), end.cycles_missing.is_none(), "{end:?}");
        assert!(end.host_resolution_ns.unwrap() > 0 && end.process_ns_per_transaction.is_none(), "{end:?}");
    }
    let shown = sandbox.run(&["show", "-v"]).ok().stdout.replace("\n  ", " ");
    assert!(shown.contains(" of at most 40.0") && shown.contains(" Mbit/s (requested rate of 40.0 Mbit/s)"), "{shown}");
    assert!(shown.contains("- near end: ") && shown.contains(" CPU s/GB in the measuring processes"), "{shown}");
    assert!(shown.matches("cycles not measured: ").count() <= 1, "{shown}");
    let table = sandbox.run(&["export", "last", "--format", "csv"]).ok().stdout;
    assert!(table.contains("ceiling_bps") && table.contains(",40000000,requested rate of 40.0 Mbit/s,"), "{table}");
}

#[test]
fn a_fixed_receive_buffer_is_a_window_over_the_round_trip() {
    let direction =
        DirectionSpec { delay: Duration::from_millis(5), queue_bytes: 1_000_000, ..DirectionSpec::default() };
    let spec = PathSpec { link: CrossoverSpec::default(), forward: direction.clone(), reverse: direction, seed: 7 };
    let lab = match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => lab,
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            return skip::skip("a_fixed_receive_buffer_is_a_window_over_the_round_trip", &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &format!("{}:0", b.v4)]);
    let sandbox = Sandbox::new();
    let args = ["stream", agent.host(), "--rcvbuf", "64KiB", "--time", "200ms", "--trials", "3", "--json", "-"];
    let doc = Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().ok().doc();
    let ceiling = doc.summary().ceiling.as_ref().expect("a ceiling");
    assert_eq!(ceiling.kind, BoundKind::Window, "{ceiling:?}");
    assert!(ceiling.bound_bps > doc.goodput(), "{ceiling:?} {}", doc.goodput());
    let socket = &doc.trials()[0].near.flows[0].socket;
    let window = u64::from(socket.peer_window_bytes.expect("a window"));
    assert!(window > 0 && window <= 2 * 65_536, "no larger than the buffer: {window}");
    assert!(ceiling.reason.plain().starts_with("window ") && ceiling.reason.plain().contains(" over "), "{ceiling:?}");
    drop(agent);
    lab.close().unwrap();
}

#[test]
fn round_trips_cost_time_each_and_several_processes_add_up() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let doc = sandbox.measure(&["rr", agent.host(), "--time", "100ms", "--trials", "3"]);
    assert_eq!(doc.summary().ceiling, None);
    let cost = doc.summary().cost.clone().expect("a cost");
    assert!(cost.near.process_ns_per_transaction.unwrap() > 0.0 && cost.near.process_s_per_gb.is_none(), "{cost:?}");
    assert!(cost.near.cycles_missing.unwrap().contains("would slow its round trips"));
    let flags = ["stream", agent.host(), "--flows", "2", "--processes", "2", "--time", "100ms", "--trials", "3"];
    let doc = sandbox.measure(&flags);
    assert!(doc.trials().iter().all(|trial| trial.far.spent.as_ref().unwrap().process_ns > 0));
    // Why there are no cycles is said in the first trial alone.
    let said = |trial: &model::Trial| trial.near.spent.as_ref().unwrap().cycles_missing.is_some();
    assert!(doc.trials().iter().skip(1).all(|trial| !said(trial)));
    let memcpy = sandbox.measure(&["stream", "--transport", "memcpy", "--time", "50ms", "--trials", "3"]);
    let cost = memcpy.summary().cost.as_ref().unwrap();
    assert!(cost.near.process_s_per_gb.unwrap() > 0.0 && cost.far.is_none(), "{cost:?}");
}

#[test]
fn a_self_test_is_cited_by_later_runs_of_both_ends() {
    let sandbox = Sandbox::new();
    let start = || {
        let mut command = Command::new(binary::thru());
        command.env("THRU_STORE", sandbox.store());
        Agent::spawn(command, &["--listen", "127.0.0.1:0"])
    };
    let agent = start();
    let flags = ["stream", agent.host(), "--rate", "20Mbit", "--block", "4KiB", "--time", "50ms", "--trials", "3"];
    let before = sandbox.measure(&flags);
    assert!(before.json["header"]["near"]["selftest"].is_null() && before.run.header.far.selftest.is_none());
    let finished = sandbox.run(&["selftest", "--quick", "--loopback", "--json", "-"]);
    let test: SelfTest = serde_json::from_str(&finished.stdout).expect("a self-test");
    // An agent reads the store when it starts; later it has no right to.
    let agent = start();
    let after = sandbox.measure(&[&["stream", agent.host()], &flags[2..]].concat());
    check::document(&after, "a run that cites");
    let cited = after.run.header.near.selftest.clone().expect("a citation");
    assert_eq!((cited.started_unix_ns, cited.checks as usize), (test.started_unix_ns, test.checks.len()));
    assert_eq!((cited.quick, cited.changed.as_slice()), (true, &[][..]));
    assert!(cited.worst_rate_error.is_some() && cited.worst_rtt_error_ns.is_none(), "{cited:?}");
    assert_eq!(after.run.header.far.selftest, Some(cited));
    let regime = &after.summary().accuracy;
    assert_eq!(regime.first().map(|error| error.claim), Some(Claim::Rate), "{regime:?}");
    assert!(before.summary().accuracy.is_empty());
    let shown = sandbox.run(&["show", "-v"]).ok().stdout;
    assert!(shown.contains("error in this regime: rate"), "{shown}");
    let line = "checks passed, rates within";
    assert_eq!(shown.replace("\n  ", " ").matches(line).count(), 1, "both ends are one host:\n{shown}");
}

#[test]
fn one_hosts_metrics_cache_is_flushed_for_both_ends() {
    let test = "one_hosts_metrics_cache_is_flushed_for_both_ends";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let (a, sandbox) = (lab.host("a").unwrap(), Sandbox::new());
    // The cache is on in a new namespace; both ends are in this one.
    let listen = format!("{}:0", a.v4);
    let agent = Agent::spawn(a.command(binary::thru()), &["--open", "--listen", &listen]);
    assert!(a.command("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let flags = ["ab", "--pairs", "12", "--gap", "1ms", "--pattern", "rr", "--a", "--time 5ms", "--b", "--time 5ms"];
    let args = [&flags[..], &["--tolerance", "90%", "--json", "-", agent.host()]].concat();
    let doc = Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().doc();
    assert!(!doc.has(Verdict::MetricsKept), "{}", doc.remarks());
    let said =
        doc.run.findings.iter().find(|finding| finding.statement.plain().contains("metrics cache")).expect("a note");
    let both = "flushed before each trial at the near end and flushed before each trial at the far end";
    assert!(said.statement.plain().contains(both), "{:?}", said.statement);
}

//! Agents that dial out to a bus, the loss of the bus, and runs that another host continues.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use program::bus::BusServer;
use program::process::Signal;
use program::{Agent, Sandbox};

use crate::fleet::{Fleet, Way};

#[test]
fn a_bus_that_is_killed_costs_nothing_and_keeps_the_run_for_another_host() {
    let test = "a_bus_that_is_killed_costs_nothing_and_keeps_the_run_for_another_host";
    let Some(mut fleet) = Fleet::by(Way::Bus, 4, test) else { return };
    let url = fleet.bus.as_ref().unwrap().url();
    // All hosts that are there, by the bus alone.
    let listed = fleet.sandbox.run(&["fleet", "show", &url]).ok().stdout;
    assert!((0..4).all(|number| listed.contains(&format!("control = \"{url}/n{number}\""))), "{listed}");
    let args = ["mesh", &fleet.file, "--pattern", "rr", "--set", "rate=500/s", "--rounds", "3", "--time", "300ms"];
    let mut mesh = fleet.sandbox.start(&[&args[..], &["--name", "m"]].concat());
    mesh.until_printed("round 1, ");
    fleet.bus.as_mut().unwrap().restart();
    let finished = mesh.wait().ok();
    let doc = fleet.sandbox.run(&["export", "m", "--format", "json"]).ok().doc();
    assert_eq!(doc.run.outcomes.len(), 12, "{}", finished.stderr);
    assert!(doc.run.outcomes.iter().all(|outcome| outcome.trials.len() == 3), "{}", finished.stderr);

    // The coordinator's host dies; another one, with a store of its own, goes on from the bus.
    let mut mesh = fleet.sandbox.start(&[&args[..], &["--name", "k"]].concat());
    let stored = || fleet.sandbox.run(&["runs", "--json"]).ok().stdout;
    program::eventually("two trials are stored", || {
        assert!(mesh.runs(), "it ended: {}", mesh.stderr());
        let doc = fleet.sandbox.command(&["export", "k", "--format", "json"]).output().unwrap();
        String::from_utf8_lossy(&doc.stdout).matches("\"position\"").count() >= 2
    });
    let id = run_called(&stored(), "k");
    mesh.signal(Signal::KILL);
    drop(mesh.wait());
    let other = Sandbox::new();
    let known = fleet.sandbox.path("known_agents");
    if known.exists() {
        fs::copy(known, other.path("known_agents")).unwrap();
    }
    other.run(&[&args[..], &["--resume", &id]].concat()).ok();
    let doc = other.run(&["export", &id, "--format", "json"]).ok().doc();
    assert_eq!((doc.run.header.id.as_str(), doc.run.header.name.as_deref()), (id.as_str(), Some("k")));
    assert!(doc.run.outcomes.iter().all(|outcome| outcome.trials.len() == 3));
    // A finished run is known as such from the bus.
    let third = Sandbox::new();
    let again = third.run(&[&args[..], &["--resume", &id]].concat()).ended_with(2).message();
    assert!(again.contains("is finished"), "{again}");
    let unknown = third.run(&[&args[..], &["--resume", "nosuch"]].concat()).ended_with(6).message();
    assert!(unknown.contains("nosuch"), "{unknown}");
}

/// The id of the run with that name, from `thru runs --json`.
fn run_called(runs: &str, name: &str) -> String {
    let run = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let named = runs.lines().map(run).find(|run| run["name"] == name).unwrap();
    named["id"].as_str().unwrap().to_owned()
}

#[test]
fn agents_on_a_bus_keep_what_is_not_stored() {
    let Some(bus) = BusServer::start("agents_on_a_bus_keep_what_is_not_stored") else { return };
    let fleet = Fleet::with(2, Some(bus), |_| Vec::new());
    let folders: Vec<PathBuf> = fleet.agents.iter().map(Agent::state).collect();
    taken_from_agents(&fleet, &folders);
}

/// A coordinator is killed after a test that it has not heard the end of.
fn taken_from_agents(fleet: &Fleet, folders: &[PathBuf]) {
    let kept = || folders.iter().map(|folder| results_in(folder)).sum::<u32>();
    let args = ["mesh", &fleet.file, "--pattern", "rr", "--rounds", "4", "--time", "700ms", "--set", "rate=200/s"];
    let mut mesh = fleet.sandbox.start(&[&args[..], &["--name", "k"]].concat());
    program::eventually("a trial is stored", || {
        assert!(mesh.runs(), "it ended: {}", mesh.stderr());
        fleet.sandbox.run(&["runs", "--json"]).ok().stdout.contains("\"k\"")
    });
    program::eventually("both ends of a test have kept what the coordinator does not know", || {
        assert!(mesh.runs(), "it ended: {}", mesh.stderr());
        mesh.signal(Signal::STOP);
        let (before, begun) = (kept(), Instant::now());
        while begun.elapsed() < Duration::from_secs(3) {
            if kept() >= before + 2 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        mesh.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(100));
        false
    });
    mesh.signal(Signal::KILL);
    drop(mesh.wait());
    let resumed = fleet.sandbox.run(&[&args[..], &["--resume", "k"]].concat()).ok();
    assert!(resumed.stderr.contains("1 test was not repeated"), "{}", resumed.stderr);
    let run = fleet.sandbox.run(&["export", "k", "--format", "json"]).ok().doc().run;
    assert!(run.outcomes.iter().all(|outcome| outcome.trials.len() == 4 && outcome.estimate.is_some()));
    let rounds: Vec<u32> = run.passes.iter().filter_map(|pass| pass.round).collect();
    assert_eq!(rounds, [0, 0, 1, 1, 2, 2, 3, 3]);
    let starts: Vec<u64> = run.passes.iter().filter_map(|pass| pass.started_unix_ns).collect();
    assert!(starts.len() == 8 && starts.is_sorted(), "{starts:?}");
    program::eventually("nothing is kept any more", || kept() == 0);
}

/// Number of the results that an agent has kept in a folder.
fn results_in(folder: &Path) -> u32 {
    let file = rusqlite::Connection::open(folder.join("results.sqlite")).unwrap();
    file.busy_timeout(Duration::from_secs(10)).unwrap();
    file.query_row("SELECT count(*) FROM result", [], |row| row.get(0)).unwrap()
}

#[test]
fn what_is_wrong_with_a_bus_is_told() {
    let test = "what_is_wrong_with_a_bus_is_told";
    let Some(fleet) = Fleet::by(Way::Bus, 2, test) else { return };
    let url = fleet.bus.as_ref().unwrap().url();
    let sandbox = &fleet.sandbox;
    let token = sandbox.token_flags();
    let said = |args: &[&str], code| sandbox.run(args).ended_with(code).message();
    assert!(said(&["rr", &format!("{url}/n7"), token[0], token[1]], 3).contains("has the name 'n7'"));
    assert!(said(&["rr", &url], 2).contains("the name of an agent is missing"));
    assert!(said(&["rr", "nats://me:secret@b/n"], 2).contains("THRU_BUS_CREDS"));
    assert!(said(&["mesh", "nats://127.0.0.1:1"], 3).contains("check the address"));
    assert!(said(&["serve", "--bus", &url], 2).contains("--bus lets clients"));
    let taken = format!("{url}/n1");
    let key = sandbox.path("another.key").display().to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--bus", &taken, "--key-file", &key, token[0], token[1]];
    let taken = said(&serve, 7);
    assert!(taken.contains("has the name 'n1' (127.0.0.1)"), "{taken}");
    // One host of the bus is measured as any other.
    let doc = sandbox.measure(&["rr", &format!("{url}/n1"), "--time", "50ms", "--trials", "1", token[0], token[1]]);
    assert!(doc.run.outcomes[0].estimate.is_some());
}

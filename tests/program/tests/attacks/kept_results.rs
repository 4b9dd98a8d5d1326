//! Results that an agent keeps: readable at any size, and not a way to fill its memory.

use program::wire::Wire;
use program::{Agent, Sandbox, skip};
use rusqlite::{Connection, params};
use serde_json::json;

const RUN: &str = "0123456789abcdef0123456789abcdef";
/// Bytes of a result.
const LONG: usize = 2 << 20;

/// An agent, with so many results of a run.
fn agent(sandbox: &Sandbox, results: u32) -> (Agent, Connection) {
    let folder = sandbox.path("kept");
    let agent = Agent::with(&["--keep-results", &folder.display().to_string()]);
    let file = Connection::open(folder.join("results.sqlite")).unwrap();
    for trial in 0..results {
        let of = json!({"run": RUN, "test": "t", "attempt": trial.to_string(), "started_unix_ns": 1});
        let done = json!({"tallies": [], "failure": {"statement": "x".repeat(LONG)}, "elapsed_ns": 1, "host": {"cpu": null, "setup_ns": 0}});
        let kept = json!({"of": of, "trial": trial, "role": "active", "done": done}).to_string();
        let insert = "INSERT INTO result (run, trial, kept_unix_s, result) VALUES (?1, ?2, 4000000000, ?3)";
        file.execute(insert, params![RUN, trial, kept.as_bytes()]).unwrap();
    }
    (agent, file)
}

fn ask(agent: &Agent) -> Wire {
    let wire = Wire::dial(agent.host());
    wire.greet();
    wire.send(&json!({"results": {"run": RUN}}));
    wire
}

#[test]
fn a_confined_agent_reads_results_of_any_size_and_says_which_it_cannot_read() {
    if !skip::root("a_confined_agent_reads_results_of_any_size_and_says_which_it_cannot_read") {
        return;
    }
    let sandbox = Sandbox::new();
    let (agent, file) = agent(&sandbox, 8);
    let wire = ask(&agent);
    for trial in 0..8 {
        let result = wire.receive().unwrap();
        assert_eq!((result.name.as_str(), &result["trial"]), ("result", &json!(trial)), "in order");
    }
    let end = wire.receive().unwrap();
    assert_eq!((end.name.as_str(), &end["unread"]), ("no-more-results", &json!(null)));
    file.execute_batch("DROP TABLE result").unwrap();
    let end = ask(&agent).receive().unwrap();
    assert_eq!(end.name, "no-more-results");
    assert!(end["unread"]["statement"].as_str().unwrap().contains("cannot read results"), "{end}");
}

#[test]
fn clients_that_ask_for_results_and_do_not_read_take_no_memory_and_no_turn_of_others() {
    let sandbox = Sandbox::new();
    let (agent, _file) = agent(&sandbox, 30);
    let before = agent.resident_kib();
    let asking: Vec<Wire> = (0..20).map(|_| ask(&agent)).collect();
    let honest = Sandbox::new();
    for _ in 0..3 {
        honest.run(&["rr", agent.host(), "--time", "20ms", "--trials", "1", "--no-path", "--no-store"]).ok();
    }
    let after = agent.resident_kib();
    assert!(after < before + (60 << 10), "{before} KiB before, {after} KiB after");
    drop(asking);
}

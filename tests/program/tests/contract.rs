//! The published contract: the JSON Schemas in docs/schema are those of this program, and what it prints keeps to them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;

use jsonschema::Validator;
use program::{Agent, Sandbox, binary, check};
use serde_json::Value;

/// A measurement of each kind, short.
const MEASUREMENTS: [&[&str]; 7] = [
    &["stream", "--time", "50ms", "--trials", "3", "--interval", "10ms"],
    &["stream", "--both", "--transport", "udp", "--rate", "50Mbit", "--time", "50ms", "--trials", "1"],
    &["rr", "--time", "50ms", "--trials", "3", "--flows", "3"],
    &["rr", "--connect", "--time", "50ms", "--trials", "1"],
    &["transfer", "--count", "7", "--flows", "2", "--processes", "2", "--rcvbuf", "64KiB,128KiB"],
    &["curve", "--to", "64", "--trials", "3", "--time", "1ms", "--adaptive"],
    &["curve", "--stream", "--to=64", "--perturbation=0", "--trials=3", "--time=1ms", "--no-ceiling", "--seed=5"],
];

fn schema(name: &str) -> Validator {
    let text = fs::read_to_string(binary::workspace().join("docs/schema").join(name)).expect("the schema is kept here");
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).expect("a schema")
}

/// What a schema has against a value, if anything.
fn objections(schema: &Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_schemas_in_the_repository_are_this_programs() {
    let sandbox = Sandbox::new();
    sandbox.run(&["generate", "schema", "fresh"]).ok();
    for name in ["run", "event", "comparison", "selftest", "why"].map(|name| format!("{name}.schema.json")) {
        let kept = fs::read_to_string(binary::workspace().join("docs/schema").join(&name)).unwrap();
        let fresh = fs::read_to_string(sandbox.path("fresh").join(&name)).unwrap();
        assert!(kept == fresh, "`thru generate schema` writes another {name} than docs/schema has");
    }
}

#[test]
fn documents_keep_to_their_schema() {
    let (agent, sandbox, schema) = (Agent::start(), Sandbox::new(), schema("run.schema.json"));
    for measurement in MEASUREMENTS {
        let doc = sandbox.measure(&[measurement, &[agent.host()]].concat());
        assert_eq!(objections(&schema, &doc.json), [""; 0], "{measurement:?}");
        check::document(&doc, &measurement.join(" "));
        // Nothing is lost between the document that was printed and the one that was kept.
        let shown: Value = serde_json::from_str(&sandbox.run(&["show", "--json"]).ok().stdout).unwrap();
        assert_eq!(shown, doc.json, "{measurement:?}");
    }
}

#[test]
fn comparisons_keep_to_their_schemas() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let side = "rr --count 50";
    let doc = sandbox.measure(&["ab", "--a", side, "--b", side, "--pairs", "12", "--tolerance", "99%", agent.host()]);
    assert_eq!(objections(&schema("run.schema.json"), &doc.json), [""; 0]);
    assert!(doc.json.pointer("/findings/0/comparison/answer").is_some());
    for name in ["one", "two"] {
        let curve = ["curve", "--transport", "unix", "--to", "64", "--trials", "3", "--time", "1ms", "--quiet"];
        sandbox.run(&[&curve[..], &["--name", name]].concat()).ok();
    }
    let compared = sandbox.run(&["compare", "one", "two", "--json", "--tolerance", "99%"]).stdout;
    let compared: Value = serde_json::from_str(&compared).expect("a document");
    assert_eq!(objections(&schema("comparison.schema.json"), &compared), [""; 0]);
    assert!(compared["cells"].as_array().unwrap().len() > 10, "a curve has a cell for each size");
}

#[test]
fn the_schema_can_say_no() {
    let (agent, sandbox, schema) = (Agent::start(), Sandbox::new(), schema("run.schema.json"));
    let doc = sandbox.measure(&["transfer", "--count", "1", agent.host()]);
    for (pointer, wrong) in [
        ("/outcomes/0/summary/bytes_sent", Value::from(-1)),
        ("/outcomes/0/summary/trust", Value::from("blind")),
        ("/header/cells/0/spec/block", Value::from("many")),
        ("/outcomes/0/trials/0/near", Value::Null),
    ] {
        let mut broken = doc.json.clone();
        *broken.pointer_mut(pointer).unwrap_or_else(|| panic!("the document has {pointer}")) = wrong;
        assert_ne!(objections(&schema, &broken), [""; 0], "{pointer}");
    }
}

#[test]
fn live_events_keep_to_their_schema_and_add_up_to_the_run() {
    let (agent, sandbox, schema) = (Agent::start(), Sandbox::new(), schema("event.schema.json"));
    for measurement in MEASUREMENTS {
        let finished = sandbox.run(&[measurement, &["--live", agent.host()]].concat()).ok();
        let events: Vec<Value> =
            finished.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        for event in &events {
            assert_eq!(objections(&schema, event), [""; 0], "{measurement:?}: {event}");
        }
        let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!((kinds.first(), kinds.last()), (Some(&"run"), Some(&"end")), "{measurement:?}");
        let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
        let shown: Value = serde_json::from_str(&sandbox.run(&["show", "--json"]).ok().stdout).unwrap();
        let outcomes = shown["outcomes"].as_array().unwrap();
        let trials: usize = outcomes.iter().map(|outcome| outcome["trials"].as_array().unwrap().len()).sum();
        assert_eq!(count("outcome"), outcomes.len(), "{measurement:?}");
        assert_eq!(count("trial"), trials, "{measurement:?}");
        assert_eq!(count("pass"), shown["passes"].as_array().unwrap().len(), "{measurement:?}");
        // What is exported from the store has the same form, without the events that are for those who wait.
        let exported = sandbox.run(&["export", "last", "--format", "ndjson"]).ok().stdout;
        for line in exported.lines() {
            let event: Value = serde_json::from_str(line).expect("a line of JSON");
            assert_eq!(objections(&schema, &event), [""; 0], "{measurement:?}: {line}");
        }
        assert_eq!(exported.lines().filter(|line| line.contains("\"event\":\"trial\"")).count(), trials);
    }
}

#[test]
fn live_readings_come_while_the_trial_runs() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let mut running =
        sandbox.start(&["stream", "--time", "60s", "--trials", "1", "--interval", "50ms", "--live", agent.host()]);
    running.until_printed("\"event\":\"interval\"");
    assert!(running.runs(), "the trial is still going on");
}

//! After a failed set-up both ends are reset, and the same agents measure on.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::transport::FlowHello;
use model::{Pattern, Spec, Stop};
use program::wire::{self, Message, Wire};
use program::{Agent, Sandbox, check};
use serde_json::{Value, json};

fn prepare(trial: u32, flows: u32) -> Value {
    let stop = Stop::TimeNs(50_000_000);
    let spec = Spec { flows, block: 1_000, stop, ..Spec::new("tcp", Pattern::Stream) };
    let leg = json!({"block": spec.block, "reply": spec.reply_bytes(), "stop": stop});
    json!({"prepare": {"trial": trial, "role": "passive", "spec": spec, "legs": [leg]}})
}

/// The cookie of a passive end that listens.
fn cookie(listening: &Message) -> [u8; 16] {
    assert_eq!(listening.name, "listening", "{listening}");
    let text = listening["rendezvous"][0]["cookie"].as_str().unwrap();
    std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
}

/// A data connection that the agent accepted.
fn connect(agent: &Agent, cookie: [u8; 16], trial: u32) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(agent.host()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&FlowHello::new(cookie, trial, 0).unwrap().encode()).unwrap();
    let mut answer = [0; 1];
    (stream.read_exact(&mut answer).is_ok() && &answer == b"K").then_some(stream)
}

#[test]
fn a_reset_cancels_what_is_prepared_and_the_next_trial_starts_anew() {
    let agent = Agent::start();
    let wire = Wire::dial(agent.host());
    wire.greet();
    wire.send(&json!({"acquire": {"purpose": "a test"}}));
    assert_eq!(wire.receive().unwrap().name, "granted");
    let reset = json!("reset");
    // Nothing is prepared yet.
    wire.send(&reset);
    assert_eq!(wire.receive().unwrap().value(), reset);
    // Its own failure arrives before the answer.
    wire.send(&prepare(0, 0));
    wire.send(&reset);
    assert_eq!(wire.receive().unwrap().name, "failed");
    assert_eq!(wire.receive().unwrap().value(), reset);
    wire.send(&prepare(1, 1));
    let cancelled = cookie(&wire.receive().unwrap());
    let workers = agent.workers();
    wire.send(&reset);
    assert_eq!(wire.receive().unwrap().value(), reset);
    assert!(connect(&agent, cancelled, 1).is_none(), "it accepts no connection for the cancelled trial");
    wire.send(&prepare(2, 1));
    let next = cookie(&wire.receive().unwrap());
    assert!(agent.workers().iter().all(|worker| !workers.contains(worker)), "its workers are new");
    let accepted = connect(&agent, next, 2);
    assert!(accepted.is_some());
    assert_eq!(wire.receive().unwrap().name, "armed");
}

/// The number of the trial whose set-up fails at the near end: the one after the pilot trials.
const FAILS: usize = 4;

/// A relay in front of the near agent: one set-up fails there, while the far end already waits for its connections. Returns its
/// address and the names of the coordinator's messages.
fn failing_once(agent: &Agent) -> (String, Arc<Mutex<Vec<String>>>) {
    let (agent, names) = (agent.host().to_owned(), Arc::new(Mutex::new(Vec::<String>::new())));
    let seen = names.clone();
    let address = wire::agent(move |coordinator| {
        let to_agent = Wire::dial(&agent);
        let (from_agent, to_coordinator) = (to_agent.clone(), coordinator.clone());
        std::thread::spawn(move || {
            while let Some(message) = from_agent.next_message() {
                if to_coordinator.try_send(&message.value()).is_err() {
                    return;
                }
            }
        });
        let names = seen.clone();
        std::thread::spawn(move || {
            while let Some(message) = coordinator.next_message() {
                let name = message.name.clone();
                let mut names = names.lock().unwrap();
                names.push(name.clone());
                let prepared = names.iter().filter(|name| *name == "prepare").count();
                drop(names);
                let answer = |message: Value| coordinator.send(&message);
                if name == "prepare" && prepared == FAILS {
                    answer(json!({"failed": {"reason": {"statement": "a failure of this test"}, "cause": "setup"}}));
                    continue;
                }
                if name == "reset" {
                    // A late message of the failed set-up.
                    answer(json!("armed"));
                }
                if to_agent.try_send(&message.value()).is_err() {
                    return;
                }
            }
        });
    });
    (address, names)
}

#[test]
fn after_a_failed_set_up_the_same_agents_measure_on() {
    let (near, far, sandbox) = (Agent::start(), Agent::start(), Sandbox::new());
    let (relay, names) = failing_once(&near);
    let args = ["advise", "--from", &relay, "--budget", "12s", "--time", "30ms", far.host(), "--json", "-"];
    let doc = sandbox.run(&args).ok().doc();
    check::document(&doc, "a search with a failed set-up");
    let names = names.lock().unwrap();
    let count = |name: &str| names.iter().filter(|seen| *seen == name).count();
    assert_eq!(count("reset"), 1, "{names:?}");
    let trials: usize = doc.run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
    assert_eq!(trials, count("prepare") - 1, "all others are measured: {:?}", doc.run.advice);
    assert!(trials >= FAILS, "it measured on: {trials}");
}

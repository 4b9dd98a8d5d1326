//! Whoever reaches an agent's port and has no token.

use program::wire::Wire;
use program::{Agent, Sandbox, eventually};
use serde_json::{Value, json};

/// A hello of another protocol, with a version as long as a line of the log may be.
fn other_hello() -> Value {
    json!({"hello": {"protocol": 0, "version": "x".repeat(440), "nonce": "00"}})
}

#[test]
fn unauthenticated_clients_cause_few_lines_of_the_log() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &[]);
    let before = agent.log().len();
    for _ in 0..40 {
        let wires: Vec<Wire> = (0..51).map(|_| Wire::dial(agent.host())).collect();
        wires.iter().for_each(|wire| wire.send(&other_hello()));
        // The agent refuses each and closes it.
        wires.iter().for_each(|wire| while wire.receive().is_some() {});
    }
    let logged = agent.log().len() - before;
    assert!((10_000..220 * 600).contains(&logged), "{logged} bytes of 2,040 connections");
    // Who has the token is logged all the same.
    sandbox.run(&["rr", agent.host(), "--time", "20ms", "--trials", "1", "--no-path", "--no-store"]).ok();
    eventually("the client is in the log", || agent.log().contains(": measures "));
}

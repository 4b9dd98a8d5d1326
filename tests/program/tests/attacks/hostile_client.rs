//! A client that an agent accepts, and that does what no client of ours does.

use program::wire::Wire;
use program::{Agent, Sandbox, eventually};
use serde_json::json;

#[test]
fn long_messages_end_a_session_and_cost_no_memory() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let before = agent.resident_kib();
    // One of them takes more than the bound.
    let long = json!({"acquire": {"purpose": "x".repeat(12 << 20)}});
    for _ in 0..8 {
        let wire = Wire::dial(agent.host());
        wire.greet();
        // The agent closes at the announced length; the rest of the message may find no reader.
        let _ = wire.try_send(&long);
        assert_eq!(wire.receive(), None);
    }
    eventually("it says so", || agent.log().contains("over the limit of 1048576"));
    let after = agent.resident_kib();
    assert!(after < before + (8 << 10), "{before} KiB before, {after} KiB after");
    sandbox.measure(&["transfer", "--count", "1", agent.host()]);
}

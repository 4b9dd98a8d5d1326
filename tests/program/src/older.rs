//! An agent of an older version: a relay in front of a real one. It removes capabilities from the agent's hello and their fields
//! from the messages in both directions, and closes the connection on a message that such an agent would not know.

use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::client::TOKEN;
use crate::wire::{self, Wire};

/// An extension of the protocol.
struct Extension {
    capability: &'static str,
    /// Its messages from coordinators.
    messages: &'static [&'static str],
    /// Its fields in messages of either direction, at any depth.
    fields: &'static [&'static str],
}

#[rustfmt::skip]
static EXTENSIONS: [Extension; 15] = [
    Extension { capability: "tune", messages: &["tune", "keep", "untune", "show", "journal", "revert"], fields: &["settings"] },
    Extension { capability: "conditions", messages: &["read-conditions"], fields: &[] },
    Extension { capability: "watch", messages: &["watch"], fields: &[] },
    Extension { capability: "path", messages: &["clock", "probe-path"], fields: &[] },
    Extension { capability: "reach-token", messages: &["issue-reach-token"], fields: &["reach_token"] },
    Extension { capability: "fetch", messages: &["fetch", "forget"], fields: &["fetch_bytes"] },
    Extension { capability: "capture", messages: &[], fields: &["capture"] },
    Extension { capability: "observe", messages: &[], fields: &["observe", "observe_interval_ns", "observed"] },
    Extension { capability: "cpu", messages: &[], fields: &["cpu", "host_ns", "host_resolution_ns"] },
    // Without a capability: TCP over time, and the busiest thread.
    Extension { capability: "tcp", messages: &[], fields: &["tcp", "busiest"] },
    Extension { capability: "drain", messages: &[], fields: &["drain_bps"] },
    Extension { capability: "delayed-reads", messages: &[], fields: &["delayed_reads"] },
    Extension { capability: "overlap-close", messages: &[], fields: &["overlap_close"] },
    Extension { capability: "anatomy", messages: &[], fields: &["anatomy"] },
    Extension { capability: "join", messages: &[], fields: &["join", "ticket"] },
];

/// All capabilities that an agent may lack, except reachability tokens: the real agent connects to no other agent without one.
#[must_use]
pub fn everything() -> Vec<&'static str> {
    EXTENSIONS.iter().map(|extension| extension.capability).filter(|capability| *capability != "reach-token").collect()
}

/// A relay that ends with the test's process.
#[derive(Debug)]
pub struct Older {
    address: String,
    unknown: Arc<Mutex<Vec<String>>>,
}

impl Older {
    /// A relay in front of the agent at `agent` that lacks `capabilities`.
    #[must_use]
    pub fn before(agent: &str, capabilities: &[&str]) -> Self {
        let (agent, unknown) = (agent.to_owned(), Arc::new(Mutex::new(Vec::new())));
        let lacks: Arc<Vec<&'static Extension>> =
            Arc::new(EXTENSIONS.iter().filter(|extension| capabilities.contains(&extension.capability)).collect());
        let received = unknown.clone();
        let address = wire::agent(move |coordinator| {
            let (agent, lacks, received) = (agent.clone(), lacks.clone(), received.clone());
            thread::spawn(move || relay(&coordinator, &agent, &lacks, &received));
        });
        Self { address, unknown }
    }

    /// Address and port, as a HOST argument.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.address
    }

    /// Messages that such an agent would not have known.
    ///
    /// # Panics
    /// When a relay has panicked.
    #[must_use]
    pub fn unknown_messages(&self) -> Vec<String> {
        self.unknown.lock().expect("no relay panics").clone()
    }
}

/// Relays one control connection; data goes to the agent's own port.
fn relay(coordinator: &Wire, agent: &str, lacks: &Arc<Vec<&'static Extension>>, unknown: &Arc<Mutex<Vec<String>>>) {
    let agent = Wire::dial(agent);
    let nonces = Arc::new(Nonces::default());
    let answers = thread::spawn({
        let (lacks, from, to, nonces) = (lacks.clone(), agent.clone(), coordinator.clone(), nonces.clone());
        move || carry(&from, &to, &lacks, |message| nonces.prove("agent", message, &to))
    });
    carry(coordinator, &agent, lacks, |message| {
        nonces.prove("coordinator", message, &agent);
        let name = message["say"].as_str().unwrap_or_default();
        let known = !lacks.iter().any(|extension| extension.messages.contains(&name));
        if !known {
            unknown.lock().expect("no relay panics").push(name.to_owned());
        }
        known
    });
    let _ = answers.join();
}

/// What the proofs of the token cover beside the connection. The relay knows the token: it proves it to each side anew.
#[derive(Default)]
struct Nonces {
    coordinator: Mutex<String>,
    agent: Mutex<String>,
}

impl Nonces {
    /// Notes the nonce in a message of `side`, and replaces its proof by one for the connection that it goes to.
    fn prove(&self, side: &str, message: &mut Value, to: &Wire) -> bool {
        let own = if side == "agent" { &self.agent } else { &self.coordinator };
        if let Some(nonce) = message["nonce"].as_str() {
            nonce.clone_into(&mut own.lock().expect("no relay panics"));
        }
        if message["mac"].is_string() {
            let text = |nonce: &Mutex<String>| nonce.lock().expect("no relay panics").clone();
            message["mac"] = to.proof(TOKEN, side, &text(&self.coordinator), &text(&self.agent)).into();
        }
        true
    }
}

/// Relays messages until one side closes or a message may not pass, then closes both connections.
fn carry(from: &Wire, to: &Wire, lacks: &[&'static Extension], passes: impl Fn(&mut Value) -> bool) {
    while let Some(mut message) = from.next_message() {
        if !passes(&mut message) {
            break;
        }
        if let Some(capabilities) = message.get_mut("capabilities").and_then(Value::as_array_mut) {
            capabilities.retain(|name| !lacks.iter().any(|extension| name == extension.capability));
        }
        // Data goes to the agent's own port, and not to that of the relay, which the control connection reached.
        for field in lacks.iter().flat_map(|extension| extension.fields).chain(&["shared"]) {
            cut(&mut message, field);
        }
        if to.try_send(&message).is_err() {
            break;
        }
    }
    from.close();
    to.close();
}

/// Removes a field at any depth.
fn cut(value: &mut Value, field: &str) {
    match value {
        Value::Object(fields) => {
            fields.remove(field);
            fields.values_mut().for_each(|value| cut(value, field));
        }
        Value::Array(entries) => entries.iter_mut().for_each(|value| cut(value, field)),
        _ => {}
    }
}

//! An agent of an older version: a relay before a real agent. It removes capabilities from the agent's hello and the fields of those
//! capabilities from messages in both directions, and closes the connection on messages that such an agent would not know.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::wire::{MAGIC, Wire, server};

/// The messages and fields of a capability.
struct Feature {
    capability: &'static str,
    /// Messages of coordinators.
    messages: &'static [&'static str],
    /// Fields of messages in either direction, at any depth.
    fields: &'static [&'static str],
}

#[rustfmt::skip]
static FEATURES: [Feature; 13] = [
    Feature { capability: "tune", messages: &["tune", "keep", "untune", "show", "journal", "revert"], fields: &["settings"] },
    Feature { capability: "conditions", messages: &["read-conditions"], fields: &[] },
    Feature { capability: "watch", messages: &["watch"], fields: &[] },
    Feature { capability: "path", messages: &["clock", "probe-path"], fields: &[] },
    Feature { capability: "vouch", messages: &["issue-reach-token"], fields: &["reach_token"] },
    Feature { capability: "fetch", messages: &["fetch", "forget"], fields: &["fetch_bytes"] },
    Feature { capability: "capture", messages: &[], fields: &["capture"] },
    Feature { capability: "observe", messages: &[], fields: &["observe", "observe_interval_ns", "observed"] },
    Feature { capability: "cpu", messages: &[], fields: &["cpu", "host_ns", "host_resolution_ns"] },
    // Without a capability of their own: TCP over time, and the busiest thread.
    Feature { capability: "tcp", messages: &[], fields: &["tcp", "busiest"] },
    Feature { capability: "drain", messages: &[], fields: &["drain_bps"] },
    Feature { capability: "delayed-reads", messages: &[], fields: &["delayed_reads"] },
    Feature { capability: "overlap-close", messages: &[], fields: &["overlap_close"] },
];

/// All capabilities except `vouch`: the real agent behind the relay connects to no other agent without it.
#[must_use]
pub fn everything() -> Vec<&'static str> {
    FEATURES.iter().map(|feature| feature.capability).filter(|capability| *capability != "vouch").collect()
}

/// A relay that ends with the test's process.
#[derive(Debug)]
pub struct OlderAgent {
    address: String,
    unexpected: Arc<Mutex<Vec<String>>>,
}

impl OlderAgent {
    /// A relay to the agent at `agent` without `capabilities`.
    #[must_use]
    pub fn before(agent: &str, capabilities: &[&str]) -> Self {
        let (agent, unexpected) = (agent.to_owned(), Arc::new(Mutex::new(Vec::new())));
        let lacks: Arc<Vec<&'static Feature>> =
            Arc::new(FEATURES.iter().filter(|feature| capabilities.contains(&feature.capability)).collect());
        let seen = unexpected.clone();
        let address = server(move |stream| {
            let (agent, lacks, seen) = (agent.clone(), lacks.clone(), seen.clone());
            thread::spawn(move || relay(stream, &agent, &lacks, &seen));
        });
        Self { address, unexpected }
    }

    /// Address and port, as a HOST argument.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.address
    }

    /// Messages that such an agent would not have known.
    ///
    /// # Panics
    /// When a relay has.
    #[must_use]
    pub fn unexpected(&self) -> Vec<String> {
        self.unexpected.lock().expect("no relay panics").clone()
    }
}

/// Carries one control connection; data goes to the agent's own port.
fn relay(
    mut coordinator: TcpStream,
    agent: &str,
    lacks: &Arc<Vec<&'static Feature>>,
    unexpected: &Arc<Mutex<Vec<String>>>,
) {
    let mut magic = [0; 8];
    let Ok(mut stream) = TcpStream::connect(agent) else { return };
    if coordinator.read_exact(&mut magic).is_err() || &magic != MAGIC || stream.write_all(&magic).is_err() {
        return;
    }
    let ends = |stream: &TcpStream| stream.try_clone().map(Wire);
    let (Ok(from_agent), Ok(to_coordinator)) = (ends(&stream), ends(&coordinator)) else { return };
    let back = thread::spawn({
        let lacks = lacks.clone();
        move || carry(from_agent, to_coordinator, &lacks, |_| true)
    });
    carry(Wire(coordinator), Wire(stream), lacks, |message| {
        let known = !lacks.iter().any(|feature| feature.messages.contains(&message));
        if !known {
            unexpected.lock().expect("no relay panics").push(message.to_owned());
        }
        known
    });
    let _ = back.join();
}

/// Forwards messages until one side closes or `passes` rejects one, and closes both connections.
fn carry(mut from: Wire, mut to: Wire, lacks: &[&'static Feature], passes: impl Fn(&str) -> bool) {
    while let Some(mut message) = from.next_message() {
        if !message["say"].as_str().is_some_and(&passes) {
            break;
        }
        if let Some(capabilities) = message.get_mut("capabilities").and_then(Value::as_array_mut) {
            capabilities.retain(|name| !lacks.iter().any(|feature| name == feature.capability));
        }
        for field in lacks.iter().flat_map(|feature| feature.fields) {
            cut(&mut message, field);
        }
        if to.try_send(&message).is_err() {
            break;
        }
    }
    for stream in [from.0, to.0] {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
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

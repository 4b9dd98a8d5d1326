//! An agent of an older version: a relay before a real one, which cuts from its greeting what it is not to be able to do, takes the
//! marks of that from what is said in both directions, and hangs up on messages that such an agent would not know.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::wire::{MAGIC, Wire, server};

/// What came with a capability.
struct Came {
    capability: &'static str,
    /// Messages of coordinators.
    messages: &'static [&'static str],
    /// Fields of messages in either direction, wherever they stand.
    fields: &'static [&'static str],
}

#[rustfmt::skip]
static CAME: [Came; 13] = [
    Came { capability: "tune", messages: &["tune", "keep", "untune", "show", "journal", "revert"], fields: &["settings"] },
    Came { capability: "conditions", messages: &["look"], fields: &[] },
    Came { capability: "watch", messages: &["watch"], fields: &[] },
    Came { capability: "path", messages: &["clock", "look-at"], fields: &[] },
    Came { capability: "vouch", messages: &["vouch"], fields: &["voucher"] },
    Came { capability: "fetch", messages: &["fetch", "forget"], fields: &["fetch_bytes"] },
    Came { capability: "capture", messages: &[], fields: &["capture"] },
    Came { capability: "observe", messages: &[], fields: &["observe", "observe_interval_ns", "observed"] },
    Came { capability: "cpu", messages: &[], fields: &["cpu", "host_ns", "host_resolution_ns"] },
    // Without a capability of its own: TCP over time, and which thread was busiest.
    Came { capability: "tcp", messages: &[], fields: &["tcp", "busiest"] },
    Came { capability: "drain", messages: &[], fields: &["drain_bps"] },
    Came { capability: "delayed-reads", messages: &[], fields: &["delayed_reads"] },
    Came { capability: "overlap-close", messages: &[], fields: &["overlap_close"] },
];

/// Everything that an agent may lack, but for vouching: the agent behind the relay is one that connects to nobody without it.
#[must_use]
pub fn everything() -> Vec<&'static str> {
    CAME.iter().map(|came| came.capability).filter(|capability| *capability != "vouch").collect()
}

/// A relay that ends with the test's process.
#[derive(Debug)]
pub struct Older {
    place: String,
    strange: Arc<Mutex<Vec<String>>>,
}

impl Older {
    /// Stands before the agent at `agent` and lacks `capabilities`.
    #[must_use]
    pub fn before(agent: &str, capabilities: &[&str]) -> Self {
        let (agent, strange) = (agent.to_owned(), Arc::new(Mutex::new(Vec::new())));
        let lacks: Arc<Vec<&'static Came>> =
            Arc::new(CAME.iter().filter(|came| capabilities.contains(&came.capability)).collect());
        let heard = strange.clone();
        let place = server(move |stream| {
            let (agent, lacks, heard) = (agent.clone(), lacks.clone(), heard.clone());
            thread::spawn(move || relay(stream, &agent, &lacks, &heard));
        });
        Self { place, strange }
    }

    /// Address and port, as HOST wants it.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.place
    }

    /// Messages that such an agent would not have known.
    ///
    /// # Panics
    /// When a relay has.
    #[must_use]
    pub fn strange(&self) -> Vec<String> {
        self.strange.lock().expect("no relay panics").clone()
    }
}

/// Carries one control connection; data goes to the agent's own port.
fn relay(mut coordinator: TcpStream, agent: &str, lacks: &Arc<Vec<&'static Came>>, strange: &Arc<Mutex<Vec<String>>>) {
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
    carry(Wire(coordinator), Wire(stream), lacks, |said| {
        let known = !lacks.iter().any(|came| came.messages.contains(&said));
        if !known {
            strange.lock().expect("no relay panics").push(said.to_owned());
        }
        known
    });
    let _ = back.join();
}

/// Carries messages until one side closes or one may not pass, and closes both.
fn carry(mut from: Wire, mut to: Wire, lacks: &[&'static Came], passes: impl Fn(&str) -> bool) {
    while let Some(mut message) = from.next_message() {
        if !message["say"].as_str().is_some_and(&passes) {
            break;
        }
        if let Some(capabilities) = message.get_mut("capabilities").and_then(Value::as_array_mut) {
            capabilities.retain(|name| !lacks.iter().any(|came| name == came.capability));
        }
        for field in lacks.iter().flat_map(|came| came.fields) {
            cut(&mut message, field);
        }
        if to.try_say(&message).is_err() {
            break;
        }
    }
    for stream in [from.0, to.0] {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Takes a field out, wherever it stands.
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

//! Why an agent is not reached, although something answers at its address.

use std::time::Duration;

use text::Said;

use crate::ControlError;
use crate::connection_end::ConnectionEnd;
use crate::patience::ControlPath;
use protocol::coordinator::DialogueError;
use protocol::hello::Hello;
use protocol::{PROTOCOL, program};

/// The connection was lost before the agent accepted this coordinator.
pub(super) fn lost_in_greeting(address: &str, reason: &ConnectionEnd) -> ControlError {
    let during = "during the greeting".into();
    DialogueError::Lost { address: address.to_owned(), during, reason: reason.say() }.into()
}

/// The error for an agent with this hello, if the two programs speak different protocols.
pub(super) fn incompatible(theirs: &Hello, address: &str) -> Option<ControlError> {
    (theirs.protocol != PROTOCOL).then(|| ControlError::Version {
        older: if theirs.protocol > PROTOCOL { "this host" } else { "that host" },
        address: address.to_owned(),
        theirs: program(&model::plain(&theirs.version), theirs.protocol),
        ours: program(env!("CARGO_PKG_VERSION"), PROTOCOL),
    })
}

/// The error for an agent that accepts the connection and says nothing.
pub(super) fn silent(address: String, waited: Duration) -> ControlError {
    ControlError::NoGreeting { address, what: ConnectionEnd::Silent { waited } }
}

/// The error for a service that made no TLS handshake. It is not an agent, or, if the connection broke, an agent on a bad path.
pub(super) fn without_tls(name: String, error: std::io::Error, path: &ControlPath) -> ControlError {
    match error.kind() {
        std::io::ErrorKind::InvalidData => ControlError::NoAgent { address: name },
        _ => ControlError::NoGreeting { address: name, what: path.end_by(error) },
    }
}

//! Why a measurement could not be started or finished.

use std::io;

use protocol::coordinator::DialogueError;
use text::{Said, Text};

use crate::connection_end::ConnectionEnd;
use crate::key_error::KeyError;

/// A failure between hosts, with the host and the remedy.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum ControlError {
    /// The host's name does not resolve.
    #[error("cannot resolve '{host}': {source}; check the name, or use an address")]
    Resolve {
        /// As the user wrote it.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The text is not a host with an optional port.
    #[error(
        "'{host}' is not a valid host: {what}; write a name or an address, such as b, b:7000, 192.0.2.1 or [2001:db8::1]:7000"
    )]
    InvalidHost {
        /// As the user wrote it.
        host: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A bus fails, or has no such agent.
    #[error(transparent)]
    Bus(#[from] bus::BusError),
    /// No agent answers at the address.
    #[error("cannot reach an agent at {address}: {source}; {}", remedy.plain())]
    Unreachable {
        /// Host and port.
        address: String,
        /// The kernel's error.
        source: io::Error,
        /// What to do.
        remedy: Text,
    },
    /// Another service answers at the address.
    #[error("{address} answers, but it is not a thru agent; check the port, or start `thru serve` there")]
    NoAgent {
        /// Host and port.
        address: String,
    },
    /// A connection was made, and no agent greeted.
    #[error(
        "{address} accepted the connection, but no agent answered ({what}): it may not be a thru agent, or the path may be too \
         slow or lossy; check the port and the path, or start `thru serve` there"
    )]
    NoGreeting {
        /// Host and port.
        address: String,
        /// What happened.
        what: ConnectionEnd,
    },
    /// A link-local address does not say on which link it is.
    #[error("'{host}': {hint}")]
    NoInterface {
        /// As the user wrote it.
        host: String,
        /// What is missing, with the interfaces of this host.
        hint: String,
    },
    /// The two programs have no version of the protocol in common.
    #[error("{address} runs thru {theirs} and this host runs thru {ours}: update thru on {older}")]
    Version {
        /// Host and port.
        address: String,
        /// The peer's program version and protocol: `0.1.0 (protocol 1)`.
        theirs: String,
        /// This program's version and protocol.
        ours: String,
        /// The host with the older program: "that host" or "this host".
        older: &'static str,
    },
    /// The agent's key is not the one that it is known by.
    #[error("{address}: {what}")]
    Key {
        /// Host and port.
        address: String,
        /// What is wrong and what to do.
        what: KeyError,
    },
    /// A dialogue with agents failed.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
    /// A trial with another program at the far end failed.
    #[error("{}", _0.plain())]
    Program(Text),
    /// The spec is impossible.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// Results could not be stored or shown.
    #[error("cannot store results: {0}")]
    Sink(#[from] model::SinkError),
    /// An agent could not start.
    #[error("{operation}: {source}{}", hint.plain())]
    Io {
        /// The operation, with the address or path.
        operation: String,
        /// The kernel's error.
        source: io::Error,
        /// The remedy, or an empty text.
        hint: Text,
    },
}

impl ControlError {
    pub(crate) fn io(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io { operation: operation.into(), source: source.into(), hint: Text::default() }
    }
}

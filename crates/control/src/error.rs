//! Why a measurement could not be ordered or carried out.

use std::io;

/// A failure between hosts, with the host and what the user can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The host's name means nothing.
    #[error("cannot resolve '{host}': {source}; check the name, or give an address")]
    Resolve {
        /// As the user wrote it.
        host: String,
        /// The resolver's answer.
        source: io::Error,
    },
    /// What the user wrote names no host or no port.
    #[error(
        "'{host}' names no host: {what}; write a name or an address, such as b, b:7000, 192.0.2.1 or [2001:db8::1]:7000"
    )]
    Place {
        /// As the user wrote it.
        host: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Nobody answers there.
    #[error("cannot reach an agent at {address}: {source}; {remedy}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// The kernel's answer.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Something else answers there.
    #[error("{address} answers, but is no Throughline agent; check the port, or start `thru serve` there")]
    NoAgent {
        /// Host and port.
        address: String,
    },
    /// The two programs share no version of the protocol.
    #[error(
        "{address} runs thru {version}, which speaks protocol {theirs}; this one speaks {ours}: update thru on {older}"
    )]
    Version {
        /// Host and port.
        address: String,
        /// The peer's program version.
        version: String,
        /// The peer's protocol versions.
        theirs: String,
        /// Ours.
        ours: String,
        /// Which side is behind: "that host" or "this host".
        older: &'static str,
    },
    /// The token is missing or wrong.
    #[error("{address}: {what}")]
    Token {
        /// Host and port.
        address: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// The agent will not do it.
    #[error("{address} refuses: {reason}")]
    Refused {
        /// Host and port.
        address: String,
        /// Its reason, with its remedy.
        reason: String,
    },
    /// The connection to an agent ended in the middle.
    #[error("lost the agent at {address} {during}: {reason}; finished trials are kept")]
    Lost {
        /// Host and port.
        address: String,
        /// What was going on.
        during: String,
        /// What happened.
        reason: String,
    },
    /// One end's host cannot set the trial up.
    #[error("{address}: {reason}")]
    Setup {
        /// Host and port, or "this host".
        address: String,
        /// The engine's words.
        reason: String,
    },
    /// Settings of one end's host were not changed.
    #[error("{address}: {reason}")]
    Tune {
        /// Host and port, or "this host".
        address: String,
        /// Why, and what to do.
        reason: String,
        /// What stood in the way.
        obstacle: crate::proto::message::Obstacle,
    },
    /// What a plan requires of the hosts did not come to hold.
    #[error(
        "{what} before a cell of the plan, within the {waited} it waits: try later, relax [require], or let it skip such cells (otherwise = \"skip\")"
    )]
    Unmet {
        /// What does not hold, and where.
        what: String,
        /// How long it was waited for.
        waited: String,
    },
    /// A trial ended badly at one end.
    #[error("{address}: {reason}")]
    Trial {
        /// Host and port, or "this host".
        address: String,
        /// The engine's words.
        reason: String,
    },
    /// A trial with another program at the far end failed.
    #[error("{0}")]
    Foreign(String),
    /// The spec is impossible.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// Results could not be kept or shown.
    #[error("cannot keep results: {0}")]
    Sink(#[from] model::SinkError),
    /// An agent could not start.
    #[error("{operation}: {source}{hint}")]
    Io {
        /// What was being done, with the address or path.
        operation: String,
        /// The kernel's answer.
        source: io::Error,
        /// What to do about it, or nothing.
        hint: &'static str,
    },
    /// The user stopped it.
    #[error("interrupted; finished trials are kept")]
    Interrupted,
}

impl ControlError {
    pub(crate) fn io(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io { operation: operation.into(), source: source.into(), hint: "" }
    }
}

//! Why a measurement could not be made.

use std::io;

/// A failure of the measuring path: the operation, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The spec names something that the registries do not have.
    #[error("no {kind} called '{name}': this build has {known}")]
    Unknown {
        /// "transport" or "pattern".
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is, separated by commas.
        known: String,
    },
    /// The transport or pattern cannot do what the spec asks.
    #[error("{what}: {remedy}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// What would work.
        remedy: String,
    },
    /// A socket option was refused.
    #[error("cannot set {option}: {source}{hint}")]
    Option {
        /// The option with its value.
        option: String,
        /// The kernel's answer.
        source: io::Error,
        /// What to do about it, or nothing.
        hint: &'static str,
    },
    /// A call on a socket failed.
    #[error("{operation} {address}: {source}")]
    Socket {
        /// What was being done: "connect to", "listen on", "send to".
        operation: &'static str,
        /// The address or path.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The other end did not say what it should have.
    #[error("{peer} {what}")]
    Peer {
        /// Which peer.
        peer: String,
        /// What it did, in words that follow its name.
        what: String,
    },
    /// A library that is opened at run time is not there, or is not what it should be.
    #[error("{library} {what}: {remedy}")]
    Library {
        /// Its file name.
        library: String,
        /// What is wrong, in words that follow its name.
        what: String,
        /// What to install or to do.
        remedy: String,
    },
    /// A thread could not be started or pinned.
    #[error("{0}")]
    Thread(String),
}

impl EngineError {
    #[allow(clippy::needless_pass_by_value, reason = "callers hand over addresses, paths and numbers alike")]
    pub(crate) fn socket(operation: &'static str, address: impl ToString, source: impl Into<io::Error>) -> Self {
        Self::Socket { operation, address: address.to_string(), source: source.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), remedy: remedy.into() }
    }
}

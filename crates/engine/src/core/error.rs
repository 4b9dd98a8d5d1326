//! Errors of the measuring path.

use std::io;
use text::Said;

/// A failure of the measuring path: the operation, the object and the remedy.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum EngineError {
    /// The spec names something that the registries do not have.
    #[error("no {kind} called '{name}': this build has {known}")]
    Unknown {
        /// "transport" or "pattern".
        kind: &'static str,
        /// The requested name.
        name: String,
        /// The known names, separated by commas.
        known: String,
    },
    /// The transport or pattern does not support what the spec requests.
    #[error("{what}: {remedy}")]
    Unsupported {
        /// What was requested.
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
        /// The operation: "connect to", "listen on", "send to".
        operation: &'static str,
        /// The address or path.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The other end sent something unexpected, or nothing.
    #[error("{peer} {what}")]
    Peer {
        /// Which peer.
        peer: String,
        /// What it did: a phrase that follows its name.
        what: String,
    },
    /// A library opened at run time is missing or unusable.
    #[error("{library} {what}: {remedy}")]
    Library {
        /// Its file name.
        library: String,
        /// What is wrong: a phrase that follows its name.
        what: String,
        /// What to install or to do.
        remedy: String,
    },
    /// A thread could not be started or pinned.
    #[error("{0}")]
    Thread(String),
}

impl EngineError {
    /// A failed call on a socket.
    #[allow(clippy::needless_pass_by_value, reason = "callers hand over addresses, paths and numbers alike")]
    pub fn socket(operation: &'static str, address: impl ToString, source: impl Into<io::Error>) -> Self {
        Self::Socket { operation, address: address.to_string(), source: source.into() }
    }

    /// What is not supported, and the remedy.
    pub fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), remedy: remedy.into() }
    }
}

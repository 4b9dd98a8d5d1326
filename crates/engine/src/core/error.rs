//! Errors of the measuring path.

use std::io;

use model::Engine;
use text::{Said, Text};

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
    #[error("cannot use {}: {}", what.plain(), remedy.plain())]
    Unsupported {
        /// What was requested: a noun.
        what: Text,
        /// What would work.
        remedy: Text,
    },
    /// A socket option was refused.
    #[error("cannot set {option}: {source}{}", hint.plain())]
    Option {
        /// The option with its value.
        option: String,
        /// The kernel's answer.
        source: io::Error,
        /// What to do about it, or nothing.
        hint: Text,
    },
    /// The process that may set a socket option refuses.
    #[error("cannot set {option}: {}{hint}", reason.plain())]
    Refused {
        /// The option with its value.
        option: String,
        /// Its words.
        reason: Text,
        /// What to do about it, or nothing.
        hint: &'static str,
    },
    /// The data connections cannot use the method that was requested.
    #[error("cannot set up `--engine {engine}`: {source}")]
    Method {
        /// The method.
        engine: Engine,
        /// The kernel's answer.
        source: io::Error,
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
    pub fn unsupported(what: impl Into<Text>, remedy: impl Into<Text>) -> Self {
        Self::Unsupported { what: what.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::{Spelling, say};

    #[test]
    fn what_is_not_supported_keeps_its_options() {
        let error = EngineError::unsupported(say!("`--wait uring` on pvm"), say!("use `--spin`"));
        assert_eq!(error.to_string(), "cannot use `--wait uring` on pvm: use `--spin`");
        assert_eq!(error.say().shown(Spelling::default()), "cannot use --wait uring on pvm: use --spin");
    }
}

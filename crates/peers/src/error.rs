//! Errors of measurements with another program.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use engine::EngineError;
use peer_wire::WireError;
use text::{Said, Text, say};

/// A failure, with the address and the remedy.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum ProgramError {
    /// The protocol cannot express it.
    #[error("cannot use {}: {}", what.plain(), remedy.plain())]
    Unsupported {
        /// What was requested: a noun.
        what: Text,
        /// What would work.
        remedy: Text,
    },
    /// A file of keys or users is invalid.
    #[error("{} {what}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The host's name means nothing.
    #[error("cannot resolve '{host}': {reason}; check the name or give an address")]
    Resolve {
        /// As the user wrote it.
        host: String,
        /// The resolver's answer.
        reason: String,
    },
    /// Nothing answers at the address.
    #[error("cannot reach {peer} at {address}: {source}; check that it runs there, or give its port as HOST:PORT")]
    Unreachable {
        /// The program that was expected.
        peer: &'static str,
        /// Host and port.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The other program said something wrong, or refused.
    #[error("{address}: {error}")]
    Peer {
        /// Host and port.
        address: String,
        /// The error and the step.
        error: WireError,
    },
    /// The other program said nothing for too long.
    #[error("{address}: {peer} sent nothing for {seconds} s {}", during.plain())]
    Silent {
        /// Host and port.
        address: String,
        /// The program.
        peer: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// What was expected.
        during: Text,
    },
    /// A call on a socket failed.
    #[error("{operation} {address}: {source}")]
    Socket {
        /// What was being done.
        operation: &'static str,
        /// Host and port.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The measuring path failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The user stopped it before there was a result.
    #[error("interrupted; finished trials are kept")]
    Interrupted,
}

impl ProgramError {
    /// The log line of a client's session that ended with this error: most errors name the address themselves.
    pub(crate) fn line_of(&self, peer: SocketAddr) -> Text {
        let named = self.address().is_some_and(|address| *address == peer.to_string());
        if named { self.say() } else { say!("{peer}: {}", self) }
    }

    /// The address that it names, if it names one.
    fn address(&self) -> Option<&String> {
        match self {
            Self::Unreachable { address, .. }
            | Self::Peer { address, .. }
            | Self::Silent { address, .. }
            | Self::Socket { address, .. }
            | Self::Engine(EngineError::Socket { address, .. } | EngineError::Peer { peer: address, .. }) => {
                Some(address)
            }
            _ => None,
        }
    }

    pub(crate) fn unsupported(what: impl Into<Text>, remedy: impl Into<Text>) -> Self {
        Self::Unsupported { what: what.into(), remedy: remedy.into() }
    }

    #[allow(clippy::needless_pass_by_value, reason = "callers hand over addresses and references to them alike")]
    pub(crate) fn socket(operation: &'static str, address: impl ToString, source: impl Into<io::Error>) -> Self {
        let address = address.to_string();
        Self::Socket { operation, address, source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_has_the_address_once() {
        let peer: SocketAddr = "192.0.2.1:7".parse().unwrap();
        let error = peer_wire::iperf3::PEER.error("at the end", peer_wire::WireProblem::NothingToCount);
        let named = ProgramError::Peer { address: peer.to_string(), error };
        assert_eq!(named.line_of(peer).plain(), "192.0.2.1:7: iperf3, at the end: there is nothing to count");
        assert!(ProgramError::Interrupted.line_of(peer).plain().starts_with("192.0.2.1:7: interrupted"));
    }
}

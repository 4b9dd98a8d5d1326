//! Errors of measurements with another program.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use text::Said;

use peer_wire::WireError;

/// A failure, with the address and the remedy.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum ProgramError {
    /// The protocol cannot express it.
    #[error("{what}: {remedy}")]
    Unsupported {
        /// What was requested.
        what: String,
        /// What would work.
        remedy: String,
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
    #[error("{address}: {peer} sent nothing for {seconds} s {during}")]
    Silent {
        /// Host and port.
        address: String,
        /// The program.
        peer: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// What was expected.
        during: &'static str,
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
    Engine(#[from] engine::EngineError),
    /// The user stopped it before there was a result.
    #[error("interrupted; finished trials are kept")]
    Interrupted,
}

impl ProgramError {
    /// The log line of a client's session that ended with this error: most errors name the address themselves.
    pub(crate) fn line_of(&self, peer: SocketAddr) -> String {
        let (peer, said) = (peer.to_string(), self.to_string());
        if said.contains(&peer) { said } else { format!("{peer}: {said}") }
    }

    pub(crate) fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> Self {
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
        assert_eq!(named.line_of(peer), "192.0.2.1:7: iperf3, at the end: there is nothing to count");
        assert!(ProgramError::Interrupted.line_of(peer).starts_with("192.0.2.1:7: interrupted"));
    }
}

//! Errors in a peer's messages.

use thiserror::Error;

/// A session that cannot continue: the program, the step and the error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{peer}, {step}: {what}")]
pub struct WireError {
    /// The peer's program, by the name of its [`crate::Peer`].
    pub peer: &'static str,
    /// The step of the session, as "while reading the parameters".
    pub step: &'static str,
    /// The error, with the received value.
    pub what: String,
}

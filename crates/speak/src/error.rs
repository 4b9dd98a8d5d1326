//! What is wrong with what a peer said.

use thiserror::Error;

/// A conversation that cannot go on: whose language it was, at which step, and what was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{peer}, {step}: {what}")]
pub struct SpeakError {
    /// The peer's program, as in the registry of [`crate::PEERS`].
    pub peer: &'static str,
    /// The step of the conversation, as "while reading the parameters".
    pub step: &'static str,
    /// What was wrong, with the value that was met.
    pub what: String,
}

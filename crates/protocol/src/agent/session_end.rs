//! Why an agent ends a session.

use text::Said;

use super::HoldError;

/// Why an agent ends a session, for its log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub enum SessionEnd {
    /// The agent refused its coordinator.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// The coordinator sent a message that it may not send then.
    #[error("received an unexpected message {during}")]
    OutOfOrder {
        /// "in the queue", and what else the session does.
        during: &'static str,
    },
}

/// Why an agent ends a session, for its coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub enum Refusal {
    /// It does not have the machine.
    #[error("acquire the machine first")]
    NotAcquired,
    /// It does not join another connection.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// It sent a message that it may not send during a measurement.
    #[error("unexpected message")]
    OutOfOrder,
    /// It had the machine for as long as it may.
    #[error("this agent's time limit has passed; raise `--max-time` of the agent")]
    TimeLimit,
    /// The changes of the host are lost.
    #[error(transparent)]
    HelperLost(#[from] HelperLost),
}

/// The session's changes of the host are lost: the helper that made them was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Said)]
#[error(
    "the agent's helper was killed, or the agent hung, and the changes for this measurement are reverted: start the \
     measurement again"
)]
pub struct HelperLost;

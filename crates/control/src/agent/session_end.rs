//! Why a coordinator's session with an agent ended.

use std::io;
use std::time::Duration;

use text::Said;
use tokio::task::JoinError;

use super::clients::ClientsError;
use super::guests::NotInvited;
use super::hold::HoldError;
use super::pool::WorkerEnded;
use crate::connection_end::{ConnectionEnd, seconds};
use crate::proto::message::RefusalCause;

/// Why a session ended, for the agent's log.
#[derive(Debug, thiserror::Error, Said)]
pub(super) enum SessionEnd {
    /// Its connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionEnd),
    /// The agent refused its coordinator.
    #[error("refused: {0}")]
    Refused(#[from] AgentRefusal),
    /// The coordinator sent a message that it may not send then.
    #[error("received an unexpected message {during}")]
    OutOfOrder {
        /// "in the queue", and what else the session does.
        during: &'static str,
    },
    /// The coordinator does not read the results that it requested.
    #[error("it read no results for {}", seconds(*waited))]
    ResultNotTaken { waited: Duration },
    /// A worker process ended while nobody waited for it.
    #[error(transparent)]
    Worker(#[from] WorkerEnded),
    /// The thread that reads the inventory panicked.
    #[error("cannot read this host's inventory: {0}")]
    Inventory(JoinError),
    /// The kernel gives no random numbers.
    #[error(transparent)]
    Random(io::Error),
}

/// Why an agent ends a session, for its coordinator.
#[derive(Debug, thiserror::Error, Said)]
pub(super) enum AgentRefusal {
    /// The session began with something else than a hello.
    #[error("the first message must be `hello`")]
    NoHello,
    /// The two programs have no version of the protocol in common.
    #[error("the client runs thru {client} and this agent runs thru {agent}: update thru on {older}")]
    Version {
        /// Program version and protocol.
        client: String,
        /// The same of the agent.
        agent: String,
        /// The host with the older program.
        older: &'static str,
    },
    /// The coordinator has another token.
    #[error("the token is wrong: use the `--token-file` that the agent was started with")]
    WrongToken,
    /// The coordinator has no token.
    #[error("this agent requires a token: use `--token-file`")]
    NoToken,
    /// It was not invited.
    #[error(transparent)]
    NotInvited(#[from] NotInvited),
    /// There is no place for it.
    #[error(transparent)]
    Clients(#[from] ClientsError),
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

impl AgentRefusal {
    /// The cause that the coordinator sees.
    pub(super) fn cause(&self) -> RefusalCause {
        match self {
            Self::WrongToken | Self::NoToken | Self::NotInvited(_) => RefusalCause::Token,
            _ => RefusalCause::Other,
        }
    }
}

/// The session's changes of the host are lost: the helper that made them was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Said)]
#[error(
    "the agent's helper was killed, or the agent hung, and the changes for this measurement are reverted: start the \
     measurement again"
)]
pub(super) struct HelperLost;

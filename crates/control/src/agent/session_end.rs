//! Why a coordinator's session with an agent ended.

use std::io;

use text::Said;
use tokio::task::JoinError;

use super::guests::NotInvited;
use crate::connection_end::ConnectionEnd;
use protocol::agent::{ClientsError, SessionEnd as Decided};
use protocol::message::RefusalCause;

/// Why a session ended, for the agent's log.
#[derive(Debug, thiserror::Error, Said)]
pub(super) enum SessionEnd {
    /// Its connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionEnd),
    /// The agent refused its coordinator.
    #[error("refused: {0}")]
    Refused(#[from] AgentRefusal),
    /// As the protocol decides.
    #[error(transparent)]
    Decided(#[from] Decided),
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
    /// All places that it could take are taken.
    #[error(transparent)]
    Clients(#[from] ClientsError),
    /// It sent something else than the next message of the greeting.
    #[error("unexpected message")]
    OutOfOrder,
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

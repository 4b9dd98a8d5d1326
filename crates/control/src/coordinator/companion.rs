//! Further connections to an agent that this coordinator has already: simultaneous tests need one each.

use bus::Buses;

use super::AgentEnd;
use super::dial::{self, unreachable_at};
use super::end::Target;
use super::reached::Reached;
use crate::{Answers, ControlError};
use protocol::message::{FromAgent, ToAgent};

/// What the first connection to an agent knows, with which further ones join it.
#[derive(Clone)]
pub(super) struct Joining {
    reached: Reached,
    ticket: Option<String>,
    name: String,
    instance: String,
}

/// A further connection, or one in place of a lost one.
pub(super) async fn connect(reached: &Reached) -> Result<AgentEnd, ControlError> {
    match reached {
        Reached::Local(agent) => AgentEnd::connect(Target::Local(agent)).await,
        Reached::Not { host, access, family } => {
            AgentEnd::connect(Target::Remote { host, access, family: *family }).await
        }
        Reached::Remote { host, address, known } => {
            let stream =
                dial::connect(*address, &Answers::default()).await.map_err(|source| unreachable_at(host, source))?;
            AgentEnd::over(stream, host, &known.access(Buses::default())).await
        }
        Reached::OverBus { host, known, buses, .. } => AgentEnd::over_bus(host, &known.access(buses.clone())).await,
    }
}

impl AgentEnd {
    /// What further connections to its agent need.
    pub(super) fn joining(&self) -> Joining {
        Joining {
            reached: self.reached.clone(),
            ticket: self.ticket.clone(),
            name: self.name.clone(),
            instance: self.instance.clone(),
        }
    }
}

impl Joining {
    /// A further connection, which has the machine together with the first one.
    ///
    /// # Errors
    /// An agent that is not reached, or refuses.
    pub(super) async fn connect(&self, purpose: &str) -> Result<AgentEnd, ControlError> {
        let refused = |reason: &str| ControlError::Refused { address: self.name.clone(), reason: reason.into() };
        let Some(ticket) = self.ticket.clone() else {
            return Err(refused("it gave no ticket with which further connections join"));
        };
        let mut end = connect(&self.reached).await?;
        if end.instance != self.instance {
            return Err(refused("another agent answers there now: it was restarted"));
        }
        end.name.clone_from(&self.name);
        end.joined = true;
        end.send(&ToAgent::Acquire { purpose: purpose.into(), join: Some(ticket) }).await?;
        loop {
            if let FromAgent::Granted { .. } = end.recv("while a further connection joined").await? {
                return Ok(end);
            }
        }
    }
}

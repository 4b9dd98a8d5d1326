//! How a coordinator proves the code of an agent's invitation, and has the agent prove it.

use std::time::Duration;

use text::{Text, say};

use super::not_greeted::{lost_in_greeting, silent};
use crate::proof::auth::Binding;
use crate::proof::code::{Code, Exchange, Side};
use crate::wire::Wire;
use crate::{ConnectionEnd, ControlError};
use protocol::coordinator::DialogueError;
use protocol::message::{FromAgent, ToAgent};

/// Time limit for each answer, on a short path.
const LIMIT: Duration = Duration::from_secs(10);

/// Proves `code` to the agent and checks its proof. `nonces` are the coordinator's and the agent's.
///
/// # Errors
/// The agent refuses the code, or does not know it.
pub(super) async fn prove_code(
    wire: &mut Wire<ToAgent, FromAgent>,
    name: &str,
    code: &Code,
    nonces: [&str; 2],
    binding: &Binding,
) -> Result<(), ControlError> {
    let refuted = |what: Text| ControlError::from(DialogueError::Token { address: name.to_owned(), what });
    let (exchange, half) = Exchange::begin(Side::Coordinator, code, binding);
    let FromAgent::Code { half } = answer(wire, name, &ToAgent::Code { half }).await? else {
        return Err(ControlError::NoAgent { address: name.to_owned() });
    };
    let secret = exchange.finish(&half).ok_or_else(|| ControlError::NoAgent { address: name.to_owned() })?;
    // The coordinator goes first: a false agent has one guess, and the real one counts wrong proofs.
    let mac = secret.prove("coordinator", nonces, binding);
    match answer(wire, name, &ToAgent::Proof { mac }).await? {
        FromAgent::Proof { mac } if secret.check(&mac, "agent", nonces, binding) => Ok(()),
        _ => Err(refuted(say!(
            "what answers there does not know the code, so it is not the agent that printed it: check the address, and that nobody is between the hosts"
        ))),
    }
}

/// The agent's answer to a message.
async fn answer(wire: &mut Wire<ToAgent, FromAgent>, name: &str, message: &ToAgent) -> Result<FromAgent, ControlError> {
    let lost = |reason: ConnectionEnd| lost_in_greeting(name, &reason);
    wire.send(message).await.map_err(lost)?;
    let path = wire.path().clone();
    match path.within(LIMIT, wire.recv()).await {
        Ok(Ok(FromAgent::Refused { reason, cause })) => {
            Err(DialogueError::refused(name.to_owned(), &reason, cause).into())
        }
        Ok(answer) => answer.map_err(lost),
        Err(waited) => Err(silent(name.to_owned(), waited)),
    }
}

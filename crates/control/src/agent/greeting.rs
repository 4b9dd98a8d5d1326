//! The start of a session: both sides' hellos, the token, and the inventory of this host.

use text::{Said, Text, say};

use super::clients::Client;
use super::session::Session;
use super::session_end::{AgentRefusal, SessionEnd};
use crate::proto::auth::Token;
use crate::proto::message::{FromAgent, Hello, ToAgent};
use crate::proto::{PROTOCOL, program};

impl Session {
    /// The session after authentication; `None` if the coordinator was refused.
    pub(crate) async fn identified(mut self) -> Option<Self> {
        match self.identify().await {
            Ok(()) => Some(self),
            Err(over) => {
                self.end(&over).await;
                None
            }
        }
    }

    pub(super) async fn end(self, over: &SessionEnd) {
        self.log(&over.say());
        self.wire.close().await;
    }

    /// Writes a line about its coordinator to the log. Of one without the token there may be too many.
    pub(super) fn log(&self, text: &Text) {
        let text = say!("{}: {text}", self.peer);
        match self.addresses.peer.filter(|_| !self.has_token) {
            Some(peer) => self.shared.log_unauthenticated(peer, &text),
            None => self.shared.log(&text),
        }
    }

    /// Sends the coordinator why its session ends.
    pub(super) async fn refuse(&self, refusal: impl Into<AgentRefusal>) -> SessionEnd {
        let refusal = refusal.into();
        let _ = self.wire.send(&FromAgent::Refused { reason: refusal.say(), cause: refusal.cause() }).await;
        refusal.into()
    }

    /// Receives the coordinator's hello and checks its version and token; an error ends the session. Nothing else is done for an
    /// unauthenticated connection.
    pub(super) async fn identify(&mut self) -> Result<(), SessionEnd> {
        let ToAgent::Hello(theirs) = self.wire.recv().await? else {
            return Err(self.refuse(AgentRefusal::NoHello).await);
        };
        let nonce = hex::encode(engine::random::<16>().map_err(SessionEnd::Random)?);
        let token = self.shared.options.token.clone();
        let mut ours = hello(nonce.clone(), self.shared.instance.clone());
        ours.version.clone_from(&self.shared.options.version);
        ours.wants_token = token.is_some();
        // The proof is in the hello itself, so that a coordinator trusts nothing before it.
        let nonces = [theirs.nonce.as_str(), nonce.as_str()];
        ours.mac = token.as_ref().map(|token| token.prove("agent", nonces, &self.binding));
        self.wire.send(&FromAgent::Hello(ours)).await?;
        // A coordinator compares the versions itself and reports which host must be updated. The message is for the agent's log
        // and for other implementations.
        if theirs.protocol != PROTOCOL {
            return Err(self.refuse(incompatible(&theirs, &self.shared.options.version)).await);
        }
        if let Some(token) = token {
            self.check(&token, nonces).await?;
            self.has_token = true;
        }
        self.wire.trust();
        Ok(())
    }

    async fn check(&mut self, token: &Token, nonces: [&str; 2]) -> Result<(), SessionEnd> {
        match self.wire.recv().await? {
            ToAgent::Proof { mac } if token.check(&mac, "coordinator", nonces, &self.binding) => Ok(()),
            ToAgent::Proof { .. } => Err(self.refuse(AgentRefusal::WrongToken).await),
            _ => Err(self.refuse(AgentRefusal::NoToken).await),
        }
    }

    /// Accepts the authenticated coordinator and sends it the inventory of this host. It counts as connected until the returned
    /// value is dropped.
    pub(super) async fn welcome(&mut self) -> Result<Client, SessionEnd> {
        match self.shared.clients.enter(self.source(), self.shared.options.limits.clients) {
            Ok(client) => {
                self.wire.send_frame(self.shared.welcome().await?).await?;
                Ok(client)
            }
            Err(error) => Err(self.refuse(error).await),
        }
    }
}

/// Why a client with this hello cannot be served: both versions, and the host to update.
fn incompatible(theirs: &Hello, own_version: &str) -> AgentRefusal {
    AgentRefusal::Version {
        client: program(&model::plain(&theirs.version), theirs.protocol),
        agent: program(own_version, PROTOCOL),
        older: if theirs.protocol > PROTOCOL { "the agent's host" } else { "the client's host" },
    }
}

/// This side's hello.
pub(crate) fn hello(nonce: String, instance: String) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        nonce,
        instance,
        wants_token: false,
        mac: None,
    }
}

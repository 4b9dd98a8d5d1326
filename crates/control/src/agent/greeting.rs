//! The start of a session: both sides' hellos, the token, and the inventory of this host.

use super::clients::Client;
use super::session::{EndReason, Session};
use crate::proto::auth::Token;
use crate::proto::message::{FromAgent, Hello, RefusalCause, ToAgent};
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

    pub(super) async fn end(self, over: &str) {
        self.log(over);
        self.wire.close().await;
    }

    /// Writes a line about its coordinator to the log. Of one without the token there may be too many.
    pub(super) fn log(&self, text: &str) {
        let text = format!("{}: {text}", self.peer);
        match self.addresses.peer.filter(|_| !self.has_token) {
            Some(peer) => self.shared.log_unauthenticated(peer, &text),
            None => self.shared.log(&text),
        }
    }

    pub(super) async fn refuse(&self, reason: &str) -> EndReason {
        self.refuse_because(RefusalCause::Other, reason).await
    }

    pub(super) async fn refuse_because(&self, cause: RefusalCause, reason: &str) -> EndReason {
        let _ = self.wire.send(&FromAgent::Refused { reason: reason.into(), cause }).await;
        format!("refused: {reason}")
    }

    /// Receives the coordinator's hello and checks its version and token; an error ends the session. Nothing else is done for an
    /// unauthenticated connection.
    pub(super) async fn identify(&mut self) -> Result<(), EndReason> {
        let ToAgent::Hello(theirs) = self.wire.recv().await? else {
            return Err(self.refuse("the first message must be `hello`").await);
        };
        let nonce = hex::encode(engine::random::<16>().map_err(|error| error.to_string())?);
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
            let reason = incompatible(&theirs, &self.shared.options.version);
            return Err(self.refuse(&reason).await);
        }
        if let Some(token) = token {
            self.check(&token, nonces).await?;
            self.has_token = true;
        }
        self.wire.trust();
        Ok(())
    }

    async fn check(&mut self, token: &Token, nonces: [&str; 2]) -> Result<(), EndReason> {
        match self.wire.recv().await? {
            ToAgent::Proof { mac } if token.check(&mac, "coordinator", nonces, &self.binding) => Ok(()),
            ToAgent::Proof { .. } => {
                let reason = "the token is wrong: use the `token-file` that the agent was started with";
                Err(self.refuse_because(RefusalCause::Token, reason).await)
            }
            _ => {
                let reason = "this agent requires a token: use `token-file`";
                Err(self.refuse_because(RefusalCause::Token, reason).await)
            }
        }
    }

    /// Accepts the authenticated coordinator and sends it the inventory of this host. It counts as connected until the returned
    /// value is dropped.
    pub(super) async fn welcome(&mut self) -> Result<Client, EndReason> {
        match self.shared.clients.enter(self.source(), self.shared.options.limits.clients) {
            Ok(client) => {
                self.wire.send_frame(self.shared.welcome().await?).await?;
                Ok(client)
            }
            Err(reason) => Err(self.refuse(reason).await),
        }
    }
}

/// Why a client with this hello cannot be served: both versions, and the host to update.
fn incompatible(theirs: &Hello, own_version: &str) -> String {
    let older = if theirs.protocol > PROTOCOL { "the agent's host" } else { "the client's host" };
    format!(
        "the client runs thru {} and this agent runs thru {}: update thru on {older}",
        program(&model::plain(&theirs.version), theirs.protocol),
        program(own_version, PROTOCOL),
    )
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

//! How a session begins: both sides' hellos, the token, and what this host is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::session::{Over, Session};
use crate::proto::auth::{self, Token};
use crate::proto::message::{FromAgent, Hello, ToAgent};
use crate::proto::{CAPABILITIES, OLDEST_PROTOCOL, PROTOCOL};

impl Session {
    /// Hears who the coordinator is, and that it knows the token; an error ends the session. Until then nothing else is done for it.
    pub(super) async fn identify(&mut self) -> Result<(), Over> {
        let ToAgent::Hello(theirs) = self.wire.recv().await? else { return Err(self.refuse("say hello first").await) };
        let nonce = auth::hex(&auth::random::<16>().map_err(|error| error.to_string())?);
        let token = self.shared.options.token.clone();
        let mut ours = hello(nonce.clone(), self.shared.instance.clone());
        ours.version.clone_from(&self.shared.options.version);
        ours.wants_token = token.is_some();
        // In the hello itself, so that a coordinator trusts nothing else before it.
        ours.mac = token.as_ref().map(|token| token.prove("agent", &theirs.nonce, &nonce));
        self.wire.send(&FromAgent::Hello(ours)).await?;
        // The coordinator sees both hellos too and says plainly who must be updated.
        if theirs.oldest > PROTOCOL || theirs.protocol < OLDEST_PROTOCOL {
            return Err(format!(
                "speaks protocol {} to {}, this agent {OLDEST_PROTOCOL} to {PROTOCOL}",
                theirs.oldest, theirs.protocol
            ));
        }
        if let Some(token) = token {
            self.check(&token, &theirs.nonce, &nonce).await?;
        }
        self.wire.trust();
        Ok(())
    }

    async fn check(&mut self, token: &Token, theirs: &str, ours: &str) -> Result<(), Over> {
        match self.wire.recv().await? {
            ToAgent::Proof { mac } if token.check(&mac, "coordinator", theirs, ours) => Ok(()),
            ToAgent::Proof { .. } => {
                Err(self.refuse("the token is wrong: use the --token-file that the agent was started with").await)
            }
            _ => Err(self.refuse("this agent wants a token: use --token-file").await),
        }
    }

    /// Lets in the coordinator, which has shown who it is, and tells it what this host is. It counts as connected until what comes
    /// back is dropped.
    pub(super) async fn welcome(&mut self) -> Result<Client, Over> {
        let (client, connected) = Client::new(&self.shared);
        if connected > self.shared.options.limits.clients {
            return Err(self
                .refuse("too many coordinators are connected: try again later, or raise `thru serve --max-clients`")
                .await);
        }
        self.wire.send_frame(self.shared.welcome().await?).await?;
        Ok(client)
    }
}

/// Counts a coordinator that was let in while it lives.
pub(super) struct Client(Arc<Shared>);

impl Client {
    /// Counts one more, and says how many there are now.
    fn new(shared: &Arc<Shared>) -> (Self, usize) {
        let before = shared.clients.fetch_add(1, Ordering::SeqCst);
        (Self(shared.clone()), before + 1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::SeqCst);
    }
}

/// This side's hello.
pub(crate) fn hello(nonce: String, instance: String) -> Hello {
    Hello {
        protocol: PROTOCOL,
        oldest: OLDEST_PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        capabilities: CAPABILITIES.iter().map(|name| (*name).to_owned()).collect(),
        nonce,
        instance,
        wants_token: false,
        mac: None,
    }
}

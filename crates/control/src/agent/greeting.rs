//! How a session begins: both sides' hellos, the token, and what this host is.

use std::sync::atomic::Ordering;

use host::tune::Namespace;

use super::session::{Over, Session};
use crate::proto::auth;
use crate::proto::message::{FromAgent, Hello, ToAgent};
use crate::proto::{CAPABILITIES, OLDEST_PROTOCOL, PROTOCOL};

impl Session {
    /// Greets the coordinator; an error ends the session.
    pub(super) async fn greet(&mut self) -> Result<(), Over> {
        let ToAgent::Hello(theirs) = self.wire.recv().await? else { return Err(self.refuse("say hello first").await) };
        let token = self.shared.options.token.clone();
        let nonce = auth::hex(&auth::random::<16>().map_err(|error| error.to_string())?);
        let ours = hello(nonce.clone(), self.shared.instance.clone(), token.is_some());
        self.wire.send(&FromAgent::Hello(ours)).await?;
        // The coordinator sees both hellos too and says plainly who must be updated.
        if theirs.oldest > PROTOCOL || theirs.protocol < OLDEST_PROTOCOL {
            return Err(format!(
                "speaks protocol {} to {}, this agent {OLDEST_PROTOCOL} to {PROTOCOL}",
                theirs.oldest, theirs.protocol
            ));
        }
        let mut mac = None;
        if let Some(token) = token {
            match self.wire.recv().await? {
                ToAgent::Proof { mac } if token.check(&mac, "coordinator", &theirs.nonce, &nonce) => {}
                ToAgent::Proof { .. } => {
                    return Err(self
                        .refuse("the token is wrong: use the --token-file that the agent was started with")
                        .await);
                }
                _ => return Err(self.refuse("this agent wants a token: use --token-file").await),
            }
            mac = Some(token.prove("agent", &theirs.nonce, &nonce));
        }
        if self.shared.clients.load(Ordering::SeqCst) > self.shared.options.limits.clients {
            return Err(self
                .refuse("too many coordinators are connected: try again later, or raise `thru serve --max-clients`")
                .await);
        }
        self.wire.trust();
        let inventory = Box::new(self.shared.inventory());
        let namespace = Namespace::current().ok().map(|namespace| namespace.inode);
        let clock_ns = host::clock_read_cost_ns();
        self.wire.send(&FromAgent::Welcome { mac, inventory, clock_ns, namespace }).await?;
        Ok(())
    }
}

/// This side's hello.
pub(crate) fn hello(nonce: String, instance: String, wants_token: bool) -> Hello {
    Hello {
        protocol: PROTOCOL,
        oldest: OLDEST_PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        capabilities: CAPABILITIES.iter().map(|name| (*name).to_owned()).collect(),
        nonce,
        instance,
        wants_token,
    }
}

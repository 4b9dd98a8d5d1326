//! The start of a session: both sides' hellos, the token, and the inventory of this host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::net::TcpStream;

use super::Shared;
use super::session::{EndReason, Session};
use crate::proto::auth::{self, Token};
use crate::proto::message::{FromAgent, Hello, RefusalCause, ToAgent};
use crate::proto::{CAPABILITIES, OLDEST_PROTOCOL, PROTOCOL, program};
use crate::wire::Wire;

impl Session {
    /// Receives the coordinator's hello and checks its version and token; an error ends the session. Nothing else is done for an
    /// unauthenticated connection.
    pub(super) async fn identify(&mut self) -> Result<(), EndReason> {
        let ToAgent::Hello(theirs) = self.wire.recv().await? else {
            return Err(self.refuse("the first message must be `hello`").await);
        };
        let nonce = auth::hex(&engine::random::<16>().map_err(|error| error.to_string())?);
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
        if theirs.oldest > PROTOCOL || theirs.protocol < OLDEST_PROTOCOL {
            let reason = incompatible(&theirs, &self.shared.options.version);
            return Err(self.refuse(&reason).await);
        }
        if let Some(token) = token {
            self.check(&token, nonces).await?;
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
        let (client, connected) = Client::new(&self.shared);
        if connected > self.shared.options.limits.clients {
            return Err(self
                .refuse("too many clients are connected: try again later, or raise `max-clients` of the agent")
                .await);
        }
        self.wire.send_frame(self.shared.welcome().await?).await?;
        Ok(client)
    }
}

/// Tells a client that speaks in the clear, as all did before protocol 3, which versions this agent accepts: such a client reports
/// them to its user. Nothing else is said without TLS.
pub(super) async fn refuse_plain(shared: &Shared, stream: TcpStream, peer: SocketAddr) {
    let mut wire = Wire::<FromAgent, ToAgent>::start(stream, &FromAgent::Ping);
    let Ok(ToAgent::Hello(theirs)) = wire.recv().await else { return };
    let mut ours = hello(String::new(), String::new());
    ours.version.clone_from(&shared.options.version);
    let _ = wire.send(&FromAgent::Hello(ours)).await;
    shared.log(&format!("{peer}: refused: {}", incompatible(&theirs, &shared.options.version)));
    wire.close().await;
}

/// Counts an accepted coordinator until it is dropped.
pub(super) struct Client(Arc<Shared>);

impl Client {
    /// Counts one more; returns the new number.
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

/// Why a client with this hello cannot be served: both versions, and the host to update.
fn incompatible(theirs: &Hello, own_version: &str) -> String {
    let older = if theirs.oldest > PROTOCOL { "the agent's host" } else { "the client's host" };
    format!(
        "the client runs thru {} and this agent runs thru {}: update thru on {older}",
        program(&model::plain(&theirs.version), theirs.oldest, theirs.protocol),
        program(own_version, OLDEST_PROTOCOL, PROTOCOL),
    )
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

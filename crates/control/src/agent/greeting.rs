//! The start of a session: both sides' hellos, the proof of a token or code, and the inventory of this host.

use std::net::IpAddr;
use std::time::Instant;

use protocol::agent::Client;
use text::{Said, Text, say};

use super::budget;
use super::guests::{Guests, NotInvited};
use super::machine::OpenSession;
use super::session::Session;
use super::session_end::{AgentRefusal, SessionEnd};
use crate::proof::auth::Token;
use crate::proof::code::{Exchange, Side};
use protocol::hello::Hello;
use protocol::message::{FromAgent, ToAgent};
use protocol::{PROTOCOL, program};

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

    /// Writes a line about its coordinator to the log. Of one that has proved nothing there may be too many.
    pub(super) fn log(&self, text: &Text) {
        let text = say!("{}: {text}", self.peer);
        match self.addresses.peer.filter(|_| !self.proved) {
            Some(peer) => self.shared.log_unauthenticated(peer, &text),
            None => self.shared.log(&text),
        }
    }

    /// Sends the coordinator why its session ends.
    pub(super) async fn refuse(&mut self, refusal: impl Into<AgentRefusal>) -> SessionEnd {
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
        let shared = self.shared.clone();
        let options = &shared.options;
        let guests = options.guests.as_ref();
        let invites = guests.is_some_and(|guests| guests.code(Instant::now()).is_ok());
        let knows_key = guests.is_some_and(|guests| guests.knows(self.binding.client.as_ref()));
        // One that has a code proves it as long as it can: it may not know this agent's key.
        let knows_key = knows_key && !(theirs.has_code && invites);
        let token = options.token.as_ref().filter(|_| !theirs.has_code && !knows_key);
        let mut ours = hello(nonce.clone(), shared.instance.clone());
        ours.version.clone_from(&options.version);
        ours.knows_key = knows_key;
        ours.wants_token = token.is_some();
        // The proof is in the hello itself, so that a coordinator trusts nothing before it.
        let nonces = [theirs.nonce.as_str(), nonce.as_str()];
        ours.mac = token.map(|token| token.prove("agent", nonces, &self.binding));
        self.wire.send(&FromAgent::Hello(ours)).await?;
        // A coordinator compares the versions itself and reports which host must be updated. The message is for the agent's log
        // and for other implementations.
        if theirs.protocol != PROTOCOL {
            return Err(self.refuse(incompatible(&theirs, &options.version)).await);
        }
        self.proved = match (token, guests) {
            (Some(token), _) => {
                self.check(token, nonces).await?;
                true
            }
            (None, _) if knows_key => true,
            (None, None) if theirs.has_code => return Err(self.refuse(NotInvited::Over).await),
            (None, None) => false,
            (None, Some(_)) if !theirs.has_code => return Err(self.refuse(NotInvited::Stranger).await),
            (None, Some(guests)) => {
                if let Err(error) = self.invite(guests, nonces).await? {
                    return Err(self.refuse(error).await);
                }
                true
            }
        };
        self.wire.trust();
        Ok(())
    }

    /// Lets a coordinator in that proves the code of the invitation, and recognizes its key from now on.
    async fn invite(&mut self, guests: &Guests, nonces: [&str; 2]) -> Result<Result<(), NotInvited>, SessionEnd> {
        let code = match guests.code(Instant::now()) {
            Ok(code) => code,
            Err(error) => return Ok(Err(error)),
        };
        let Some(key) = self.binding.client else { return Ok(Err(NotInvited::NoKey)) };
        let ToAgent::Code { half: theirs } = self.wire.recv().await? else {
            return Err(self.refuse(AgentRefusal::OutOfOrder).await);
        };
        let (exchange, half) = Exchange::begin(Side::Agent, &code, &self.binding);
        self.wire.send(&FromAgent::Code { half }).await?;
        let ToAgent::Proof { mac } = self.wire.recv().await? else {
            return Err(self.refuse(AgentRefusal::OutOfOrder).await);
        };
        let secret = exchange.finish(&theirs);
        let is_right = secret.as_ref().is_some_and(|secret| secret.check(&mac, "coordinator", nonces, &self.binding));
        if let Err(error) = guests.accept(is_right, Instant::now()) {
            return Ok(Err(error));
        }
        let Some(secret) = secret else { return Ok(Err(NotInvited::Over)) };
        self.wire.send(&FromAgent::Proof { mac: secret.prove("agent", nonces, &self.binding) }).await?;
        self.proved = true;
        match guests.keep(&key, self.addresses.peer) {
            Ok(()) => self.log(&say!("accepted the invitation; its key {key} is known from now on")),
            Err(error) => self.log(&say!("accepted the invitation, but its key {key} cannot be stored: {error}")),
        }
        Ok(Ok(()))
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
    pub(super) async fn welcome(&mut self) -> Result<OpenSession, SessionEnd> {
        let client = Client {
            source: self.source(),
            is_proved: self.proved,
            is_remote: self.addresses.here.is_some(),
            name: self.peer.clone(),
            ticket: hex::encode(engine::random::<16>().map_err(SessionEnd::Random)?),
        };
        match self.shared.options.machine.open(client) {
            Ok(session) => {
                self.wire.send_frame(self.shared.welcome().await?).await?;
                Ok(session)
            }
            Err(error) => Err(self.refuse(error).await),
        }
    }

    /// The address, or network, that has a share of this agent; `None` for a client on no network.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.addresses.peer.map(budget::network)
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
        has_code: false,
        knows_key: false,
        wants_token: false,
        mac: None,
    }
}

//! The greeting of an agent: both sides recognize each other, and it accepts this coordinator.

use std::net::SocketAddr;
use std::time::Duration;

use bus::{Buses, is_bus};
use model::{Family, Inventory};
use protocol::CONTROL_MAGIC;
use protocol::coordinator::DialogueError;
use protocol::coordinator::bounds;
use protocol::frame::MAX_WELCOME;
use protocol::hello::Hello;
use protocol::message::{FromAgent, ToAgent};
use text::{Text, say};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::Proof;
use crate::agent::{Agent, hello};
use crate::patience::ControlPath;
use crate::proof::auth::Binding;
use crate::wire::Wire;
use crate::{Access, Answers, ConnectionEnd, ControlError, Recognized, tls};

use super::address::{identity, label};
use super::dial::{self, dial, unreachable_at};
use super::invited::prove_code;
use super::not_greeted::{incompatible, lost_in_greeting, silent, without_tls};
use super::reached::{Known, Reached};

/// The agent to connect to.
pub enum Target<'a> {
    /// Within this process.
    Local(&'a Agent),
    /// At `host`, as the user wrote it: a name or address, with or without a port, or a name on a bus.
    Remote {
        /// Name, address, `name:port`, `[v6]:port` or `nats://bus/name`.
        host: &'a str,
        /// How both sides recognize each other.
        access: &'a Access,
        /// IP version to use.
        family: Family,
    },
}

/// An agent that has accepted this coordinator.
pub(super) struct Greeted {
    /// "this host", or host and port.
    pub(super) name: String,
    pub(super) facts: AgentFacts,
    /// Identifier of the agent's process.
    pub(super) instance: String,
    /// Number of its network namespace, if it is reported.
    pub(super) namespace: Option<u64>,
    /// How it was reached.
    pub(super) reached: Reached,
    pub(super) wire: Wire<ToAgent, FromAgent>,
}

/// What is known of an agent.
#[derive(Debug, Clone)]
pub struct AgentFacts {
    /// Its host.
    pub inventory: Inventory,
    /// Cost of a clock read there, ns.
    pub clock_ns: f64,
    /// Version of its program.
    pub version: String,
    /// A line for the user about how it was recognized.
    pub note: Option<String>,
}

/// Time limit for an agent's hello, on a short path.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long an agent's host may be unreachable before the run fails, on a short path without loss.
const VANISHED_AFTER: Duration = Duration::from_secs(5);

impl Greeted {
    /// Connects to an agent and authenticates.
    pub(super) async fn connect(target: Target<'_>) -> Result<Self, ControlError> {
        match target {
            Target::Local(agent) => {
                let wire = Wire::start(agent.connect(), &ToAgent::Ping);
                let reached = Reached::Local(agent.clone());
                Self::greet(wire, "this host".into(), reached, Proof::None, &Binding::default()).await
            }
            Target::Remote { host, access, .. } if is_bus(host) => Self::over_bus(host, access).await,
            Target::Remote { host, access, family } => {
                Self::over(dial(host, family, &access.answers).await?, host, access).await
            }
        }
    }

    /// A further connection to the same agent, or one in place of a lost one.
    pub(super) async fn again(reached: &Reached) -> Result<Self, ControlError> {
        match reached {
            Reached::Local(agent) => Self::connect(Target::Local(agent)).await,
            Reached::Not { host, access, family } => {
                Self::connect(Target::Remote { host, access, family: *family }).await
            }
            Reached::Remote { host, address, known } => {
                let stream = dial::connect(*address, &Answers::default())
                    .await
                    .map_err(|source| unreachable_at(host, source))?;
                Self::over(stream, host, &known.access(Buses::default())).await
            }
            Reached::OverBus { host, known, buses, .. } => Self::over_bus(host, &known.access(buses.clone())).await,
        }
    }

    /// Authenticates over a new connection to the agent at `host`.
    pub(super) async fn over(mut stream: TcpStream, host: &str, access: &Access) -> Result<Self, ControlError> {
        let address = stream.peer_addr().map_err(|source| unreachable_at(host, source))?;
        let name = label(host, address);
        let path = ControlPath::of(&stream);
        stream.write_all(CONTROL_MAGIC).await.map_err(|source| unreachable_at(&name, source))?;
        let (stream, binding) = match path.within(HELLO_LIMIT, tls::connect(stream, access.own_key.as_ref())).await {
            Ok(Ok(secured)) => secured,
            Ok(Err(error)) => return Err(without_tls(name, error, &path)),
            Err(waited) => return Err(silent(name, waited)),
        };
        let reached = Reached::Remote { host: host.to_owned(), address, known: Known::of(binding.key, access) };
        let end = Self::recognize(stream, &binding, name, reached, host, access, path).await?;
        end.wire.path().give_up_after(VANISHED_AFTER);
        Ok(end)
    }

    /// Connects to the agent at `host`, a place on a bus, and authenticates.
    pub(super) async fn over_bus(host: &str, access: &Access) -> Result<Self, ControlError> {
        let place = bus::place(host)?;
        let name = place.name.clone().unwrap_or_default();
        let (stream, contact) = access.buses.to(&place).await?.open(&name).await?;
        let strange = || ControlError::NoAgent { address: host.to_owned() };
        let path = ControlPath::default();
        let secured = path.within(HELLO_LIMIT, tls::connect(stream, access.own_key.as_ref())).await;
        let (stream, binding) = secured.map_err(|waited| silent(host.to_owned(), waited))?.map_err(|_| strange())?;
        let address = contact.address.zip(contact.port).ok_or_else(strange)?;
        let reached = Reached::OverBus {
            host: host.to_owned(),
            address: SocketAddr::from(address),
            known: Known::of(binding.key, access),
            buses: access.buses.clone(),
        };
        Self::recognize(stream, &binding, host.to_owned(), reached, host, access, path).await
    }

    /// Recognizes the agent by its key, then greets it.
    async fn recognize<T>(
        stream: T,
        binding: &Binding,
        name: String,
        reached: Reached,
        host: &str,
        access: &Access,
        path: ControlPath,
    ) -> Result<Self, ControlError>
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (agent, key) = (identity(host)?, &binding.key);
        let recognized = access.keys.check(&agent, key);
        let recognized = recognized.map_err(|what| ControlError::Key { address: name.clone(), what })?;
        let wire = Wire::start_on(stream, &ToAgent::Ping, path);
        let end = Self::greet(wire, name, reached, access.proof(recognized), binding).await?;
        // Only now: an attacker without the token or code must not take the agent's place in the file.
        let note = match recognized {
            Recognized::Known => None,
            // Hosts that share this user's home have one key; whoever takes the place of one of them has another.
            Recognized::Own => {
                access.keys.keep(&agent, key);
                None
            }
            Recognized::New => Some(access.keys.keep(&agent, key)),
        };
        Ok(Self { facts: AgentFacts { note, ..end.facts }, ..end })
    }

    async fn greet(
        mut wire: Wire<ToAgent, FromAgent>,
        name: String,
        reached: Reached,
        proof: Proof<'_>,
        binding: &Binding,
    ) -> Result<Self, ControlError> {
        let nonce =
            hex::encode(engine::random::<16>().map_err(|source| ControlError::io("draw a random number", source))?);
        let lost = |reason: ConnectionEnd| lost_in_greeting(&name, &reason);
        // An agent that requires no proof may send its welcome at once.
        if !matches!(proof, Proof::Token(_)) {
            wire.expect_welcome();
        }
        let has_code = matches!(proof, Proof::Code { .. });
        let ours = Hello { has_code, ..hello(nonce.clone(), String::new()) };
        wire.send(&ToAgent::Hello(ours)).await.map_err(lost)?;
        let path = wire.path().clone();
        let theirs = match path.within(HELLO_LIMIT, wire.recv()).await {
            Ok(Ok(FromAgent::Hello(theirs))) => theirs,
            Ok(Ok(FromAgent::Refused { reason, cause })) => {
                return Err(DialogueError::refused(name, &reason, cause).into());
            }
            Ok(Ok(_)) => return Err(ControlError::NoAgent { address: name }),
            Ok(Err(reason)) => return Err(ControlError::NoGreeting { address: name, what: reason }),
            Err(waited) => return Err(silent(name, waited)),
        };
        if let Some(error) = incompatible(&theirs, &name) {
            return Err(error);
        }
        if let Some(what) = distrust(&theirs, proof, &nonce, binding) {
            return Err(DialogueError::Token { address: name, what }.into());
        }
        let nonces = [nonce.as_str(), theirs.nonce.as_str()];
        let proved = match proof {
            Proof::None => false,
            Proof::Token(token) => {
                let mac = token.prove("coordinator", nonces, binding);
                wire.send(&ToAgent::Proof { mac }).await.map_err(lost)?;
                true
            }
            Proof::Code { .. } if theirs.knows_key => false,
            Proof::Code { code, .. } => {
                prove_code(&mut wire, &name, code, nonces, binding).await?;
                true
            }
        };
        if proved {
            wire.accept_up_to(MAX_WELCOME);
            wire.trust();
        }
        loop {
            match wire.recv().await.map_err(lost)? {
                FromAgent::Ping => {}
                FromAgent::Welcome { inventory, clock_ns, namespace } => {
                    wire.trust();
                    if reached.address().is_some() {
                        wire.accept_up_to(bounds::ANSWER);
                    }
                    let (inventory, version) = (*inventory, theirs.version);
                    let facts = AgentFacts { inventory, clock_ns, version, note: None };
                    return Ok(Self { name, facts, instance: theirs.instance, namespace, reached, wire });
                }
                FromAgent::Refused { reason, cause } => return Err(DialogueError::refused(name, &reason, cause).into()),
                _ => return Err(ControlError::NoAgent { address: name }),
            }
        }
    }
}

/// Why the connection must end after this hello, if it must: the user decides whether a token is needed, not the agent.
fn distrust(theirs: &Hello, proof: Proof<'_>, nonce: &str, binding: &Binding) -> Option<Text> {
    match (proof, theirs.wants_token, &theirs.mac) {
        (Proof::Code { known: false, .. }, ..) if theirs.knows_key => Some(say!(
            "this agent knows this host's key, but this host does not know the agent's: omit `--code`, or use the name or address with which the agent was invited first"
        )),
        // The exchange decides.
        (Proof::Code { .. }, ..) | (Proof::None, false, _) => None,
        (Proof::None, true, _) => {
            Some(say!("this agent requires a token: use `--token-file` with the file that it was started with"))
        }
        (Proof::Token(_), false, _) => Some(say!(
            "this agent requires no token, but you gave one: it may not be your agent; start it with `--token-file`, or leave out `--token-file` and THRU_TOKEN_FILE"
        )),
        (Proof::Token(token), true, Some(mac)) if token.check(mac, "agent", [nonce, &theirs.nonce], binding) => None,
        (Proof::Token(_), true, _) => Some(say!(
            "this agent did not prove your token: the token is wrong, or it is not your agent; use the `--token-file` that the agent was started with"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::auth::Token;

    #[test]
    fn a_given_token_must_be_required_and_proved() {
        let text = Token::fresh().unwrap();
        let (token, other) = (Token::new(&text).unwrap(), Token::new(&Token::fresh().unwrap()).unwrap());
        let hello_with =
            |wants_token, mac: Option<String>| Hello { wants_token, mac, ..hello("aa".into(), String::new()) };
        let here = Binding::default();
        let proof = |token: &Token, side| Some(token.prove(side, ["cc", "aa"], &here));
        let given = Proof::Token(&token);
        assert_eq!(distrust(&hello_with(true, proof(&token, "agent")), given, "cc", &here), None);
        assert_eq!(distrust(&hello_with(false, None), Proof::None, "cc", &here), None);
        for (theirs, given, words) in [
            (hello_with(true, proof(&token, "agent")), Proof::None, "requires a token"),
            (hello_with(false, proof(&token, "agent")), given, "requires no token"),
            (hello_with(true, None), given, "did not prove"),
            (hello_with(true, proof(&token, "coordinator")), given, "did not prove"),
            (hello_with(true, proof(&other, "agent")), given, "the token is wrong"),
        ] {
            assert!(distrust(&theirs, given, "cc", &here).is_some_and(|what| what.plain().contains(words)), "{words}");
        }
        let relayed = Binding { exporter: [1; 32], ..here };
        let theirs = hello_with(true, proof(&token, "agent"));
        assert!(distrust(&theirs, given, "cc", &relayed).is_some(), "a relay has two connections");
    }
}

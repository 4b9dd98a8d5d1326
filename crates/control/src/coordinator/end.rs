//! The coordinator's connection to one agent.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bus::is_bus;
use engine::transport::{at_port, lacks_scope, scope_hint, scope_of, scoped};
use model::{Change, EndOptions, Family, HostReading, Inventory, MachineUser, Setting, Watched};
use text::{Text, say};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::Proof;
use crate::agent::{Agent, hello};
use crate::connection_end::ConnectionEnd;
use crate::patience::ControlPath;
use crate::proof::auth::Binding;
use crate::wire::Wire;
use crate::{Access, ControlError, Recognized, tls};
use protocol::CONTROL_MAGIC;
use protocol::frame::MAX_WELCOME;
use protocol::hello::Hello;
use protocol::message::{Cause, FromAgent, ReachabilityToken, ToAgent};

use super::address::{identity, label, split};
use super::bounds;
use super::dial::{dial, unreachable_at};
use super::invited::prove_code;
use super::not_greeted::{incompatible, refused, silent, without_tls};
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

/// One end of the measurements: an agent that has accepted this coordinator.
pub struct AgentEnd {
    /// "this host", or host and port.
    pub name: String,
    /// Its host.
    pub inventory: Inventory,
    /// Cost of a clock read there, ns.
    pub clock_ns: f64,
    /// Version of its program.
    pub version: String,
    /// Identifier of the agent's process.
    pub instance: String,
    /// Number of its network namespace, if it is reported.
    pub(super) namespace: Option<u64>,
    /// The settings of the last [`apply`](Self::apply).
    pub(super) applied: Vec<Setting>,
    /// The changes that it made.
    pub(super) changed: Vec<Change>,
    /// The agent's address; `None` within this process.
    pub(crate) address: Option<SocketAddr>,
    /// A line for the user about how the agent was recognized.
    pub note: Option<String>,
    /// Its reachability tokens by the address that other agents get, while this coordinator has the machine.
    pub(super) reach_tokens: HashMap<Option<IpAddr>, ReachabilityToken>,
    /// The ticket for further connections, while this coordinator has the machine.
    pub(super) ticket: Option<String>,
    /// It has joined another connection, which has the settings of the host.
    pub(super) joined: bool,
    /// How it was reached.
    pub(super) reached: Reached,
    wire: Wire<ToAgent, FromAgent>,
}

/// Time limit for an agent's hello, on a short path.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long an agent's host may be unreachable before the run fails, on a short path without loss.
const VANISHED_AFTER: Duration = Duration::from_secs(5);

impl AgentEnd {
    /// Connects to an agent and authenticates.
    pub async fn connect(target: Target<'_>) -> Result<Self, ControlError> {
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
        Ok(Self { note, ..end })
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
        let lost = |reason| ControlError::Lost { address: name.clone(), during: "during the greeting".into(), reason };
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
            Ok(Ok(FromAgent::Refused { reason, cause })) => return Err(refused(name, &reason, cause)),
            Ok(Ok(_)) => return Err(ControlError::NoAgent { address: name }),
            Ok(Err(reason)) => return Err(ControlError::NoGreeting { address: name, what: reason }),
            Err(waited) => return Err(silent(name, waited)),
        };
        if let Some(error) = incompatible(&theirs, &name) {
            return Err(error);
        }
        if let Some(what) = distrust(&theirs, proof, &nonce, binding) {
            return Err(ControlError::Token { address: name, what });
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
                    return Ok(Self {
                        name,
                        inventory: *inventory,
                        clock_ns,
                        version: theirs.version,
                        instance: theirs.instance,
                        namespace,
                        applied: Vec::new(),
                        changed: Vec::new(),
                        address: reached.address(),
                        note: None,
                        reach_tokens: HashMap::new(),
                        ticket: None,
                        joined: false,
                        reached,
                        wire,
                    });
                }
                FromAgent::Refused { reason, cause } => return Err(refused(name, &reason, cause)),
                _ => return Err(ControlError::NoAgent { address: name }),
            }
        }
    }

    /// An agent on another host sends no message with more bytes than this.
    pub(super) fn accept_up_to(&self, bytes: usize) {
        if self.address.is_some() {
            self.wire.accept_up_to(bytes);
        }
    }

    /// Bytes of the messages that it has sent.
    pub(super) fn received_bytes(&self) -> usize {
        self.wire.received_bytes()
    }

    /// Waits until this coordinator has the machine; `queued` gets the number of clients in front.
    pub async fn acquire(&mut self, purpose: &str, mut queued: impl FnMut(u32)) -> Result<(), ControlError> {
        self.send(&ToAgent::Acquire { purpose: purpose.into(), join: None }).await?;
        loop {
            match self.recv("while waiting in its queue").await? {
                FromAgent::Granted { ticket } => {
                    self.ticket = ticket;
                    return Ok(());
                }
                FromAgent::Queued { ahead } => queued(ahead),
                _ => {}
            }
        }
    }

    /// Requests a report of the host every `interval`, also while others measure there; [`watched`](Self::watched) returns them.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn watch(&mut self, interval: Duration) -> Result<(), ControlError> {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.send(&ToAgent::Watch { interval_ns }).await
    }

    /// The address of its agent; `None` within this process.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Who measures there, and how many clients wait.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn users(&mut self) -> Result<(Vec<MachineUser>, u32), ControlError> {
        self.send(&ToAgent::AskUsers).await?;
        loop {
            if let FromAgent::Users { users, waiting } = self.recv("while it listed its clients").await? {
                return Ok((users, waiting));
            }
        }
    }

    /// The next report of [`watch`](Self::watch). Dropping the future loses nothing.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn watched(&mut self) -> Result<Watched, ControlError> {
        loop {
            if let FromAgent::Watched(seen) = self.recv("during `watch`").await? {
                return Ok(*seen);
            }
        }
    }

    /// The current state of its host. The machine must have been acquired.
    pub(crate) async fn read_conditions(&mut self) -> Result<HostReading, ControlError> {
        self.send(&ToAgent::ReadConditions).await?;
        loop {
            if let FromAgent::Conditions(reading) = self.recv("while it read the state of its host").await? {
                return Ok(reading);
            }
        }
    }

    /// Reads messages that have arrived, so that pings do not pile up during a long wait.
    ///
    /// # Errors
    /// If the connection was lost.
    pub(crate) fn drain_messages(&mut self) -> Result<(), ControlError> {
        while let Some(message) = self.wire.arrived() {
            match message {
                Ok(FromAgent::Refused { reason, cause }) => return Err(refused(self.name.clone(), &reason, cause)),
                Ok(_) => {}
                Err(reason) => return Err(self.lost("during a wait", reason)),
            }
        }
        Ok(())
    }

    /// Releases the machine and stays connected.
    pub(crate) async fn release_machine(&mut self) -> Result<(), ControlError> {
        self.reach_tokens.clear();
        self.ticket = None;
        self.send(&ToAgent::Release).await
    }

    /// Releases the machine and closes the connection.
    pub async fn release(self) {
        let _ = self.wire.send(&ToAgent::Release).await;
        self.wire.close().await;
    }

    /// The address for data connections, for a rendezvous that has only a port. The agent's shared port is reached as the control connection
    /// reached it: the agent does not know under which number it is forwarded.
    ///
    /// # Errors
    /// A link-local address without an interface.
    pub(crate) fn data_address(&self, far: &EndOptions, port: u16, shared: bool) -> Result<SocketAddr, ControlError> {
        let control = self.address.unwrap_or_else(|| SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), port));
        let address = match (far.data_at, far.data_addr) {
            (Some(at), _) => at_port(at, if at.port() > 0 { at.port() } else { port }),
            (None, Some(address)) => scoped(address, port, scope_of(&control)),
            (None, None) if shared => control,
            // Keeps a link-local address's scope.
            (None, None) => at_port(control, port),
        };
        if lacks_scope(&address) {
            let host = address.ip().to_string();
            return Err(ControlError::NoInterface { host, hint: scope_hint(address.ip()) });
        }
        Ok(address)
    }

    /// The name by which the user reached the agent, for a near end that does not reach its address. `None` for an address, and where the
    /// user gave one for data.
    pub(crate) fn name_for_others(&self, far: &EndOptions) -> Option<String> {
        let Reached::Remote { host, .. } = &self.reached else { return None };
        let (name, _) = split(host).ok()?;
        let given = far.data_at.is_some() || far.data_addr.is_some();
        (!given && name.parse::<IpAddr>().is_err()).then(|| name.to_owned())
    }

    /// What the connection shows of the path.
    pub(super) fn path(&self) -> &ControlPath {
        self.wire.path()
    }

    /// Whether a message of its agent is arriving.
    pub(super) fn is_receiving(&self) -> bool {
        self.wire.is_receiving()
    }

    pub(crate) async fn send(&self, message: &ToAgent) -> Result<(), ControlError> {
        self.wire.send(message).await.map_err(|reason| self.lost("while sending a message", reason))
    }

    /// The next message that is not a ping. Dropping the future loses nothing.
    pub(crate) async fn recv(&mut self, during: &str) -> Result<FromAgent, ControlError> {
        loop {
            match self.wire.recv().await {
                Ok(FromAgent::Ping) => {}
                Ok(FromAgent::Refused { reason, cause }) => return Err(refused(self.name.clone(), &reason, cause)),
                Ok(FromAgent::Failed { reason, cause }) => {
                    let (address, reason) = (self.name.clone(), bounds::one_line(&reason));
                    return Err(match cause {
                        Cause::Limits => ControlError::Refused { address, reason },
                        Cause::Unproven => ControlError::Unproven { address, reason },
                        Cause::Setup => ControlError::Setup { address, reason },
                        Cause::Trial => ControlError::Trial { address, reason },
                    });
                }
                Ok(message) => return Ok(message),
                Err(reason) => return Err(self.lost(during, reason)),
            }
        }
    }

    fn lost(&self, during: &str, reason: ConnectionEnd) -> ControlError {
        ControlError::Lost { address: self.name.clone(), during: during.into(), reason }
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

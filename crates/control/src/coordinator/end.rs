//! A coordinator's side of one agent.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use model::{Change, EndOptions, Family, HostReading, Inventory, Setting, Watched};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::ControlError;
use crate::agent::{Agent, hello, prepare_control};
use crate::proto::auth::{self, Token};
use crate::proto::message::{Cause, FromAgent, Hello, ReachabilityToken, ToAgent};
use crate::proto::{CONTROL_MAGIC, OLDEST_PROTOCOL, PROTOCOL, WATCH};
use crate::wire::Wire;

use super::address::{label, split};

/// An agent to be reached.
pub enum Target<'a> {
    /// Within this process.
    Local(&'a Agent),
    /// At `host`, as the user wrote it: a name or address, with or without a port.
    Remote {
        /// Name, address, `name:port` or `[v6]:port`.
        host: &'a str,
        /// What the agent must know, and is shown in turn; `None` for one that wants no token.
        token: Option<&'a Token>,
        /// IP version to use.
        family: Family,
    },
}

/// One end of the measurements: an agent that has let us in.
pub struct End {
    /// "this host", or host and port.
    pub name: String,
    /// What its host is.
    pub inventory: Inventory,
    /// Cost of a clock read there, ns.
    pub clock_ns: f64,
    /// Version of its program.
    pub version: String,
    /// Tells this agent from others.
    pub instance: String,
    /// What it can do beyond the protocol.
    pub capabilities: Vec<String>,
    /// Number of its network namespace, where it says so.
    pub(super) namespace: Option<u64>,
    /// What [`apply`](Self::apply) has set there.
    pub(super) applied: Vec<Setting>,
    /// What that changed.
    pub(super) changed: Vec<Change>,
    /// Where the control connection goes; `None` within this process.
    pub(crate) address: Option<SocketAddr>,
    /// By which other agents know this one, by the address that they are told, while the machine is ours.
    pub(super) reach_tokens: HashMap<Option<IpAddr>, ReachabilityToken>,
    wire: Wire<ToAgent, FromAgent>,
}

/// How long a connection attempt to one address may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long an agent may take to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long an agent's host may be unreachable before the run is given up.
const VANISHED_AFTER: Duration = Duration::from_secs(5);

impl End {
    /// Reaches an agent and is let in.
    pub async fn connect(target: Target<'_>) -> Result<Self, ControlError> {
        match target {
            Target::Local(agent) => {
                let wire = Wire::start(agent.converse(), &ToAgent::Ping);
                Self::greet(wire, "this host".into(), None, None).await
            }
            Target::Remote { host, token, family } => {
                let mut stream = dial(host, family).await?;
                let address = stream.peer_addr().ok();
                let name = address.map_or_else(|| host.to_owned(), |address| label(host, address));
                prepare_control(&stream, VANISHED_AFTER);
                stream.write_all(CONTROL_MAGIC).await.map_err(|source| unreachable_at(&name, source))?;
                let wire = Wire::start(stream, &ToAgent::Ping);
                Self::greet(wire, name, address, token).await
            }
        }
    }

    async fn greet(
        mut wire: Wire<ToAgent, FromAgent>,
        name: String,
        address: Option<SocketAddr>,
        token: Option<&Token>,
    ) -> Result<Self, ControlError> {
        let nonce =
            auth::hex(&auth::random::<16>().map_err(|source| ControlError::io("draw a random number", source))?);
        let lost =
            |reason: String| ControlError::Lost { address: name.clone(), during: "while greeting it".into(), reason };
        // One without a token may be welcomed at once.
        if token.is_none() {
            wire.expect_welcome();
        }
        wire.send(&ToAgent::Hello(hello(nonce.clone(), String::new()))).await.map_err(lost)?;
        let theirs = match tokio::time::timeout(HELLO_LIMIT, wire.recv()).await {
            Ok(Ok(FromAgent::Hello(theirs))) => theirs,
            Ok(Ok(FromAgent::Refused { reason })) => return Err(ControlError::Refused { address: name, reason }),
            _ => return Err(ControlError::NoAgent { address: name }),
        };
        if theirs.oldest > PROTOCOL || theirs.protocol < OLDEST_PROTOCOL {
            return Err(ControlError::Version {
                address: name,
                version: theirs.version,
                theirs: versions(theirs.oldest, theirs.protocol),
                ours: versions(OLDEST_PROTOCOL, PROTOCOL),
                older: if theirs.oldest > PROTOCOL { "this host" } else { "that host" },
            });
        }
        if let Some(what) = distrust(&theirs, token, &nonce) {
            return Err(ControlError::Token { address: name, what: what.into() });
        }
        if let Some(token) = token {
            let mac = token.prove("coordinator", &nonce, &theirs.nonce);
            wire.send(&ToAgent::Proof { mac }).await.map_err(lost)?;
            wire.trust();
        }
        loop {
            match wire.recv().await.map_err(lost)? {
                FromAgent::Ping => {}
                FromAgent::Welcome { inventory, clock_ns, namespace } => {
                    wire.trust();
                    return Ok(Self {
                        name,
                        inventory: *inventory,
                        clock_ns,
                        version: theirs.version,
                        instance: theirs.instance,
                        capabilities: theirs.capabilities,
                        namespace,
                        applied: Vec::new(),
                        changed: Vec::new(),
                        address,
                        reach_tokens: HashMap::new(),
                        wire,
                    });
                }
                FromAgent::Refused { reason } if reason.contains("token") => {
                    return Err(ControlError::Token { address: name, what: reason });
                }
                FromAgent::Refused { reason } => return Err(ControlError::Refused { address: name, reason }),
                _ => return Err(ControlError::NoAgent { address: name }),
            }
        }
    }

    /// Whether its agent can do something beyond the protocol.
    pub(super) fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|name| name == capability)
    }

    /// Waits until the machine is ours; `queued` hears how many are first.
    pub async fn acquire(&mut self, purpose: &str, mut queued: impl FnMut(u32)) -> Result<(), ControlError> {
        self.send(&ToAgent::Acquire { purpose: purpose.into() }).await?;
        loop {
            match self.recv("in its queue").await? {
                FromAgent::Granted => return Ok(()),
                FromAgent::Queued { ahead } => queued(ahead),
                _ => {}
            }
        }
    }

    /// Asks how the host does, every `interval`, beside whatever is measured there; [`watched`](Self::watched) has the answers.
    ///
    /// # Errors
    /// When the agent is of a version that cannot tell, or is lost.
    pub async fn watch(&mut self, interval: Duration) -> Result<(), ControlError> {
        if !self.can(WATCH) {
            let reason = format!("its thru {} cannot be watched: update it there", self.version);
            return Err(ControlError::Refused { address: self.name.clone(), reason });
        }
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.send(&ToAgent::Watch { interval_ns }).await
    }

    /// The next answer to [`watch`](Self::watch). Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the agent is lost.
    pub async fn watched(&mut self) -> Result<Watched, ControlError> {
        loop {
            if let FromAgent::Watched(seen) = self.recv("while watching it").await? {
                return Ok(*seen);
            }
        }
    }

    /// Refuses a congestion control that an agent of an earlier version would not know how to load.
    pub(crate) fn can_have(&self, options: &EndOptions) -> Result<(), ControlError> {
        let loads = self.can("stacks");
        let has = |name: &str| self.inventory.congestion_controls.iter().any(|known| known == name);
        match &options.cc {
            Some(cc) if !loads && !has(cc) && matches!(stacks::Request::parse(cc), Ok(Some(_))) => {
                Err(ControlError::Refused {
                    address: self.name.clone(),
                    reason: format!("thru {} cannot load the TCP stack {cc}: update it there", self.version),
                })
            }
            _ => Ok(()),
        }
    }

    /// What its host is like now; `None` from an agent that cannot say. The machine must have been acquired.
    pub(crate) async fn look(&mut self) -> Result<Option<HostReading>, ControlError> {
        if !self.can("conditions") {
            return Ok(None);
        }
        self.send(&ToAgent::ReadConditions).await?;
        loop {
            if let FromAgent::Conditions(reading) = self.recv("while it looked at its host").await? {
                return Ok(Some(reading));
            }
        }
    }

    /// Takes what has arrived while nothing was asked, so that pings do not pile up over a long wait.
    ///
    /// # Errors
    /// A connection that was lost meanwhile.
    pub(crate) fn catch_up(&mut self) -> Result<(), ControlError> {
        while let Some(message) = self.wire.arrived() {
            match message {
                Ok(FromAgent::Refused { reason }) => {
                    return Err(ControlError::Refused { address: self.name.clone(), reason });
                }
                Ok(_) => {}
                Err(reason) => return Err(self.lost("while it waited", reason)),
            }
        }
        Ok(())
    }

    /// Gives the machine back and stays connected.
    pub(crate) async fn give_back(&mut self) -> Result<(), ControlError> {
        self.reach_tokens.clear();
        self.send(&ToAgent::Release).await
    }

    /// Gives the machine back and closes.
    pub async fn release(self) {
        let _ = self.wire.send(&ToAgent::Release).await;
        self.wire.close().await;
    }

    /// Address that data should go to, for a meeting that names a port only.
    pub(crate) fn data_address(&self, wanted: Option<IpAddr>, port: u16) -> Option<SocketAddr> {
        match (wanted, self.address) {
            (Some(address), _) => Some(SocketAddr::new(address, port)),
            (None, Some(mut address)) => {
                // Keeps a link-local address's scope.
                address.set_port(port);
                Some(address)
            }
            (None, None) => Some(SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), port)),
        }
    }

    pub(crate) async fn send(&self, message: &ToAgent) -> Result<(), ControlError> {
        self.wire.send(message).await.map_err(|reason| self.lost("when speaking to it", reason))
    }

    /// The next message that is not a ping. Dropping the future loses nothing.
    pub(crate) async fn recv(&mut self, during: &str) -> Result<FromAgent, ControlError> {
        loop {
            match self.wire.recv().await {
                Ok(FromAgent::Ping) => {}
                Ok(FromAgent::Refused { reason }) => {
                    return Err(ControlError::Refused { address: self.name.clone(), reason });
                }
                Ok(FromAgent::Failed { reason, cause }) => {
                    let address = self.name.clone();
                    return Err(match cause {
                        Cause::Limits => ControlError::Refused { address, reason },
                        Cause::Setup => ControlError::Setup { address, reason },
                        Cause::Trial => ControlError::Trial { address, reason },
                    });
                }
                Ok(message) => return Ok(message),
                Err(reason) => return Err(self.lost(during, reason)),
            }
        }
    }

    fn lost(&self, during: &str, reason: String) -> ControlError {
        ControlError::Lost { address: self.name.clone(), during: during.into(), reason }
    }
}

/// Why an agent with this hello is not spoken to, if it is not: whether a token is wanted and proved is the user's choice, not its own.
fn distrust(theirs: &Hello, token: Option<&Token>, nonce: &str) -> Option<&'static str> {
    match (token, theirs.wants_token, &theirs.mac) {
        (None, false, _) => None,
        (None, true, _) => Some("this agent wants a token: use --token-file with the file it was started with"),
        (Some(_), false, _) => Some(
            "it wants no token, though one was given: this may not be your agent; start it with --token-file, or leave out --token-file and THRU_TOKEN_FILE",
        ),
        (Some(token), true, Some(mac)) if token.check(mac, "agent", nonce, &theirs.nonce) => None,
        (Some(_), true, _) => Some(
            "it does not prove that it knows this token: the token is wrong, or this is not your agent; use the --token-file that the agent was started with",
        ),
    }
}

fn versions(oldest: u32, newest: u32) -> String {
    if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") }
}

async fn dial(host: &str, family: Family) -> Result<TcpStream, ControlError> {
    let (name, port) = split(host)?;
    let resolved = tokio::net::lookup_host((name, port))
        .await
        .map_err(|source| ControlError::Resolve { host: name.into(), source })?;
    let fits = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let mut failure = None;
    for address in resolved.filter(fits) {
        match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(source)) => failure = Some(unreachable_at(&label(host, address), source)),
            Err(_) => failure = Some(unreachable_at(&label(host, address), std::io::ErrorKind::TimedOut.into())),
        }
    }
    Err(failure.unwrap_or_else(|| ControlError::Resolve {
        host: name.into(),
        source: std::io::Error::new(std::io::ErrorKind::NotFound, "it has no address of the IP version asked for"),
    }))
}

fn unreachable_at(address: &str, source: std::io::Error) -> ControlError {
    let remedy = match source.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            "start `thru serve` there (with --listen and a --token-file or --open, for it serves loopback only by default)"
        }
        std::io::ErrorKind::TimedOut => {
            "the host is down, or a firewall drops the port: open TCP and UDP 6280 (or the port of --listen)"
        }
        _ => "check the address and the route to it",
    };
    ControlError::Unreachable { address: address.into(), source, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_token_must_be_wanted_and_proved() {
        let text = Token::fresh().unwrap();
        let (token, other) = (Token::new(&text).unwrap(), Token::new(&Token::fresh().unwrap()).unwrap());
        let says = |wants_token, mac: Option<String>| Hello { wants_token, mac, ..hello("aa".into(), String::new()) };
        let proof = |token: &Token, side| Some(token.prove(side, "cc", "aa"));
        assert_eq!(distrust(&says(true, proof(&token, "agent")), Some(&token), "cc"), None);
        assert_eq!(distrust(&says(false, None), None, "cc"), None);
        for (theirs, given, words) in [
            (says(true, proof(&token, "agent")), None, "wants a token"),
            (says(false, proof(&token, "agent")), Some(&token), "wants no token"),
            (says(true, None), Some(&token), "does not prove"),
            (says(true, proof(&token, "coordinator")), Some(&token), "does not prove"),
            (says(true, proof(&other, "agent")), Some(&token), "the token is wrong"),
        ] {
            assert!(distrust(&theirs, given, "cc").is_some_and(|what| what.contains(words)), "{words}");
        }
    }
}

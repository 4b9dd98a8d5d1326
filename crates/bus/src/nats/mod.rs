//! Over a NATS server.
//!
//! | subject | who is subscribed |
//! | --- | --- |
//! | `thru.v1.to.EPOCH.STREAM.NAME` | the agent called NAME |
//! | `thru.v1.from.CLIENT.STREAM` | the coordinator with that number |
//! | `thru.v1.runs.RUN` | the stream of JetStream with what runs have measured |
//!
//! NAME is leased in the key-value bucket `thru-agents`: whoever creates the key has it, and each renewal names the revision that it
//! replaces. The revision of the creation is the EPOCH: what is meant for an agent that has lost its name reaches no other.

mod attend;
mod line;
mod names;
mod outbox;
mod pace;
mod packet;
mod received;
mod runs;
mod sent;
mod switchboard;
mod window;

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::{AuthError, Client, ConnectOptions, Subject};
use futures_util::StreamExt;
use nkeys::KeyPair;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::sync::{Mutex, OnceCell, mpsc, oneshot, watch};

pub use attend::{Arrival, Attendance, attend};
pub use line::BusStream;

use crate::access::{password, seed, token};
use crate::{BusAccess, BusError, BusProblem, ConnectProblem, Contact, Place, Present};
use attend::Entry;
use line::{Ends, Side, line};
use names::Names;
use outbox::Outbox;
use switchboard::{Heard, Place as Plug, Role, Switchboard};

/// Time limit for a connection to a server.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for an agent's answer to a new stream.
const OPEN_LIMIT: Duration = Duration::from_secs(10);
/// Messages that wait within this process for one subscription.
const WAITING: usize = 8 << 10;
/// Commands that wait for the connection's task.
const COMMANDS: usize = 256;
/// The part of all subjects that names the version of what is spoken.
const SUBJECTS: &str = "thru.v1";

/// The buses that a process is connected to, by their addresses. Clones share them.
#[derive(Clone, Default)]
pub struct Buses {
    access: BusAccess,
    connected: Arc<Mutex<HashMap<String, Bus>>>,
}

impl Buses {
    /// None yet.
    #[must_use]
    pub fn new(access: BusAccess) -> Self {
        Self { access, connected: Arc::default() }
    }

    /// The bus at that place, connected to at the first use.
    ///
    /// # Errors
    /// It is not reached.
    pub async fn to(&self, place: &Place) -> Result<Bus, BusError> {
        let mut connected = self.connected.lock().await;
        if let Some(bus) = connected.get(&place.bus) {
            return Ok(bus.clone());
        }
        let bus = Bus::connect(place, &self.access).await?;
        connected.insert(place.bus.clone(), bus.clone());
        Ok(bus)
    }
}

impl std::fmt::Debug for Buses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buses").finish_non_exhaustive()
    }
}

/// A connection to a bus. It is made again when it is lost, as long as a clone of this exists. A runtime must outlive it.
#[derive(Clone)]
pub struct Bus(Arc<Connected>);

struct Connected {
    bus: String,
    servers: Vec<String>,
    client: Client,
    outbox: Outbox,
    /// Counts the connections to the bus.
    connections: watch::Receiver<u64>,
    jetstream: jetstream::Context,
    /// Random, in the subjects of its streams, and the writer of its records.
    client_number: String,
    streams: Switchboard,
    /// Subscribed to the subjects of its streams.
    subscribed: OnceCell<()>,
    agents: OnceCell<Names>,
    /// The stream of runs is there.
    kept: OnceCell<()>,
}

impl Bus {
    /// Connects to a server of the bus.
    ///
    /// # Errors
    /// No server is reached, or it refuses.
    pub async fn connect(place: &Place, access: &BusAccess) -> Result<Self, BusError> {
        let unreachable = |what: ConnectProblem| BusError::Unreachable { bus: place.bus.clone(), what };
        let (count, connections) = watch::channel(0);
        let options = options(access).map_err(unreachable)?.event_callback(move |event| {
            if matches!(event, async_nats::Event::Connected) {
                count.send_modify(|count| *count += 1);
            }
            std::future::ready(())
        });
        let connected = tokio::time::timeout(2 * CONNECT_LIMIT, options.connect(place.servers())).await;
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(unreachable(problem(error))),
            Err(_) => return Err(unreachable(ConnectProblem::Silent)),
        };
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(CONNECT_LIMIT);
        Ok(Self(Arc::new(Connected {
            bus: place.bus.clone(),
            servers: place.servers(),
            outbox: Outbox::new(client.clone()),
            client,
            connections,
            jetstream,
            client_number: number(),
            streams: Switchboard::default(),
            subscribed: OnceCell::new(),
            agents: OnceCell::new(),
            kept: OnceCell::new(),
        })))
    }

    /// The address from which this host reaches the bus.
    #[must_use]
    pub fn own_address(&self) -> Option<IpAddr> {
        self.0.servers.iter().find_map(|server| {
            let host = server.split_once("://")?.1;
            let with_port = (host, 4222).to_socket_addrs().or_else(|_| host.to_socket_addrs());
            let server = with_port.ok()?.next()?;
            let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
            // Nothing is sent: the kernel only looks up the route.
            let socket = UdpSocket::bind((any, 0)).ok()?;
            socket.connect(server).ok()?;
            Some(socket.local_addr().ok()?.ip())
        })
    }

    /// The agents that are there, by name.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn present(&self) -> Result<Vec<Present>, BusError> {
        let names = self.agents().await?.all().await.map_err(|what| self.failed("list its agents", what))?;
        let present = |(name, value): (String, bytes::Bytes)| {
            let agent = Entry::decode(&value).filter(|agent| agent.epoch.is_some())?;
            Some(Present { name, contact: agent.contact })
        };
        Ok(names.into_iter().filter_map(present).collect())
    }

    /// A stream to the agent called `name`, and what it says of itself.
    ///
    /// # Errors
    /// No agent has that name, or it does not answer.
    pub async fn open(&self, name: &str) -> Result<(BusStream, Contact), BusError> {
        let failed = |what: BusProblem| self.failed("reach an agent", what);
        let absent = || BusError::Absent { bus: self.0.bus.clone(), name: name.to_owned() };
        let found = self.agents().await?.get(name).await.map_err(failed)?;
        let found = found.and_then(|found| Entry::decode(&found.bytes?)).ok_or_else(absent)?;
        let epoch = found.epoch.ok_or_else(absent)?;
        self.subscribe().await?;
        let stream = number();
        let plug = self.0.streams.open(&stream).ok_or_else(|| failed(BusProblem::TooManyStreams))?;
        let client = &self.0.client_number;
        let from = Subject::from(format!("{SUBJECTS}.from.{client}.{stream}"));
        let to = Subject::from(format!("{SUBJECTS}.to.{epoch}.{stream}.{name}"));
        let (opened, answered) = oneshot::channel();
        let (bytes, pump) = line(self.ends([from, to], plug), Side::Opens(opened));
        // The connection lasts as long as its streams.
        let bus = self.clone();
        tokio::spawn(async move {
            pump.await;
            drop(bus);
        });
        match tokio::time::timeout(OPEN_LIMIT, answered).await {
            Ok(Ok(())) => Ok((bytes, found.contact)),
            // It was there a moment ago: its lease has not run out.
            _ => Err(absent()),
        }
    }

    /// What a stream between these subjects needs, with its place among the streams.
    fn ends(&self, subjects: [Subject; 2], (place, heard): (Plug, mpsc::Receiver<Heard>)) -> Ends {
        let mut connections = self.0.connections.clone();
        connections.mark_unchanged();
        Ends { outbox: self.0.outbox.clone(), connections, subjects, place, heard }
    }

    /// Receives the messages of this process's streams, from the first stream on.
    async fn subscribe(&self) -> Result<(), BusError> {
        let subscribe = async || {
            let subject = format!("{SUBJECTS}.from.{}.*", self.0.client_number);
            let subscribed = self.0.client.subscribe(subject).await;
            let mut messages = subscribed.map_err(|error| self.failed("subscribe", BusProblem::refused(error)))?;
            let (streams, outbox) = (self.0.streams.clone(), self.0.outbox.clone());
            tokio::spawn(async move {
                while let Some(message) = messages.next().await {
                    streams.pass(Role::Coordinator, &message, &outbox);
                }
            });
            Ok(())
        };
        self.0.subscribed.get_or_try_init(subscribe).await.map(|_| ())
    }

    /// The bucket with the names of agents.
    async fn agents(&self) -> Result<&Names, BusError> {
        let open = async || {
            let names = Names::open(&self.0.jetstream, attend::LEASE).await;
            names.map_err(|what| self.failed("keep its agents' names", what))
        };
        self.0.agents.get_or_try_init(open).await
    }

    fn failed(&self, operation: &'static str, what: BusProblem) -> BusError {
        BusError::Failed { bus: self.0.bus.clone(), operation, what }
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bus({})", self.0.bus)
    }
}

fn options(access: &BusAccess) -> Result<ConnectOptions, ConnectProblem> {
    let mut options = ConnectOptions::new()
        .name("throughline")
        .connection_timeout(CONNECT_LIMIT)
        .subscription_capacity(WAITING)
        .client_capacity(COMMANDS)
        .custom_inbox_prefix(format!("{SUBJECTS}.inbox.{}", number()));
    if let Some(text) = &access.credentials {
        options = if let (Some(token), Some(seed)) = (token(text), seed(text)) {
            let key = KeyPair::from_seed(seed).map_err(|error| ConnectProblem::Seed { source: error.into() })?;
            let key = Arc::new(key);
            options.jwt(token.to_owned(), move |nonce| {
                let signed = key.sign(&nonce).map_err(AuthError::new);
                async { signed }
            })
        } else if let Some(seed) = seed(text) {
            options.nkey(seed.to_owned())
        } else {
            let (user, password) = password(text).ok_or(ConnectProblem::NoPassword)?;
            options.user_and_password(user.to_owned(), password.to_owned())
        };
    }
    if let Some(pem) = &access.authorities {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| ConnectProblem::Authority { source: error.into() })?;
            roots.add(certificate).map_err(|error| ConnectProblem::Authority { source: error.into() })?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| ConnectProblem::Other { source: error.into() })?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        options = options.tls_client_config(config).require_tls(true);
    }
    Ok(options)
}

/// What went wrong, by what helps.
fn problem(error: async_nats::ConnectError) -> ConnectProblem {
    use async_nats::ConnectErrorKind as Kind;
    let kind = error.kind();
    let source = error.into();
    match kind {
        Kind::Authentication | Kind::AuthorizationViolation => ConnectProblem::Refused { source },
        Kind::Tls => ConnectProblem::Tls { source },
        Kind::Io | Kind::TimedOut | Kind::Dns => ConnectProblem::NotReached { source },
        _ => ConnectProblem::Other { source },
    }
}

/// Sixteen random hexadecimal digits. Who guesses one can disturb a stream, which its own TLS notices.
fn number() -> String {
    let mut bytes = [0; 8];
    // A process without randomness cannot make keys either: it has ended before.
    let _ = getrandom::fill(&mut bytes);
    format!("{:016x}", u64::from_be_bytes(bytes))
}

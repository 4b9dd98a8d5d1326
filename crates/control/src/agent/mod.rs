//! The agent: lets coordinators measure with this host, within its limits.
//!
//! It is a supervisor and measures nothing itself: each measurement runs in worker processes that do nothing else.

mod addresses;
mod budget;
mod data_acceptor;
mod facts;
mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod gate;
mod greeting;
mod guests;
mod lines;
mod machine;
#[cfg(feature = "metrics")]
mod measured;
mod measurement;
mod merge;
#[cfg(feature = "metrics")]
mod metrics;
mod over_bus;
pub(crate) mod packets;
mod path_probe;
mod pool;
mod reach;
mod results;
mod session;
mod session_captures;
mod session_end;
mod stack;
mod trial;
mod tuning;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bus::{BusAccess, Place};
use model::{Inventory, SelfTestCitation};
pub use protocol::agent::Limits;
use protocol::agent::Rules;
use text::{Text, say};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::helper::Helper;
use crate::limits::file_limit;
use crate::patience::{ControlPath, patience_on};
use crate::proof::auth::{Binding, Token};
use crate::{AgentKey, ControlError};
use addresses::Addresses;
use data_acceptor::DataAcceptor;
use engine::transport::{DatagramListener, HELLO_BYTES, at_port};
use facts::{SharedReading, Welcome};
use gate::Gate;
pub(crate) use greeting::hello;
pub use guests::{Guests, KnownClients, OPEN_FOR};
pub use lines::LogLines;
pub use machine::Machine;
#[cfg(feature = "metrics")]
use measured::Measured;
pub use packets::Captures;
pub use pool::{WorkerLimits, Workers};
use protocol::line::Line;
use protocol::{CONTROL_MAGIC, PROTOCOL};
use reach::Challenges;
use results::Turns;
pub use results::{KeepResults, KeptResultsError};
use session::Session;
pub use tuning::Tuning;

/// The options of an agent.
pub struct AgentOptions {
    /// The program's version, with the commit that it was built from; runs record it.
    pub version: String,
    /// Where its worker processes come from.
    pub workers: Workers,
    /// The token that coordinators must prove. Without a token and guests, anyone who reaches the port is accepted.
    pub token: Option<Token>,
    /// The clients that are recognized by their keys, and need no token.
    pub guests: Option<Guests>,
    /// Its queue of measurements.
    pub machine: Machine,
    /// Limits for coordinators.
    pub limits: Limits,
    /// Whether coordinators may load TCP stacks into the kernel.
    pub allow_stacks: bool,
    /// Whether coordinators may change settings of the host.
    pub tuning: Tuning,
    /// Does what needs privileges.
    pub helper: Helper,
    /// Folder for sockets between processes of this machine.
    pub directory: PathBuf,
    /// Ends after the first coordinator that measured.
    pub once: bool,
    /// How long a coordinator may be unreachable before its session ends.
    pub vanished_after: Duration,
    /// Where captured packets are stored.
    pub captures: Captures,
    /// Where it keeps results until their coordinators have stored them; `None` for nowhere.
    pub results: Option<Arc<dyn KeepResults>>,
    /// The bus that it joins, too.
    pub bus: Option<BusOptions>,
    /// Where its state is served as OpenMetrics text, to anyone who reaches it; `None` for nowhere. Needs [`HAS_METRICS`].
    pub metrics: Option<SocketAddr>,
    /// Finds the last self-test of this host, which the inventory cites.
    pub selftest: SelfTestLookup,
    /// Receives the log, line by line.
    pub log: Box<dyn Fn(&Text) + Send + Sync>,
    /// Receives the addresses once the agent listens.
    pub listening: OnListening,
}

/// A bus on which an agent is reached by name.
#[derive(Debug)]
pub struct BusOptions {
    /// The bus, with the agent's name there.
    pub place: Place,
    /// How the agent proves itself to its server.
    pub access: BusAccess,
}

/// Whether agents can serve their state as metrics: the feature `metrics` of this crate.
pub const HAS_METRICS: bool = cfg!(feature = "metrics");

/// Returns the last stored self-test of the host with this inventory.
pub type SelfTestLookup = Box<dyn Fn(&Inventory) -> Option<SelfTestCitation> + Send + Sync>;

/// Receives the addresses that an agent listens on.
pub type OnListening = Box<dyn Fn(&[SocketAddr]) + Send + Sync>;

/// One host's agent.
#[derive(Clone)]
pub struct Agent(Arc<Shared>);

/// The state that all sessions of an agent share.
pub(crate) struct Shared {
    options: AgentOptions,
    data_acceptor: Arc<DataAcceptor>,
    /// The shared port for data connections, if there is one.
    port: Option<u16>,
    /// Addresses that the agent listens on.
    listening: Vec<SocketAddr>,
    gate: Arc<Gate>,
    challenges: Challenges,
    /// What strangers may write to the log.
    lines: LogLines,
    /// Requests for results that are kept.
    results_turns: Turns,
    #[cfg(feature = "metrics")]
    measured: Measured,
    welcomes: SharedReading<Welcome>,
    served: Notify,
    /// Random identifier of this agent's process.
    instance: String,
}

impl Agent {
    /// An agent within this process, for the near end and for transports of one machine.
    #[must_use]
    pub fn local(options: AgentOptions) -> Self {
        Self(Arc::new(Shared::new(options, Vec::new())))
    }

    /// Opens a control connection for a coordinator in this process.
    pub(crate) fn connect(&self) -> tokio::io::DuplexStream {
        let (mine, theirs) = tokio::io::duplex(64 << 10);
        let (addresses, peer, path) = (Addresses::default(), "this process".into(), ControlPath::default());
        let session = Session::new(self.0.clone(), mine, addresses, peer, Binding::default(), path);
        tokio::spawn(async move {
            if let Some(session) = session.identified().await {
                session.run().await;
            }
        });
        theirs
    }

    /// Serves the given addresses until one coordinator has measured (with `once`) or `ended` completes. Coordinators recognize the
    /// agent by `key`.
    pub async fn serve(
        options: AgentOptions,
        key: AgentKey,
        addresses: &[SocketAddr],
        ended: impl Future<Output = ()>,
    ) -> Result<(), ControlError> {
        let mut listeners = Vec::new();
        let mut port = None;
        // `::` takes IPv4 as well, unless an address of IPv4 is given, too.
        let only_v6 = addresses.iter().any(SocketAddr::is_ipv4);
        for wanted in addresses {
            // Port 0 requests any port; the second address then gets the port of the first.
            let wanted = if wanted.port() == 0 { at_port(*wanted, port.unwrap_or(0)) } else { *wanted };
            let listener = listen(wanted, only_v6)?;
            let address =
                listener.local_addr().map_err(|source| ControlError::io(format!("listen on {wanted}"), source))?;
            port.get_or_insert(address.port());
            listeners.push((listener, address));
        }
        #[cfg(feature = "metrics")]
        let metrics = options.metrics.map(|address| listen(address, true)).transpose()?;
        let listening = listeners.iter().map(|(_, address)| *address).collect();
        let shared = Arc::new(Shared::new(options, listening));
        for (listener, address) in listeners {
            let udp = udp_port(address, only_v6)?;
            let guard = DatagramListener::new().map_err(|source| ControlError::io("draw a random number", source))?;
            tokio::spawn(data_acceptor::serve_udp(udp, address, shared.data_acceptor.clone(), guard));
            shared.log(&say!("listening on {address} (tcp and udp), protocol {PROTOCOL}"));
            tokio::spawn(accept(shared.clone(), key.clone(), listener));
        }
        #[cfg(feature = "metrics")]
        if let Some(listener) = metrics {
            let address = listener.local_addr().map_err(|source| ControlError::io("listen for metrics", source))?;
            shared.log(&metrics::place(address).into());
            tokio::spawn(metrics::serve(shared.clone(), listener));
        }
        let attendance = match &shared.options.bus {
            Some(bus) => Some(over_bus::join(&shared, &key, bus).await?),
            None => None,
        };
        (shared.options.listening)(&shared.listening);
        tokio::select! {
            // With time for the last answer to reach the coordinator.
            () = shared.served.notified() => tokio::time::sleep(Duration::from_millis(200)).await,
            () = ended => {}
        }
        if let Some(attendance) = attendance {
            attendance.leave().await;
        }
        Ok(())
    }
}

/// The loopback addresses of IPv4 and IPv6 with `port`.
#[must_use]
pub fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port), SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port)]
}

impl Shared {
    fn new(options: AgentOptions, listening: Vec<SocketAddr>) -> Self {
        let Tuning { allowed, grace } = options.tuning;
        options.machine.obey(Rules { limits: options.limits.clone(), allows_tuning: allowed, grace });
        Self {
            data_acceptor: Arc::default(),
            port: listening.first().map(SocketAddr::port),
            listening,
            // A connection whose path is watched has two files.
            gate: Gate::new(file_limit() / 2),
            challenges: Challenges::default(),
            lines: LogLines::default(),
            results_turns: Turns::default(),
            #[cfg(feature = "metrics")]
            measured: Measured::default(),
            welcomes: SharedReading::default(),
            served: Notify::new(),
            // An agent without randomness cannot draw cookies either and refuses the first trial.
            instance: engine::random::<8>().map(hex::encode).unwrap_or_default(),
            options,
        }
    }

    /// Writes one line to the log. Text from the network cannot add lines.
    fn log(&self, text: &Text) {
        (self.options.log)(&Line::of(text, MAX_LINE).text);
    }

    /// Writes a line about a stranger at `peer`, unless there are too many.
    fn log_unauthenticated(&self, peer: IpAddr, text: &Text) {
        if let Some(text) = self.lines.line(peer, Line::of(text, MAX_LINE).text, Instant::now()) {
            (self.options.log)(&text);
        }
    }

    /// Whether the shared port receives data connections to `address`.
    fn covers(&self, address: IpAddr) -> bool {
        self.listening.iter().any(|listening| {
            let any = listening.ip().is_unspecified() && (listening.is_ipv6() || address.is_ipv4());
            any || listening.ip() == address
        })
    }
}

/// Most characters of a line of the log.
const MAX_LINE: usize = 500;

fn listen(address: SocketAddr, only_v6: bool) -> Result<TcpListener, ControlError> {
    let failed = |source: std::io::Error| ControlError::Io {
        hint: match source.kind() {
            std::io::ErrorKind::AddrInUse => {
                say!("; the port is in use, perhaps by another agent: stop it, or use `--listen` with another port")
            }
            std::io::ErrorKind::AddrNotAvailable => say!("; this host does not have that address: see `thru host`"),
            std::io::ErrorKind::PermissionDenied => "; ports below 1024 need root".into(),
            _ => Text::default(),
        },
        operation: format!("cannot listen on {address}"),
        source,
    };
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None).map_err(failed)?;
    socket.set_reuse_address(true).map_err(failed)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6).map_err(failed)?;
    }
    socket.bind(&address.into()).map_err(failed)?;
    // Hundreds of flows may connect within a moment.
    socket.listen(4096).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    TcpListener::from_std(socket.into()).map_err(failed)
}

fn udp_port(address: SocketAddr, only_v6: bool) -> Result<tokio::net::UdpSocket, ControlError> {
    let failed = |source: std::io::Error| ControlError::io(format!("cannot listen on {address} (udp)"), source);
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None).map_err(failed)?;
    // Each flow gets a second socket on this port, connected to its peer.
    socket.set_reuse_port(true).map_err(failed)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6).map_err(failed)?;
    }
    socket.bind(&address.into()).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    tokio::net::UdpSocket::from_std(socket.into()).map_err(failed)
}

async fn accept(shared: Arc<Shared>, key: AgentKey, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(receive(shared.clone(), key.clone(), stream, peer));
            }
            // Most likely out of file descriptors: wait until some are closed.
            Err(error) => {
                shared.log(&say!("cannot accept: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Time limit for authentication on a short path, from the accepted connection to the proof: a packet may be lost several times. What
/// bounds the unauthenticated connections is the [`Gate`].
const GREETING_LIMIT: Duration = Duration::from_secs(30);

async fn receive(shared: Arc<Shared>, key: AgentKey, stream: TcpStream, peer: SocketAddr) {
    let limit = GREETING_LIMIT + patience_on(stream.as_fd());
    admit(&shared, peer.ip(), limit, greet(&shared, &key, stream, peer)).await;
}

/// Serves a new connection from `peer`: first as an unauthenticated one, within the limits for those, then as the session that
/// `greeting` returns within the limit.
async fn admit(shared: &Shared, peer: IpAddr, limit: Duration, greeting: impl Future<Output = Option<Session>>) {
    let mut unauthenticated = shared.gate.enter(peer);
    let session = tokio::select! {
        session = tokio::time::timeout(limit, greeting) => session.ok().flatten(),
        () = unauthenticated.ended() => None,
    };
    drop(unauthenticated);
    if let Some(session) = session {
        session.wire.path().give_up_after(shared.options.vanished_after);
        session.run().await;
    }
}

/// Handles a new connection by its first bytes. Returns a session for an authenticated coordinator.
async fn greet(shared: &Arc<Shared>, key: &AgentKey, mut stream: TcpStream, peer: SocketAddr) -> Option<Session> {
    let mut magic = [0; 8];
    stream.read_exact(&mut magic).await.ok()?;
    if &magic == CONTROL_MAGIC {
        if !shared.gate.may_shake_hands(peer.ip(), Instant::now()) {
            return None;
        }
        let (path, addresses) = (ControlPath::of(&stream), Addresses::of(stream.local_addr().ok(), peer));
        let (stream, binding) = key.accept(stream).await.ok()?;
        let session = Session::new(shared.clone(), stream, addresses, peer.to_string(), binding, path);
        return session.identified().await;
    }
    if !magic.starts_with(b"THRU") {
        let text = format!(
            "This is thru {}, a network measurement agent (control protocol {PROTOCOL}).\n",
            env!("CARGO_PKG_VERSION")
        );
        let _ = stream.write_all(text.as_bytes()).await;
        return None;
    }
    let mut hello = [0; HELLO_BYTES];
    hello[..8].copy_from_slice(&magic);
    stream.read_exact(&mut hello[8..]).await.ok()?;
    let hello = shared.data_acceptor.read(&hello)?;
    if shared.data_acceptor.is_token(&hello.cookie) {
        let _ = stream.write_all(&hello.reach_proof()).await;
    } else {
        let _ = shared.data_acceptor.deliver(&hello, || stream.into_std().map(Into::into));
    }
    None
}

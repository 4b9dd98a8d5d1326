//! The agent: lets coordinators measure with this host, under its rules.
//!
//! A supervisor that does no measuring itself: each measurement runs in worker processes that do nothing else.

mod data_acceptor;
mod facts;
mod gate;
mod greeting;
mod kept;
mod limits;
mod merge;
pub(crate) mod packets;
mod path_probe;
mod pool;
mod queue;
mod reach;
mod session;
mod stack;
mod tuning;
mod watch;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use model::{Inventory, SelfTestCitation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::ControlError;
use crate::limits::file_limit;
use crate::proto::auth::{self, Token};
use crate::proto::{CONTROL_MAGIC, PROTOCOL};
use crate::wire::PING_EVERY;
use data_acceptor::DataAcceptor;
use engine::transport::{DatagramListener, HELLO_BYTES, tcp_round_trip};
use facts::{Reading, Welcome};
use gate::Gate;
pub(crate) use greeting::hello;
pub use limits::Limits;
pub use packets::Captures;
pub use pool::Workers;
pub use queue::Machine;
use queue::Queue;
use session::{Addresses, Session};
pub use tuning::{Tuning, recover, reported};

/// How an agent works.
pub struct AgentOptions {
    /// The program's version, with the commit that it was built from; runs record it.
    pub version: String,
    /// Where its measuring processes come from.
    pub workers: Workers,
    /// What coordinators must know; `None` lets anybody in who reaches the port.
    pub token: Option<Token>,
    /// Its places for measurements.
    pub machine: Machine,
    /// What coordinators may do.
    pub limits: Limits,
    /// Whether coordinators may have it load TCP stacks into the kernel.
    pub allow_stacks: bool,
    /// What coordinators may do to the host's settings.
    pub tuning: Tuning,
    /// Folder for sockets between processes of this machine.
    pub directory: PathBuf,
    /// Ends after the first coordinator that measured.
    pub once: bool,
    /// How long a coordinator may be unreachable before its place is given to the next.
    pub vanished_after: Duration,
    /// Where packets are kept that coordinators want captured.
    pub captures: Captures,
    /// Finds the last self-test of this host, which the inventory cites.
    pub selftest: CitesSelfTest,
    /// Hears what happens, a line at a time.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
    /// Hears where it listens, once it does.
    pub listening: OnListening,
}

/// Is given this host's inventory and cites the last self-test that is kept of it.
pub type CitesSelfTest = Box<dyn Fn(&Inventory) -> Option<SelfTestCitation> + Send + Sync>;

/// Is given the addresses that an agent listens on.
pub type OnListening = Box<dyn Fn(&[SocketAddr]) + Send + Sync>;

/// One host's agent.
#[derive(Clone)]
pub struct Agent(Arc<Shared>);

/// What all sessions of an agent share.
pub(crate) struct Shared {
    options: AgentOptions,
    queue: Arc<Queue>,
    data_acceptor: Arc<DataAcceptor>,
    /// The port that data may come in by, where there is one.
    port: Option<u16>,
    /// Addresses that it listens on, to tell whether a data address is covered.
    listening: Vec<SocketAddr>,
    gate: Arc<Gate>,
    /// Coordinators that were let in and are connected.
    clients: AtomicUsize,
    welcomes: Reading<Welcome>,
    served: Notify,
    /// Tells this agent from others.
    instance: String,
}

impl Agent {
    /// An agent within this process, for the near end and for transports of one machine.
    #[must_use]
    pub fn local(options: AgentOptions) -> Self {
        Self(Arc::new(Shared::new(options, Vec::new())))
    }

    /// Talks with a coordinator in this process.
    pub(crate) fn converse(&self) -> tokio::io::DuplexStream {
        let (mine, theirs) = tokio::io::duplex(64 << 10);
        let session = Session::new(self.0.clone(), mine, Addresses::default(), "this process".into());
        tokio::spawn(async move {
            if let Some(session) = session.identified().await {
                session.run().await;
            }
        });
        theirs
    }

    /// Serves the given addresses until it has served once (where told so) or the caller drops the future.
    pub async fn serve(options: AgentOptions, addresses: &[SocketAddr]) -> Result<(), ControlError> {
        let mut listeners = Vec::new();
        let mut port = None;
        for wanted in addresses {
            // Port 0 asks for any; the second address then takes the one that the first got.
            let wanted = if wanted.port() == 0 { SocketAddr::new(wanted.ip(), port.unwrap_or(0)) } else { *wanted };
            let listener = listen(wanted)?;
            let address =
                listener.local_addr().map_err(|source| ControlError::io(format!("listen on {wanted}"), source))?;
            port.get_or_insert(address.port());
            listeners.push((listener, address));
        }
        let listening = listeners.iter().map(|(_, address)| *address).collect();
        let shared = Arc::new(Shared::new(options, listening));
        for (listener, address) in listeners {
            let udp = udp_port(address)?;
            let guard = DatagramListener::new().map_err(|source| ControlError::io("draw a random number", source))?;
            tokio::spawn(data_acceptor::serve_udp(udp, address, shared.data_acceptor.clone(), guard));
            shared.log(&format!("listening on {address} (tcp and udp), protocol {PROTOCOL}"));
            tokio::spawn(accept(shared.clone(), listener));
        }
        (shared.options.listening)(&shared.listening);
        shared.served.notified().await;
        // Lets the last answer reach the coordinator.
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    }
}

/// Loopback, both versions, on `port`.
#[must_use]
pub fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port), SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port)]
}

impl Shared {
    fn new(options: AgentOptions, listening: Vec<SocketAddr>) -> Self {
        Self {
            queue: options.machine.0.clone(),
            data_acceptor: Arc::default(),
            port: listening.first().map(SocketAddr::port),
            listening,
            gate: Gate::new(file_limit()),
            clients: AtomicUsize::new(0),
            welcomes: Reading::default(),
            served: Notify::new(),
            // An agent without randomness cannot draw cookies either and refuses the first trial.
            instance: auth::random::<8>().map(|bytes| auth::hex(&bytes)).unwrap_or_default(),
            options,
        }
    }

    /// Says a line to the log. What came from the network stays within it.
    fn log(&self, text: &str) {
        (self.options.log)(&line(text));
    }

    /// Whether data connections to `address` come in by the shared port.
    fn covers(&self, address: IpAddr) -> bool {
        self.listening.iter().any(|listening| {
            let any = listening.ip().is_unspecified() && (listening.is_ipv6() || address.is_ipv4());
            any || listening.ip() == address
        })
    }
}

/// The most characters of a line of the log.
const LOGGED: usize = 500;

/// Text from the network as the log and the journal hold it: one line, without what a terminal would act upon.
fn line(text: &str) -> String {
    model::plain(&text.chars().take(LOGGED).collect::<String>()).into_owned()
}

fn listen(address: SocketAddr) -> Result<TcpListener, ControlError> {
    let failed = |source: std::io::Error| ControlError::Io {
        hint: match source.kind() {
            std::io::ErrorKind::AddrInUse => "; another agent runs there: stop it, or use --listen with another port",
            std::io::ErrorKind::AddrNotAvailable => "; this host does not have that address: see `thru host`",
            std::io::ErrorKind::PermissionDenied => "; ports below 1024 need root",
            _ => "",
        },
        operation: format!("cannot listen on {address}"),
        source,
    };
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None).map_err(failed)?;
    socket.set_reuse_address(true).map_err(failed)?;
    socket.bind(&address.into()).map_err(failed)?;
    // Hundreds of flows may connect within a moment.
    socket.listen(4096).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    TcpListener::from_std(socket.into()).map_err(failed)
}

fn udp_port(address: SocketAddr) -> Result<tokio::net::UdpSocket, ControlError> {
    let failed = |source: std::io::Error| ControlError::io(format!("cannot listen on {address} (udp)"), source);
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None).map_err(failed)?;
    // Each flow gets a second socket on this port, connected to its peer.
    socket.set_reuse_port(true).map_err(failed)?;
    socket.bind(&address.into()).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    tokio::net::UdpSocket::from_std(socket.into()).map_err(failed)
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(receive(shared.clone(), stream, peer));
            }
            // Out of descriptors, most likely: wait for some to be given back.
            Err(error) => {
                shared.log(&format!("cannot accept: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// How long a stranger may take to show who it is, from its first byte to its proof.
const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// Takes a connection in: a stranger within the bounds on those, and a session once it has shown who it is.
async fn receive(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let mut stay = shared.gate.enter(peer.ip());
    let session = tokio::select! {
        session = tokio::time::timeout(GREETING_LIMIT, greet(&shared, stream, peer)) => session.ok().flatten(),
        () = stay.ended() => None,
    };
    drop(stay);
    if let Some(session) = session {
        session.run().await;
    }
}

/// Sorts a new connection by its first bytes; a session is that of a coordinator that may come in.
async fn greet(shared: &Arc<Shared>, mut stream: TcpStream, peer: SocketAddr) -> Option<Session> {
    let mut magic = [0; 8];
    stream.read_exact(&mut magic).await.ok()?;
    if &magic == CONTROL_MAGIC {
        prepare_control(&stream, shared.options.vanished_after);
        let here = stream.local_addr().ok().map(|address| address.ip());
        let addresses = Addresses { here, peer: Some(peer.ip()) };
        return Session::new(shared.clone(), stream, addresses, peer.to_string()).identified().await;
    }
    if !magic.starts_with(b"THRU") {
        let text = format!(
            "This is thru {}, a network measurement agent speaking protocol {PROTOCOL}.\n",
            env!("CARGO_PKG_VERSION")
        );
        let _ = stream.write_all(text.as_bytes()).await;
        return None;
    }
    let mut hello = [0; HELLO_BYTES];
    hello[..8].copy_from_slice(&magic);
    stream.read_exact(&mut hello[8..]).await.ok()?;
    let hello = shared.data_acceptor.read(&hello)?;
    if shared.data_acceptor.vouches(&hello.cookie) {
        let _ = stream.write_all(&hello.reach_proof()).await;
    } else {
        let _ = shared.data_acceptor.hand_in(&hello, || stream.into_std().map(Into::into));
    }
    None
}

/// Makes the kernel find out an unreachable peer: pings that stay unacknowledged end the connection. A long path has four round
/// trips more, for a ping that was lost and for queues that fill while it is measured.
pub(crate) fn prepare_control(stream: &TcpStream, vanished_after: Duration) {
    let socket = socket2::SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    let path = tcp_round_trip(stream.as_fd()).unwrap_or_default() * 4;
    let _ = socket.set_tcp_user_timeout(Some(vanished_after.saturating_sub(PING_EVERY).max(PING_EVERY) + path));
}

//! What a transport offers: how its two ends meet and open links.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use model::{NamedTransport, ReceiveBy, Role, SendBy, Spec, TransportFacts};
use text::say;

use super::capabilities::Capabilities;
use super::handshake::{Cookie, FlowHello};
use super::link::Link;
use super::scope::scoped;
use crate::core::EngineError;

/// The default block of a stream, bytes.
const DEFAULT_BLOCK: u64 = 128 << 10;

/// A method of carrying bytes between two ends.
pub trait Transport: Sync {
    /// Its name and what it is. Other code has these facts from here, or from a spec that carries them.
    fn named(&self) -> &'static NamedTransport;

    /// What it is.
    fn facts(&self) -> &'static TransportFacts {
        &self.named().facts
    }

    /// Its name on the command line.
    fn name(&self) -> &'static str {
        self.named().name
    }

    /// One line for the help.
    fn about(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether this host can take part at all; if not, what is missing and where to get it.
    fn check_host(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The send methods that it has: those that `--engine auto` tries.
    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy]
    }

    /// The receive methods that it has.
    fn receives(&self) -> &'static [ReceiveBy] {
        &[ReceiveBy::Copy]
    }

    /// Whether this host's kernel has the send and receive methods that the spec requests at the end of `role`.
    fn check_engine(&self, spec: &Spec, role: Role) -> Result<(), EngineError> {
        let _ = (spec, role);
        Ok(())
    }

    /// Whether a receiver that is slower than its sender loses datagrams at its socket, so that the sender should be
    /// paced to its buffer ([`Spec::paced_to_receiver`]).
    fn overruns(&self) -> bool {
        false
    }

    /// Whether the kernel takes sends and receives as queued operations and reports their completion (io_uring).
    fn completes(&self) -> bool {
        false
    }

    /// The default block of a stream in bytes, with data over IPv6 or not.
    fn default_block(&self, ipv6: bool) -> u64 {
        let _ = ipv6;
        DEFAULT_BLOCK
    }

    /// What starts its two ends, if agents do not.
    fn launcher(&self) -> Option<Launcher> {
        None
    }

    /// Whether its active side finds the passive one by an IP address or, within one machine, by a socket's path.
    /// Other rendezvous cannot be verified.
    fn meets_in_sight(&self) -> bool {
        true
    }

    /// Refuses what it cannot do beyond what its capabilities say.
    fn check(&self, spec: &Spec) -> Result<(), EngineError> {
        let _ = spec;
        Ok(())
    }

    /// Opens the passive side on its own sockets, for transports without a shared port or for specs that need a
    /// listener of their own ([`Spec::far`]'s `needs_own_listener`).
    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError>;

    /// Connects one flow to the passive side and sends its hello.
    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError>;

    /// Connects many flows, in the order of their hellos. On a path with a delay, many attempts in parallel save time.
    fn connect_all(&self, spec: &Spec, to: &Rendezvous, hellos: &[FlowHello]) -> Result<Vec<Link>, EngineError> {
        hellos.iter().map(|hello| self.connect(spec, to, hello)).collect()
    }

    /// Makes a link of a socket that the agent's port accepted for `hello`.
    fn adopt(&self, spec: &Spec, socket: OwnedFd, hello: &FlowHello) -> Result<Link, EngineError> {
        let _ = (spec, socket, hello);
        Err(EngineError::unsupported(
            say!("{} connections through the shared port", self.name()),
            "give it a listener of its own",
        ))
    }
}

/// What starts the processes of both ends of a transport, so that no HOST is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun -n 2`, which starts the whole command twice.
    Mpirun,
    /// `pvm_spawn`, which the near end calls for the far end's agent.
    PvmSpawn,
}

/// How a passive side should listen.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Address for IP transports.
    pub address: IpAddr,
    /// The interface of a link-local address, as its number; 0 to find it by the address.
    pub scope: u32,
    /// Directory for sockets of one machine.
    pub directory: PathBuf,
    /// The secret that an active side must prove.
    pub cookie: Cookie,
    /// How much longer than usual the path may take for an answer.
    pub patience: Duration,
}

impl ListenOptions {
    /// For a path of usual length.
    #[must_use]
    pub fn new(address: IpAddr, directory: PathBuf, cookie: Cookie) -> Self {
        Self { address, scope: 0, directory, cookie, patience: Duration::ZERO }
    }

    /// Where an IP transport's listener for `spec` is bound.
    pub(crate) fn wanted(&self, spec: &Spec) -> SocketAddr {
        let port = spec.far.port.unwrap_or(0);
        match spec.far.data_addr {
            Some(other) if other != self.address => scoped(other, port, 0),
            _ => scoped(self.address, port, self.scope),
        }
    }
}

/// Where the active side finds the passive one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendezvous {
    /// IP transports: the address to connect to.
    pub address: Option<SocketAddr>,
    /// Transports of one machine: the socket's path. PVM: the task's number.
    pub path: Option<PathBuf>,
    /// The secret to prove there.
    pub cookie: Cookie,
    /// What else the transport's passive side passes to its active side; nothing between the two reads it.
    pub blob: Vec<u8>,
    /// How much longer than usual the path may take for an answer.
    pub patience: Duration,
}

/// A passive side.
pub trait Listener: Send {
    /// How to find it.
    fn rendezvous(&self) -> Rendezvous;

    /// Waits for the next connection with the right cookie, at most until `deadline_ns`; all others are refused.
    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError>;
}

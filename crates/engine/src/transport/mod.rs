//! What carries the bytes. Each transport is one file with a [`Transport`] and one line in [`TRANSPORTS`].
//!
//! A transport yields [`Link`]s: open connections whose system calls are behind the [`Channel`] trait. Patterns are
//! compiled for each kind of channel and called once per batch of work, not through a table for each message.

mod certificate;
mod channel;
mod completion;
mod datagram;
mod delayed_reads;
mod exclusive;
pub mod foreign;
mod handshake;
mod hello_exchange;
mod ktls;
pub mod local;
mod memcpy;
pub mod mpi;
mod mptcp;
mod options;
pub mod pvm;
mod quic;
mod send_method;
mod shm;
mod stream;
pub(crate) mod sys;
mod zerocopy_receive;

mod tcp;
mod tcp_info;
mod tls;
pub mod udp;
mod unix;
mod vsock;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use model::{ReceiveBy, Role, SendBy, SocketFacts, Spec, TransportFacts};

use crate::EngineError;
use crate::runner::{Flow, FlowSetup};

pub(crate) use channel::{Breaker, Channel, Kind};
pub(crate) use completion::Operations;
pub(crate) use delayed_reads::DELAYED_READ_BYTES;
pub use handshake::{Admission, DatagramListener, FlowHello, HELLO_BYTES, REACH_PROOF_BYTES};
pub(crate) use handshake::{SIGNAL_BYTES, Signal};
pub use options::check_end as check_options;
pub(crate) use sys::batch::{GRO_PIECES, GSO_SEGMENTS, MMSG, Mark};
pub(crate) use sys::uring;
pub(crate) use tcp_info::TcpInfo;
pub use tcp_info::tcp_round_trip;

/// Every transport of this build, in the order of the manual.
pub static TRANSPORTS: &[&dyn Transport] = &[
    &tcp::Tcp,
    &mptcp::Mptcp,
    &tls::Tls,
    &udp::Udp,
    &quic::Quic,
    &unix::UnixStream,
    &unix::UnixDatagram,
    &vsock::Vsock,
    &memcpy::Memcpy,
    &shm::SharedMemory,
    &mpi::MessagePassing,
    &pvm::VirtualMachine,
];

/// The transport called `name`.
pub fn transport(name: &str) -> Result<&'static dyn Transport, EngineError> {
    TRANSPORTS.iter().copied().find(|transport| transport.name() == name).ok_or_else(|| EngineError::Unknown {
        kind: "transport",
        name: name.into(),
        known: TRANSPORTS.iter().map(|transport| transport.name()).collect::<Vec<_>>().join(", "),
    })
}

/// The names of the transports that `fits` accepts, for a message: `tcp, mptcp or unix`.
pub fn names(fits: impl Fn(&dyn Transport) -> bool) -> String {
    let fitting = TRANSPORTS.iter().filter(|transport| fits(**transport));
    model::alternatives(&fitting.map(|transport| transport.name()).collect::<Vec<_>>())
}

/// The default block of a stream, bytes.
const DEFAULT_BLOCK: u64 = 128 << 10;

/// A method of carrying bytes between two ends.
pub trait Transport: Sync {
    /// What other crates know of it.
    fn facts(&self) -> &'static TransportFacts;

    /// Its name on the command line.
    fn name(&self) -> &'static str {
        self.facts().name
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

    /// Whether it has congestion controls, which `--cc` names.
    fn has_congestion_controls(&self) -> bool {
        self.facts().is_over_tcp()
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
            format!("{} connections through the shared port", self.name()),
            "give it a listener of its own",
        ))
    }
}

/// What a transport can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Keeps message boundaries and may lose messages.
    pub datagram: bool,
    /// Has a file descriptor to wait on, so that one thread can serve many flows.
    pub pollable: bool,
    /// Has no second end, only the active side.
    pub single_ended: bool,
    /// Its connections can arrive through the agent's one port.
    pub shared_port: Option<SharedPort>,
    /// The largest block in bytes.
    pub max_block: u64,
    /// The smallest block of a stream in bytes: datagrams carry a sequence number.
    pub min_stream_block: u64,
    /// Can open a connection for each transaction.
    pub reconnects: bool,
    /// Its receivers can delay reads while payload arrives quickly.
    pub delays_reads: bool,
}

impl Capabilities {
    /// Capabilities of a stream socket between two hosts; the transports state how they differ.
    pub(crate) const STREAM: Self = Self {
        datagram: false,
        pollable: true,
        single_ended: false,
        shared_port: None,
        max_block: Spec::MAX_BLOCK,
        min_stream_block: 1,
        reconnects: false,
        delays_reads: false,
    };
}

/// What starts the processes of both ends of a transport, so that no HOST is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun -n 2`, which starts the whole command twice.
    Mpirun,
    /// `pvm_spawn`, which the near end calls for the far end's agent.
    PvmSpawn,
}

/// The agent's shared sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedPort {
    /// The TCP port.
    Tcp,
    /// The UDP port of the same number.
    Udp,
}

/// How a passive side should listen.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Address for IP transports.
    pub address: IpAddr,
    /// Directory for sockets of one machine.
    pub directory: PathBuf,
    /// The secret that an active side must prove.
    pub cookie: Cookie,
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
}

/// The secret that ties a connection to a measurement.
pub type Cookie = [u8; 16];

/// A passive side.
pub trait Listener: Send {
    /// How to find it.
    fn rendezvous(&self) -> Rendezvous;

    /// Waits for the next connection with the right cookie, at most until `deadline_ns`; all others are refused.
    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError>;
}

/// An open connection, ready for a machine; its channel type no longer matters.
pub struct Link(Box<dyn IntoFlow>);

/// Turns a channel of some type into a flow.
trait IntoFlow: Send {
    fn into_flow(self: Box<Self>, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>;

    fn facts(&self) -> SocketFacts;

    fn answer_handshake(&mut self);
}

struct OpenChannel<C: Channel>(C);

impl<C: Channel> IntoFlow for OpenChannel<C> {
    fn into_flow(self: Box<Self>, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        self.0.into_flow(setup)
    }

    fn facts(&self) -> SocketFacts {
        self.0.facts()
    }

    fn answer_handshake(&mut self) {
        self.0.answer_handshake();
    }
}

impl Link {
    pub(crate) fn of<C: Channel>(channel: C) -> Self {
        Self(Box::new(OpenChannel(channel)))
    }

    pub(crate) fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        self.0.into_flow(setup)
    }

    /// Answers handshake messages that the other end repeats; call it about every [`udp::RETRY`] until the trial starts.
    pub fn answer_handshake(&mut self) {
        self.0.answer_handshake();
    }

    /// The addresses of its socket, this end's first; `None` if it has no IP addresses.
    #[must_use]
    pub fn ends(&self) -> Option<[SocketAddr; 2]> {
        let facts = self.0.facts();
        let address = |text: Option<String>| text?.parse().ok();
        Some([address(facts.local)?, address(facts.peer)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_and_the_table_of_facts_have_the_same_transports() {
        let facts: Vec<TransportFacts> = TRANSPORTS.iter().map(|transport| *transport.facts()).collect();
        assert_eq!(facts, model::transport::TRANSPORTS);
    }

    #[test]
    fn a_message_names_the_transports_that_fit() {
        assert_eq!(names(|transport| transport.completes()), "tcp, mptcp or unix");
    }
}

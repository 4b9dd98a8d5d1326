//! What carries the bytes. Each transport is one file with a [`Transport`] and one line in [`TRANSPORTS`].
//!
//! A transport yields [`Link`]s: open connections whose system calls hide behind the [`Channel`] trait, so that patterns are
//! compiled for each kind of channel and called once for a batch of work, never through a table for each message.

mod certificate;
mod completion;
mod datagram;
mod handshake;
mod introduction;
mod ktls;
pub mod local;
mod mapper;
mod memcpy;
mod mover;
pub mod mpi;
mod mptcp;
mod options;
pub mod pvm;
mod quic;
mod shm;
mod sole;
mod stream;
pub(crate) mod sys;

mod tcp;
mod tcp_info;
mod tls;
pub mod udp;
mod unix;
mod vsock;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use model::{Engine, ReceiveBy, Role, SendBy, SocketFacts, Spec};

use crate::EngineError;
use crate::pattern::Turn;
use crate::runner::{Flow, FlowOf, FlowSetup};

pub(crate) use completion::Orders;
pub use handshake::{Admission, DatagramDoor, FlowHello, HELLO_BYTES};
pub(crate) use handshake::{SIGNAL_BYTES, Signal};
pub use options::check_end as check_options;
pub(crate) use sys::batch::{GRO_PIECES, GSO_SEGMENTS, MMSG, Mark};
pub(crate) use sys::uring;
pub(crate) use tcp_info::TcpInfo;

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

/// A way to carry bytes between two ends.
pub trait Transport: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// One line for the help.
    fn about(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether this host can take part at all; what is missing, and where to get it, where it cannot.
    fn check_host(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The ways to send that it has: those that `--engine auto` tries.
    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy]
    }

    /// The ways to receive that it has.
    fn receives(&self) -> &'static [ReceiveBy] {
        &[ReceiveBy::Copy]
    }

    /// Whether this host's kernel has the ways to send and receive that the spec wants of the end of `role`.
    fn check_engine(&self, spec: &Spec, role: Role) -> Result<(), EngineError> {
        let _ = (spec, role);
        Ok(())
    }

    /// Whether a receiver that is slower than its sender loses datagrams at its socket, so that a sender does well to keep to
    /// what it has room for ([`Spec::paced_to_receiver`]).
    fn overruns(&self) -> bool {
        false
    }

    /// Whether the kernel takes its sends and receives as orders and says when they are completed (io_uring).
    fn completes(&self) -> bool {
        false
    }

    /// Who starts its two ends, where that is not for agents to do.
    fn launcher(&self) -> Option<Launcher> {
        None
    }

    /// Refuses what it cannot do beyond what its capabilities say.
    fn check(&self, spec: &Spec) -> Result<(), EngineError> {
        let _ = spec;
        Ok(())
    }

    /// Opens the passive side on resources of its own, for transports without a door or for specs that need one
    /// ([`Spec::far`]'s `needs_own_listener`).
    fn listen(&self, spec: &Spec, place: &Place) -> Result<Box<dyn Listener>, EngineError>;

    /// Connects one flow to the passive side and introduces itself.
    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError>;

    /// Connects many flows, in the order of their hellos. On a path with a delay it pays to have many attempts under way.
    fn connect_all(&self, spec: &Spec, to: &Rendezvous, hellos: &[FlowHello]) -> Result<Vec<Link>, EngineError> {
        hellos.iter().map(|hello| self.connect(spec, to, hello)).collect()
    }

    /// Makes a link of a socket that the agent's door accepted for `hello`.
    fn adopt(&self, spec: &Spec, socket: OwnedFd, hello: &FlowHello) -> Result<Link, EngineError> {
        let _ = (spec, socket, hello);
        Err(EngineError::unsupported(
            format!("{} connections through the shared port", self.name()),
            "use a listener of its own",
        ))
    }
}

/// What a transport can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Keeps the borders of messages and may lose them.
    pub datagram: bool,
    /// Has a file descriptor to wait on, so that one thread can serve many flows.
    pub pollable: bool,
    /// Has no second end: the active side is all there is.
    pub single_ended: bool,
    /// Both ends must be on one machine.
    pub one_machine: bool,
    /// Its connections can come in through the agent's one port.
    pub door: Option<Door>,
    /// The largest block in bytes.
    pub max_block: u64,
    /// The smallest block of a stream in bytes: datagrams carry a sequence number.
    pub min_stream_block: u64,
    /// Can open a connection for each transaction.
    pub reconnects: bool,
}

/// What starts the processes of both ends of a transport, so that there is no HOST to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun -n 2`, which starts the whole command twice.
    Mpirun,
    /// `pvm_spawn`, which the near end calls for the far end's agent.
    PvmSpawn,
}

/// The agent's shared sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The TCP port.
    Tcp,
    /// The UDP port of the same number.
    Udp,
}

/// Where a passive side should listen.
#[derive(Debug, Clone)]
pub struct Place {
    /// Address for IP transports.
    pub address: IpAddr,
    /// Directory for sockets of one machine.
    pub directory: PathBuf,
    /// What an active side must show.
    pub cookie: Cookie,
}

/// Where the active side finds the passive one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendezvous {
    /// IP transports: the address to connect to.
    pub address: Option<SocketAddr>,
    /// Transports of one machine: the socket's path. PVM: the task's number.
    pub path: Option<PathBuf>,
    /// What to show there.
    pub cookie: Cookie,
    /// What else the transport's passive side tells its active side; nobody between the two reads it.
    pub blob: Vec<u8>,
}

/// The secret that ties a connection to a measurement.
pub type Cookie = [u8; 16];

/// A passive side.
pub trait Listener: Send {
    /// How to find it.
    fn rendezvous(&self) -> Rendezvous;

    /// Waits for the next connection that shows the right cookie, at most until `deadline_ns`; strangers are turned away.
    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError>;
}

/// An open connection, ready to be given a machine; which channel it has is nobody's business any more.
pub struct Link(Box<dyn IntoFlow>);

/// Turns a channel of some type into a flow.
trait IntoFlow: Send {
    fn into_flow(self: Box<Self>, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>;
}

struct OpenChannel<C: Channel>(C);

impl<C: Channel> IntoFlow for OpenChannel<C> {
    fn into_flow(self: Box<Self>, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        self.0.into_flow(setup)
    }
}

impl Link {
    pub(crate) fn of<C: Channel>(channel: C) -> Self {
        Self(Box::new(OpenChannel(channel)))
    }

    pub(crate) fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        self.0.into_flow(setup)
    }
}

/// The kinds of channel that patterns tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes without borders, in order, none lost.
    Stream,
    /// Messages with borders that may be lost, doubled or reordered.
    Datagram,
    /// No other end.
    Alone,
}

/// The system calls of one open connection. Errors of kind `WouldBlock` mean "not now", also from a blocking call that timed
/// out.
pub(crate) trait Channel: Send + 'static {
    /// What kind it is, known when a pattern is compiled for it.
    const KIND: Kind;

    /// Whether all that has arrived shows in its descriptor: after a read that was not filled nothing is left, and what comes
    /// later wakes a thread that waits there. Not so where this process keeps received bytes of its own.
    const SHOWS_ALL: bool = false;

    /// A flow over it.
    fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>
    where
        Self: Sized,
    {
        FlowOf::boxed(self, setup)
    }

    /// Hands bytes to the transport; may take fewer than given (a datagram channel takes all or none).
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Takes bytes from the transport; 0 means that the other end has finished (for datagrams: an empty message).
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Makes ready the ways that the spec asks for, with blocks of `block` bytes. Transports that have only the plain ones
    /// leave this alone; the spec was checked against [`Transport::sends`] and [`Transport::receives`].
    fn equip(&mut self, engine: &Engine, sends: bool, block: usize) -> io::Result<()> {
        let _ = (engine, sends, block);
        Ok(())
    }

    /// Hands `part` of a block of payload to the transport. The bytes that arrive are as many, but may be others than those
    /// of the block: no receiver of a stream looks at them.
    #[inline]
    fn send_part(&mut self, block: &[u8], part: std::ops::Range<usize>) -> io::Result<usize> {
        self.send(&block[part])
    }

    /// Takes payload that nobody will look at.
    #[inline]
    fn recv_payload(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.recv(into)
    }

    /// How many datagrams of `size` bytes one call may send.
    fn datagrams_per_call(&self, size: usize) -> usize {
        let _ = size;
        1
    }

    /// Sends `bytes` as datagrams of `size` bytes, the last maybe shorter, at most
    /// [`datagrams_per_call`](Self::datagrams_per_call); how many were taken.
    #[inline]
    fn send_datagrams(&mut self, bytes: &[u8], size: usize) -> io::Result<usize> {
        let _ = size;
        self.send(bytes).map(|_| 1)
    }

    /// Receives one datagram or several, and notes where in `into` they lie.
    #[inline]
    fn recv_datagrams(&mut self, into: &mut [u8], marks: &mut Vec<Mark>) -> io::Result<()> {
        let len = self.recv(into)? as u32;
        marks.push(Mark { at: 0, len });
        Ok(())
    }

    /// Switches between blocking and non-blocking calls.
    fn set_nonblocking(&mut self, on: bool) -> io::Result<()>;

    /// Makes blocking sends return what they got rid of after a tenth of a second, so that a sender on a slow path sees the
    /// stop flag in time.
    fn limit_sends(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether a send was asked for that may have gone out but was not counted yet: its machine asks once more before it
    /// does anything else.
    #[inline]
    fn owes(&self) -> bool {
        false
    }

    /// What is ordered from the kernel, where calls are orders.
    fn orders(&mut self) -> Option<&mut Orders> {
        None
    }

    /// What to wait on, for pollable transports.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// What a thread should do where a machine wants to wait. A channel whose protocol runs in this process adds its own
    /// wishes: a time by which it must be called, or another readiness than the one that the machine means.
    fn waiting(&mut self, turn: Turn) -> io::Result<Turn> {
        Ok(turn)
    }

    /// Whether the flow may be left alone while its thread waits for another one: nothing that it sent still needs this
    /// process, and where its protocol runs in this process the other end's next word is here. The kernel sees to its own
    /// transports.
    fn settled(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Says that this end will send no more.
    fn finish_sending(&mut self) -> io::Result<()>;

    /// Closes this connection and opens the next one of the same kind; `WouldBlock` while that is on its way.
    fn renew(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes this connection in both directions; [`renew`](Self::renew) opens the next one.
    fn hang_up(&mut self) -> io::Result<()> {
        self.finish_sending()
    }

    /// What the kernel says of it.
    fn facts(&self) -> SocketFacts;

    /// Of that, what differs between the flows of a trial, for those of a crowd.
    fn brief_facts(&self) -> SocketFacts {
        self.facts()
    }

    /// What the kernel's TCP says of it now, where it is carried by TCP.
    fn tcp(&self) -> Option<TcpInfo> {
        None
    }

    /// Bytes that the other end has not taken yet, as far as the kernel knows.
    fn unsent(&self) -> u64 {
        0
    }

    /// How many datagrams of `size` bytes this end's socket surely holds; `None` where a full one holds the sender back.
    fn receive_room(&self, size: usize) -> Option<u64> {
        let _ = size;
        None
    }

    /// How long the message that was received last had been in this end's socket, ns; 0 where nobody knows. The first call may
    /// do no more than ask the kernel to note arrivals.
    fn waited_ns(&self) -> u64 {
        0
    }

    /// Datagrams dropped at this end's socket.
    fn socket_drops(&self) -> u64 {
        0
    }

    /// Frees a thread that is blocked in a call on this channel.
    fn breaker(&self) -> Breaker;
}

/// Breaks a connection from another thread, so that a blocked call on it returns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker(Option<std::sync::Arc<std::sync::atomic::AtomicI32>>);

impl Breaker {
    pub(crate) fn of(slot: &std::sync::Arc<std::sync::atomic::AtomicI32>) -> Self {
        Self(Some(slot.clone()))
    }

    /// Shuts the connection down in both directions. Does nothing for channels whose calls time out by themselves.
    pub(crate) fn break_now(&self) {
        if let Some(slot) = &self.0 {
            let fd = slot.load(std::sync::atomic::Ordering::SeqCst);
            if fd >= 0 {
                sys::sockopt::shutdown_raw(fd);
            }
        }
    }

    /// Bytes that the other end has not acknowledged, 0 where nobody knows: a drain that shrinks them is progress.
    #[must_use]
    pub(crate) fn unsent(&self) -> u64 {
        self.0.as_ref().map_or(0, |slot| sys::sockopt::unsent_raw(slot.load(std::sync::atomic::Ordering::SeqCst)))
    }

    /// What the kernel's TCP says of it; `None` where it is not carried by TCP, or closed.
    pub(crate) fn tcp(&self) -> Option<TcpInfo> {
        TcpInfo::of_number(self.0.as_ref()?.load(std::sync::atomic::Ordering::SeqCst))
    }
}

//! Connections whose other end is another program. That program's protocol decides how they are found and when they
//! are over; its driver (crates/peers) handles that. Here they are opened with a spec's options and become links
//! like any other.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use model::{EndOptions, Role, SocketFacts, Spec, TransportName};
use socket2::{Domain, Socket, Type};

use super::datagram::DatagramChannel;
use super::stream::{Renewal, StreamChannel};
use super::tcp_info::TcpInfo;
use super::udp::roomy;
use super::{Breaker, Channel, DatagramMark, Kind, Link, options, sys, tcp};
use crate::core::EngineError;

pub use super::sys::arrivals::{Arrived, answer, enable_arrival_info, receive};

/// What another program writes at the front of its datagrams. One per socket, called for each datagram on the
/// measuring thread: it must neither lock nor allocate.
pub trait DatagramHeader: Send + 'static {
    /// Writes the header of datagram `number`, counted from 0, to the front of a block.
    fn write(&mut self, datagram: &mut [u8], number: u64);

    /// The number, from 0, of a datagram that has just arrived; `None` if it is not part of the stream.
    fn read(&mut self, datagram: &[u8]) -> Option<u64>;
}

/// A link over a connected TCP socket.
#[must_use]
pub fn stream(socket: OwnedFd, spec: &Spec) -> Link {
    Link::of(StreamChannel::foreign(socket, spec.io))
}

/// A link that makes a connection to `target` for each transaction (pattern crr).
///
/// # Errors
/// If the first socket cannot be created.
pub fn callers(spec: &Spec, target: SocketAddr) -> Result<Link, EngineError> {
    let renewal_spec = spec.clone();
    renewing(
        spec,
        target,
        Box::new(move || tcp::dial(&renewal_spec, target, None).map(OwnedFd::from).map_err(tcp::into_io)),
    )
}

/// A link that accepts a connection for each transaction.
///
/// # Errors
/// If the listener cannot be prepared.
pub fn callees(spec: &Spec, listener: TcpListener) -> Result<Link, EngineError> {
    let unready = |source: io::Error| EngineError::socket("accept from", "another program", source);
    let address = listener.local_addr().map_err(unready)?;
    socket2::SockRef::from(&listener).set_read_timeout(Some(ACCEPT_STEP)).map_err(unready)?;
    renewing(spec, address, Box::new(move || Ok(listener.accept()?.0.into())))
}

/// Interval at which a thread that waits for the next connection checks for the end.
const ACCEPT_STEP: Duration = Duration::from_millis(100);

/// Its first socket, which represents the flow between two transactions, is not connected.
fn renewing(spec: &Spec, address: SocketAddr, renewal: Renewal) -> Result<Link, EngineError> {
    let first = tcp::open(spec, address).map_err(|source| EngineError::socket("prepare for", address, source))?;
    let mut channel = StreamChannel::foreign(first.into(), spec.io);
    channel.renew_by(renewal);
    Ok(Link::of(channel))
}

/// A link over a connected UDP socket.
///
/// # Errors
/// If the socket cannot be prepared.
pub fn datagrams(socket: OwnedFd, header: impl DatagramHeader) -> Result<Link, EngineError> {
    let inner = DatagramChannel::new(socket, 0)
        .map_err(|source| EngineError::socket("prepare", "a connection to another program", source))?;
    Ok(Link::of(ProgramDatagrams { inner, header }))
}

/// Opens a connected socket of the spec's transport, TCP or UDP, with the near end's options. `link` gives the local port its offset.
///
/// # Errors
/// If the peer cannot be reached, or an option is refused.
pub fn dial(spec: &Spec, target: SocketAddr, link: u32) -> Result<OwnedFd, EngineError> {
    dial_within(spec, target, link, tcp::CONNECT_LIMIT)
}

/// Likewise, where a connection over TCP may take at most `limit`.
///
/// # Errors
/// If the peer cannot be reached, or an option is refused.
pub fn dial_within(spec: &Spec, target: SocketAddr, link: u32, limit: Duration) -> Result<OwnedFd, EngineError> {
    if spec.transport != TransportName::Udp {
        return tcp::dial(spec, target, Some((link, limit))).map(OwnedFd::from);
    }
    let failed = |source: io::Error| EngineError::socket("reach", target, source);
    let socket = Socket::new(Domain::for_address(target), Type::DGRAM, None).map_err(failed)?;
    options::before_handshake(socket.as_fd(), &spec.near, false)?;
    roomy(&socket, spec.near.rcvbuf.is_some());
    options::bind_near(&socket, &spec.near, target, Some(link))?;
    socket.connect(&target.into()).map_err(failed)?;
    options::connected(socket.as_fd(), &spec.near, spec, false)?;
    Ok(socket.into())
}

/// A TCP socket that listens on `address` with what must be set before a handshake.
///
/// # Errors
/// If the address cannot be bound, or an option is refused.
pub fn listen(address: SocketAddr, end: &EndOptions) -> Result<OwnedFd, EngineError> {
    let failed = |source: io::Error| EngineError::socket("listen on", address, source);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).map_err(failed)?;
    socket.set_reuse_address(true).map_err(failed)?;
    if address.is_ipv6() {
        // Each IP version has its own listener, as each of the agent's addresses has.
        socket.set_only_v6(true).map_err(failed)?;
    }
    options::before_handshake(socket.as_fd(), end, true)?;
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(BACKLOG).map_err(failed)?;
    Ok(socket.into())
}

/// Connections that may wait to be accepted: more than any of these programs opens for one test.
const BACKLOG: i32 = 512;

/// Sets the options of a connected socket, as the spec requests for the end of `role`.
///
/// # Errors
/// The option that was refused.
pub fn prepare(socket: BorrowedFd<'_>, spec: &Spec, role: Role) -> Result<(), EngineError> {
    let udp = spec.transport == TransportName::Udp;
    if udp {
        roomy(&socket2::SockRef::from(&socket), spec.end(role).rcvbuf.is_some());
    }
    options::connected(socket, spec.end(role), spec, !udp)
}

/// Bytes that a connected TCP socket has sent and that the other end's kernel has not acknowledged.
#[must_use]
pub fn unsent(socket: BorrowedFd<'_>) -> u64 {
    sys::sockopt::unsent(socket)
}

/// Bytes that a program has read from a connected TCP socket; `None` if the kernel does not count them.
#[must_use]
pub fn consumed(socket: BorrowedFd<'_>) -> Option<u64> {
    let received = TcpInfo::of(socket)?.sample(0).bytes_received?;
    Some(received.saturating_sub(rustix::io::ioctl_fionread(socket).unwrap_or(0)))
}

/// Bytes of a connected TCP socket that the other end's kernel has acknowledged; `None` if the kernel does not count them.
#[must_use]
pub fn acknowledged(socket: BorrowedFd<'_>) -> Option<u64> {
    TcpInfo::of(socket)?.sample(0).bytes_acked
}

/// Requests a receive buffer of a UDP socket that survives a scheduling gap.
pub fn make_roomy(socket: BorrowedFd<'_>) {
    roomy(&socket2::SockRef::from(&socket), false);
}

/// Datagrams that a UDP socket has dropped because it was full; 0 if the kernel does not report it.
#[must_use]
pub fn dropped(socket: BorrowedFd<'_>) -> u64 {
    sys::sockopt::drops(socket).unwrap_or(0)
}

/// A connected UDP socket whose datagrams have another program's header.
struct ProgramDatagrams<H> {
    inner: DatagramChannel,
    header: H,
}

impl<H: DatagramHeader> Channel for ProgramDatagrams<H> {
    const KIND: Kind = Kind::Datagram;

    #[inline]
    fn is_to_program(&self) -> bool {
        true
    }

    #[inline]
    fn number(&mut self, datagram: &mut [u8], number: u64) {
        self.header.write(datagram, number);
    }

    #[inline]
    fn number_of(&mut self, datagram: &[u8]) -> Option<u64> {
        self.header.read(datagram)
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.send(bytes)
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.inner.recv(into)
    }

    fn equip(&mut self, spec: &Spec, sends: bool, block: usize) -> io::Result<()> {
        self.inner.equip(spec, sends, block)
    }

    fn datagrams_per_call(&self, size: usize) -> usize {
        self.inner.datagrams_per_call(size)
    }

    #[inline]
    fn send_datagrams(&mut self, bytes: &[u8], size: usize) -> io::Result<usize> {
        self.inner.send_datagrams(bytes, size)
    }

    #[inline]
    fn recv_datagrams(&mut self, into: &mut [u8], marks: &mut Vec<DatagramMark>) -> io::Result<()> {
        self.inner.recv_datagrams(into, marks)
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        self.inner.set_nonblocking(on)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.inner.finish_sending()
    }

    fn facts(&self) -> SocketFacts {
        self.inner.facts()
    }

    fn socket_drops(&self) -> u64 {
        self.inner.socket_drops()
    }

    fn breaker(&self) -> Breaker {
        self.inner.breaker()
    }
}

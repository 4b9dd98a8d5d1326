//! TCP over IPv4 and IPv6.

mod ktls;
pub(super) mod mptcp;
mod over_tcp;
pub(super) mod tls;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use model::{NamedTransport, Pattern, ReceiveBy, SendBy, Spec, Strategy, TransportName};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SocketFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use text::say;

use super::stream::{Renewal, StreamChannel, exchange_hello, read_hello, receive_welcome, send_hello, welcome};
use super::{
    Capabilities, Cookie, FlowHello, Greeting, Greetings, Link, ListenOptions, Listener, Rendezvous, SharedPort,
    Transport, options,
};
use crate::core::{EngineError, now_ns};

/// The transport.
pub(crate) struct Tcp;

/// How long a connection attempt may take on a path of usual length.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Connections opened in parallel if there are many: few enough for any listener's queue.
const UNDER_WAY: usize = 512;
/// Longest pending queue; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// Interval at which a thread that waits for the next transaction's connection checks for the end.
const ACCEPT_STEP: Duration = Duration::from_millis(100);

impl Transport for Tcp {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::TCP
    }

    fn about(&self) -> &'static str {
        "TCP over IPv4 or IPv6"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            shared_port: Some(SharedPort::Tcp),
            reconnects: true,
            delays_reads: true,
            stamps: true,
            ..Capabilities::STREAM
        }
    }

    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy, SendBy::Sendfile, SendBy::Splice, SendBy::Zerocopy]
    }

    fn receives(&self) -> &'static [ReceiveBy] {
        &[ReceiveBy::Copy, ReceiveBy::Trunc, ReceiveBy::Map]
    }

    fn completes(&self) -> bool {
        true
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let wanted = listen.wanted(spec);
        let failed = |source: io::Error| EngineError::socket("listen on", wanted, source);
        let socket = open(spec, wanted).map_err(failed)?;
        socket.set_reuse_address(true).map_err(failed)?;
        options::before_handshake(socket.as_fd(), &spec.far, true)?;
        if spec.pattern == Pattern::Crr {
            // Accepted sockets inherit them, which saves the calls in each transaction.
            options::connected(socket.as_fd(), &spec.far, spec, true)?;
        }
        socket.bind(&wanted.into()).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).unwrap_or(wanted);
        socket.set_nonblocking(true).map_err(failed)?;
        // For the transactions' connections, which a thread waits for: its machine checks the stop flag in between.
        socket.set_read_timeout(Some(ACCEPT_STEP)).map_err(failed)?;
        Ok(Box::new(TcpListener {
            socket: Arc::new(socket),
            address,
            cookie: listen.cookie,
            patience: listen.patience,
            spec: Arc::new(spec.clone()),
            greetings: Greetings::new(),
        }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let target = to
            .address
            .ok_or_else(|| EngineError::unsupported("a tcp rendezvous without an address", "this is a defect"))?;
        let socket = dial(spec, target, Some((hello.link, CONNECT_LIMIT + to.patience)))?;
        exchange_hello(&socket, hello, &target.to_string(), to.patience)?;
        if !spec.renews_link(hello.link) {
            return Ok(Link::of(StreamChannel::new(socket.into(), spec.io)));
        }
        let renewal_spec = spec.clone();
        let renewal: Renewal = if spec.strategy == Strategy::Spin {
            let mut under_way = None;
            Box::new(move || dial_step(&renewal_spec, target, &mut under_way))
        } else {
            Box::new(move || dial(&renewal_spec, target, None).map(OwnedFd::from).map_err(into_io))
        };
        Ok(Link::of(StreamChannel::renewing(socket.into(), spec.io, renewal)))
    }

    fn connect_all(&self, spec: &Spec, to: &Rendezvous, hellos: &[FlowHello]) -> Result<Vec<Link>, EngineError> {
        let Some(target) = to.address.filter(|_| !spec.renews_connections()) else {
            return hellos.iter().map(|hello| self.connect(spec, to, hello)).collect();
        };
        let name = target.to_string();
        let mut links = Vec::with_capacity(hellos.len());
        for some in hellos.chunks(UNDER_WAY) {
            let begun: Vec<Socket> =
                some.iter().map(|hello| begin(spec, target, hello.link)).collect::<Result<_, _>>()?;
            let deadline = now_ns() + (CONNECT_LIMIT + to.patience).as_nanos() as u64;
            for (socket, hello) in begun.iter().zip(some) {
                await_connection(socket, deadline).map_err(|source| refused(target, source))?;
                options::connected(socket.as_fd(), &spec.near, spec, true)?;
                send_hello(socket, hello, &name)?;
            }
            for socket in begun {
                receive_welcome(&socket, &name, to.patience)?;
                links.push(Link::of(StreamChannel::new(socket.into(), spec.io)));
            }
        }
        Ok(links)
    }

    fn adopt(&self, spec: &Spec, socket: OwnedFd, hello: &FlowHello) -> Result<Link, EngineError> {
        let socket = Socket::from(socket);
        let failed = |source: io::Error| EngineError::socket("take data connection", hello.link, source);
        socket.set_nonblocking(false).map_err(failed)?;
        options::connected(socket.as_fd(), &spec.far, spec, true)?;
        welcome(&socket).map_err(failed)?;
        Ok(Link::of(StreamChannel::new(socket.into(), spec.io)))
    }
}

/// A stream socket for the spec's transport: MPTCP differs from TCP in the protocol number only.
pub(crate) fn open(spec: &Spec, address: SocketAddr) -> io::Result<Socket> {
    let protocol = (spec.transport == TransportName::Mptcp).then_some(Protocol::MPTCP);
    Socket::new(Domain::for_address(address), Type::STREAM, protocol)
}

/// A connected socket with the near end's options. The number of a link gives the local port its offset; connections of crr leave
/// the port to the kernel. With the link comes how much longer than usual the path may take.
pub(crate) fn dial(spec: &Spec, target: SocketAddr, link: Option<(u32, Duration)>) -> Result<Socket, EngineError> {
    let failed = |source: io::Error| refused(target, source);
    let socket = unconnected(spec, target, link.map(|(number, _)| number))?;
    // A new data connection is not worth two minutes of SYN retries, but crr must not pay two more system calls for a
    // limit, nor let the other end wait between the connection and the request.
    if let Some((_, limit)) = link {
        socket.connect_timeout(&SockAddr::from(target), limit).map_err(failed)?;
        options::connected(socket.as_fd(), &spec.near, spec, true)?;
    } else {
        options::connected(socket.as_fd(), &spec.near, spec, true)?;
        socket.connect(&SockAddr::from(target)).map_err(failed)?;
    }
    Ok(socket)
}

/// The same in steps for a thread that never sleeps: `WouldBlock` until the connection `under_way` is established.
fn dial_step(spec: &Spec, target: SocketAddr, under_way: &mut Option<Socket>) -> io::Result<OwnedFd> {
    if under_way.is_none() {
        let socket = unconnected(spec, target, None).map_err(into_io)?;
        socket.set_nonblocking(true)?;
        options::connected(socket.as_fd(), &spec.near, spec, true).map_err(into_io)?;
        *under_way = Some(socket);
    }
    let Some(socket) = under_way.as_ref() else { return Err(io::ErrorKind::NotConnected.into()) };
    match socket.connect(&SockAddr::from(target)) {
        Ok(()) => {}
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY)) => {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Err(error) => return Err(into_io(refused(target, error))),
    }
    under_way.take().map(OwnedFd::from).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// A socket with the options that must precede its connect.
fn unconnected(spec: &Spec, target: SocketAddr, link: Option<u32>) -> Result<Socket, EngineError> {
    let socket = open(spec, target).map_err(|source| refused(target, source))?;
    options::before_handshake(socket.as_fd(), &spec.near, true)?;
    options::bind_near(&socket, &spec.near, target, link)?;
    Ok(socket)
}

/// A socket that is connecting to the target.
fn begin(spec: &Spec, target: SocketAddr, link: u32) -> Result<Socket, EngineError> {
    let socket = unconnected(spec, target, Some(link))?;
    let begun = socket.set_nonblocking(true).and_then(|()| socket.connect(&SockAddr::from(target)));
    match begun {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(refused(target, error)),
    }
}

/// Waits until a connecting socket is connected, and makes its calls block.
fn await_connection(socket: &Socket, deadline_ns: u64) -> io::Result<()> {
    let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
    let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    let mut wanted = [PollFd::new(socket, PollFlags::OUT)];
    if rustix::io::retry_on_intr(|| rustix::event::poll(&mut wanted, Some(&limit)))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    socket.take_error()?.map_or(Ok(()), Err)?;
    socket.set_nonblocking(false)
}

/// Why there is no connection, with the remedy if many connections are the cause.
fn refused(target: SocketAddr, source: io::Error) -> EngineError {
    let remedy = match source.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => {
            say!(
                "this host has no free local port for them (a closed connection keeps its port for a minute); wait, use fewer `--flows` or `--trials`, or widen net.ipv4.ip_local_port_range"
            )
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            say!("too many files are open; raise the limit (ulimit -n) or use fewer `--flows`")
        }
        _ => return EngineError::socket("connect to", target, source),
    };
    EngineError::unsupported(say!("more connections to {target}"), remedy)
}

struct TcpListener {
    /// Does not block.
    socket: Arc<Socket>,
    address: SocketAddr,
    cookie: Cookie,
    patience: Duration,
    spec: Arc<Spec>,
    greetings: Greetings,
}

impl Listener for TcpListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous { address: Some(self.address), path: None, cookie: self.cookie, ..Rendezvous::default() }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let address = self.address;
        let failed = move |source: io::Error| EngineError::socket("accept on", address, source);
        let accept = || {
            let (socket, _) = self.socket.accept()?;
            let (listener, spec, cookie, patience) =
                (self.socket.clone(), self.spec.clone(), self.cookie, self.patience);
            let greeting: Greeting = Box::new(move || {
                // An unauthenticated or broken connection is dropped; the right one is still to come.
                let hello = socket.set_nonblocking(false).and_then(|()| read_hello(&socket, &cookie, patience));
                let Ok(Some(hello)) = hello else { return Ok(None) };
                options::connected(socket.as_fd(), &spec.far, &spec, true)?;
                welcome(&socket).map_err(failed)?;
                Ok(Some((hello, Link::of(channel(socket, listener, &spec, hello.link)))))
            });
            Ok(greeting)
        };
        self.greetings.next(&*self.socket, deadline_ns, accept, failed)
    }
}

/// The channel of an accepted connection; with a connection for each transaction, `listener` has the next ones.
fn channel(socket: Socket, listener: Arc<Socket>, spec: &Spec, link: u32) -> StreamChannel {
    if !spec.renews_link(link) {
        return StreamChannel::new(socket.into(), spec.io);
    }
    let mut flags = SocketFlags::CLOEXEC;
    if spec.strategy == Strategy::Spin {
        flags |= SocketFlags::NONBLOCK;
    }
    let mut first = true;
    let renewal = move || {
        // Without a spinning thread the next connections are waited for.
        if std::mem::take(&mut first) {
            listener.set_nonblocking(flags.contains(SocketFlags::NONBLOCK))?;
        }
        Ok(rustix::net::accept_with(&*listener, flags)?)
    };
    StreamChannel::renewing(socket.into(), spec.io, Box::new(renewal))
}

pub(crate) fn into_io(error: EngineError) -> io::Error {
    match error {
        EngineError::Socket { source, .. } | EngineError::Option { source, .. } => source,
        other => io::Error::other(other.to_string()),
    }
}

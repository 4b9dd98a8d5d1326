//! UDP over IPv4 and IPv6: one connected socket at each end for each flow.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use model::{NamedTransport, ReceiveBy, SendBy, Spec};
use socket2::{Domain, Socket, Type};

use super::DatagramChannel;
use crate::core::{EngineError, now_ns};
use crate::transport::{
    Admission, Capabilities, Channel, Cookie, DatagramListener, FlowHello, Link, ListenOptions, Listener, Rendezvous,
    SIGNAL_BYTES, SharedPort, Signal, Transport, options,
};

/// The transport.
pub(crate) struct Udp;

/// Largest UDP payload over IPv4: 65,535 less 20 of IP and 8 of UDP (RFC 768, RFC 791).
const MAX_DATAGRAM: u64 = 65_507;
/// Receive buffer if none is requested: a burst must fit while the reader is off its core.
const DEFAULT_RCVBUF: usize = 4 << 20;
/// Time after which an unanswered handshake message is repeated for the first time, and the pause that the doubling ends at: on a slow
/// link, repetitions would queue before the answer.
pub const RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_millis(800);
/// Time limit of the handshake on a path of usual length.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

impl Transport for Udp {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::UDP
    }

    fn about(&self) -> &'static str {
        "UDP over IPv4 or IPv6; loss, duplicates and reordering are counted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            datagram: true,
            shared_port: Some(SharedPort::Udp),
            max_block: MAX_DATAGRAM,
            min_stream_block: 8,
            delays_reads: true,
            stamps: true,
            ..Capabilities::STREAM
        }
    }

    /// The payload of an Ethernet frame of 1500 bytes, without fragments.
    fn default_block(&self, ipv6: bool) -> u64 {
        if ipv6 { 1_452 } else { 1_472 }
    }

    fn overruns(&self) -> bool {
        true
    }

    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy, SendBy::Mmsg, SendBy::Gso]
    }

    fn receives(&self) -> &'static [ReceiveBy] {
        &[ReceiveBy::Copy, ReceiveBy::Mmsg, ReceiveBy::Gro]
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let wanted = listen.wanted(spec);
        let failed = |source: io::Error| EngineError::socket("listen on", wanted, source);
        let socket = Socket::new(Domain::for_address(wanted), Type::DGRAM, None).map_err(failed)?;
        socket.set_reuse_port(true).map_err(failed)?;
        options::before_handshake(socket.as_fd(), &spec.far, false)?;
        socket.bind(&wanted.into()).map_err(failed)?;
        socket.set_read_timeout(Some(RETRY)).map_err(failed)?;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).unwrap_or(wanted);
        let listener = DatagramListener::new().map_err(failed)?;
        Ok(Box::new(UdpListener {
            socket,
            address,
            cookie: listen.cookie,
            listener,
            spec: spec.clone(),
            accepted: Vec::new(),
        }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let target = to
            .address
            .ok_or_else(|| EngineError::unsupported("a udp rendezvous without an address", "this is a defect"))?;
        let failed = |source: io::Error| EngineError::socket("reach", target, source);
        let socket = Socket::new(Domain::for_address(target), Type::DGRAM, None).map_err(failed)?;
        options::before_handshake(socket.as_fd(), &spec.near, false)?;
        roomy(&socket, spec.near.rcvbuf.is_some());
        options::bind_near(&socket, &spec.near, target, Some(hello.link))?;
        socket.connect(&target.into()).map_err(failed)?;
        options::connected(socket.as_fd(), &spec.near, spec, false)?;
        prove(&socket, hello, target, to.patience)?;
        Ok(Link::of(DatagramChannel::new(socket.into(), hello.nonce).map_err(failed)?))
    }

    fn adopt(&self, spec: &Spec, socket: OwnedFd, hello: &FlowHello) -> Result<Link, EngineError> {
        let failed = |source: io::Error| EngineError::socket("take data connection", hello.link, source);
        let socket = Socket::from(socket);
        roomy(&socket, spec.far.rcvbuf.is_some());
        options::connected(socket.as_fd(), &spec.far, spec, false)?;
        socket.send(&Signal::Ready.encode(hello.nonce)).map_err(failed)?;
        Ok(Link::of(DatagramChannel::new(socket.into(), hello.nonce).map_err(failed)?))
    }
}

/// Requests a receive buffer that survives a scheduling gap, within net.core.rmem_max; the outcome's socket facts show
/// the result.
pub(crate) fn roomy(socket: &Socket, requested: bool) {
    if !requested {
        let _ = socket.set_recv_buffer_size(DEFAULT_RCVBUF);
    }
}

/// The active half of the handshake: HELLO until challenged, PROOF until ready. Each is sent at its time and when it
/// changes, independent of what arrives: forged answers cause no additional sends.
fn prove(socket: &Socket, hello: &FlowHello, target: SocketAddr, patience: Duration) -> Result<(), EngineError> {
    let failed = |source: io::Error| EngineError::socket("reach", target, source);
    let deadline = now_ns() + (HANDSHAKE_LIMIT + patience).as_nanos() as u64;
    let hello_bytes = hello.encode();
    let mut message = Signal::Hello(hello_bytes);
    let (mut send_at_ns, mut pause) = (0, RETRY);
    let mut buffer = [0; SIGNAL_BYTES];
    while now_ns() < deadline {
        let now = now_ns();
        if now >= send_at_ns {
            // An ICMP refusal may be the answer to an earlier attempt; the next one decides.
            let _ = socket.send(&message.encode(hello.nonce));
            send_at_ns = now + pause.as_nanos() as u64;
            pause = (2 * pause).min(LAST_RETRY);
        }
        // Never zero, which would mean no limit.
        let left = Duration::from_nanos(send_at_ns.saturating_sub(now).max(1_000));
        socket.set_read_timeout(Some(left)).map_err(failed)?;
        match rustix::net::recv(socket, &mut buffer, rustix::net::RecvFlags::TRUNC) {
            Ok((_, count)) if count == SIGNAL_BYTES => match Signal::decode(&buffer, hello.nonce) {
                Some(Signal::Challenge(number)) if message == Signal::Hello(hello_bytes) => {
                    (message, send_at_ns, pause) = (Signal::Proof(number, hello_bytes), 0, RETRY);
                }
                Some(Signal::Ready) => return Ok(()),
                _ => {}
            },
            Err(rustix::io::Errno::CONNREFUSED) => std::thread::sleep(RETRY),
            _ => {}
        }
    }
    Err(EngineError::Peer {
        peer: target.to_string(),
        what: "did not answer on UDP: a firewall between the hosts may pass TCP only".into(),
    })
}

struct UdpListener {
    socket: Socket,
    address: SocketAddr,
    cookie: Cookie,
    listener: DatagramListener,
    spec: Spec,
    /// Connections that were accepted, whose other ends may not know it yet.
    accepted: Vec<DatagramChannel>,
}

impl Listener for UdpListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous { address: Some(self.address), path: None, cookie: self.cookie, ..Rendezvous::default() }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let failed = |source: io::Error| EngineError::socket("accept on", self.address, source);
        let mut buffer = [0; SIGNAL_BYTES];
        while now_ns() < deadline_ns {
            let std_socket: &std::net::UdpSocket = &self.socket.try_clone().map_err(failed)?.into();
            let Ok((count, from)) = std_socket.recv_from(&mut buffer) else {
                self.accepted.iter_mut().for_each(Channel::answer_handshake);
                continue;
            };
            match self.listener.judge(from, &buffer[..count], |hello| FlowHello::decode(hello, [&self.cookie])) {
                Admission::Answer(bytes) => {
                    let _ = std_socket.send_to(&bytes, from);
                }
                Admission::Admit(hello) => {
                    let socket = connected_twin(self.address, from, Some(&self.spec)).map_err(failed)?;
                    let answering = socket.try_clone().map_err(failed)?.into();
                    self.accepted.push(DatagramChannel::new(answering, hello.nonce).map_err(failed)?);
                    return Ok((hello, Udp.adopt(&self.spec, socket.into(), &hello)?));
                }
                Admission::Ignore => {}
            }
        }
        Err(failed(io::ErrorKind::TimedOut.into()))
    }
}

/// A second socket on `local`, connected to `peer`: the kernel delivers that peer's datagrams to it from now on.
pub fn connected_twin(local: SocketAddr, peer: SocketAddr, spec: Option<&Spec>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None)?;
    socket.set_reuse_port(true)?;
    if let Some(spec) = spec {
        options::before_handshake(socket.as_fd(), &spec.far, false).map_err(io::Error::other)?;
    }
    socket.bind(&local.into())?;
    socket.connect(&peer.into())?;
    Ok(socket)
}

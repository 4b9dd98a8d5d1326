//! Unix domain sockets, stream and datagram, between two processes of one machine.

use std::os::fd::{AsFd, OwnedFd};

use model::{NamedTransport, ReceiveBy, SendBy, Spec};

use crate::core::EngineError;
use crate::transport::datagram::DatagramChannel;
use crate::transport::local::{self, LocalListener};
use crate::transport::stream::{StreamChannel, welcome};
use crate::transport::{Capabilities, FlowHello, Link, ListenOptions, Listener, Rendezvous, Transport, options};

/// SOCK_STREAM.
pub(crate) struct UnixStream;
/// SOCK_DGRAM.
pub(crate) struct UnixDatagram;

/// Largest datagram that a socket with Linux's default buffers (net.core.wmem_default of 212,992 bytes) takes.
const MAX_DATAGRAM: u64 = 128 << 10;

impl Transport for UnixStream {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::UNIX
    }

    fn about(&self) -> &'static str {
        "Unix domain stream sockets between two processes of one machine"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::STREAM
    }

    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy, SendBy::Sendfile, SendBy::Splice]
    }

    fn completes(&self) -> bool {
        true
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        Ok(Box::new(UnixListener { listener: LocalListener::open(listen)?, spec: spec.clone(), datagram: false }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let socket: OwnedFd = local::connect(to, hello)?.into();
        options::before_handshake(socket.as_fd(), &spec.near, false)?;
        Ok(Link::of(StreamChannel::new(socket, spec.io)))
    }
}

impl Transport for UnixDatagram {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::UNIX_DGRAM
    }

    fn about(&self) -> &'static str {
        "Unix domain datagram sockets between two processes of one machine"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { datagram: true, max_block: MAX_DATAGRAM, min_stream_block: 8, ..Capabilities::STREAM }
    }

    fn default_block(&self, _: bool) -> u64 {
        8 << 10
    }

    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy, SendBy::Mmsg]
    }

    fn receives(&self) -> &'static [ReceiveBy] {
        &[ReceiveBy::Copy, ReceiveBy::Mmsg]
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        Ok(Box::new(UnixListener { listener: LocalListener::open(listen)?, spec: spec.clone(), datagram: true }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let through = local::connect(to, hello)?;
        let failed =
            |source: std::io::Error| EngineError::socket("take the socket offered by", "the other end", source);
        let (_, socket) = local::recv_fd(&through, &mut [0; 1]).map_err(failed)?;
        let socket = socket
            .ok_or_else(|| EngineError::Peer { peer: "the other end".into(), what: "offered no socket".into() })?;
        options::before_handshake(socket.as_fd(), &spec.near, false)?;
        Ok(Link::of(DatagramChannel::new(socket, hello.nonce).map_err(failed)?))
    }
}

struct UnixListener {
    listener: LocalListener,
    spec: Spec,
    datagram: bool,
}

impl Listener for UnixListener {
    fn rendezvous(&self) -> Rendezvous {
        self.listener.rendezvous()
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let (hello, stream) = self.listener.accept(deadline_ns)?;
        let failed = |source: std::io::Error| EngineError::socket("take data connection", hello.link, source);
        welcome(&stream).map_err(failed)?;
        if !self.datagram {
            options::before_handshake(stream.as_fd(), &self.spec.far, false)?;
            return Ok((hello, Link::of(StreamChannel::new(stream.into(), self.spec.io))));
        }
        // A socket pair needs no second path in the file system: one end is passed to the active side.
        let (mine, theirs) = std::os::unix::net::UnixDatagram::pair().map_err(failed)?;
        options::before_handshake(mine.as_fd(), &self.spec.far, false)?;
        local::send_fd(&stream, theirs.as_fd(), b"d").map_err(failed)?;
        Ok((hello, Link::of(DatagramChannel::new(mine.into(), hello.nonce).map_err(failed)?)))
    }
}

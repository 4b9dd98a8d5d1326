//! One QUIC connection and its UDP socket: moves datagrams between the two and runs the protocol's timers, whenever
//! its thread calls.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use model::EndOptions;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, Event, ServerConfig, StreamEvent, Transmit, VarInt,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::Timespec;

use super::settings;
use crate::core::EngineError;
use crate::transport::{certificate, sys};

/// Datagrams taken from the socket before answers are sent, and the maximum sent in one call: the kernel takes 64.
const BATCH: usize = 64;
/// Most bytes of one send with segmentation offload (a UDP payload of IPv4).
const LARGEST_SEND: usize = 65_507;
/// Room for any datagram.
const DATAGRAM: usize = 1 << 16;

/// A connection with everything needed to run it.
pub(super) struct Session {
    socket: OwnedFd,
    peer: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub(super) connection: Connection,
    pub(super) cc: &'static str,
    /// What the socket has not taken yet, and its segment size.
    outgoing: Vec<u8>,
    segment: Option<usize>,
    /// UDP_SEGMENT as the socket has it.
    cut: usize,
    incoming: Vec<u8>,
    answer: Vec<u8>,
    lost: Option<io::ErrorKind>,
    /// Data arrived after the last read.
    pub(super) readable: bool,
    /// A write that was refused may be tried again.
    pub(super) writable: bool,
    /// The other end has acknowledged everything, the end of the stream included.
    pub(super) acknowledged: bool,
}

/// What a first datagram asks for.
pub(super) enum First {
    /// The address must prove itself: the answer.
    Retry(Vec<u8>),
    /// It has: a connection may be opened.
    Proved,
    /// Nothing.
    Other,
}

/// The address as the protocol knows it: the token of a Retry keeps IP address and port only, so that a link-local address with its
/// interface would never prove itself. The socket keeps the interface.
fn without_scope(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}

impl Session {
    /// Begins a connection over a connected socket; the handshake goes on with every [`drive`](Self::drive).
    pub(super) fn connect(
        socket: OwnedFd,
        peer: SocketAddr,
        fingerprint: &[u8],
        end: &EndOptions,
    ) -> Result<Self, EngineError> {
        let peer = without_scope(peer);
        let (cc, transport) = prepare(socket.as_fd(), peer, end)?;
        let config = settings::client(fingerprint, transport)?;
        let mut endpoint = Endpoint::new(settings::endpoint(), None, true, None);
        let (handle, connection) = endpoint
            .connect(Instant::now(), config, peer, certificate::NAME)
            .map_err(|error| EngineError::socket("open a QUIC connection to", peer, io::Error::other(error)))?;
        Ok(Self::over(socket, peer, cc, endpoint, handle, connection))
    }

    /// What to do with the first datagram of `from`, without any state of it: an address proves itself by the token of a Retry (RFC
    /// 9000, 8.1.2), so that nobody gets more than one datagram for another's.
    pub(super) fn first(from: SocketAddr, first: &[u8], config: &ServerConfig) -> First {
        let mut endpoint = Endpoint::new(settings::endpoint(), Some(std::sync::Arc::new(config.clone())), true, None);
        let mut answer = Vec::new();
        let from = without_scope(from);
        let event = endpoint.handle(Instant::now(), from, None, None, BytesMut::from(first), &mut answer);
        let Some(DatagramEvent::NewConnection(incoming)) = event else { return First::Other };
        if incoming.remote_address_validated() {
            endpoint.ignore(incoming);
            return First::Proved;
        }
        match endpoint.retry(incoming, &mut answer) {
            Ok(transmit) => {
                answer.truncate(transmit.size);
                First::Retry(answer)
            }
            Err(error) => {
                endpoint.ignore(error.into_incoming());
                First::Other
            }
        }
    }

    /// Answers a first datagram over a socket that is connected to its sender; `None` when it opens no connection.
    pub(super) fn accept(
        socket: OwnedFd,
        peer: SocketAddr,
        first: &[u8],
        mut config: ServerConfig,
        end: &EndOptions,
    ) -> Result<Option<Self>, EngineError> {
        let peer = without_scope(peer);
        let (cc, transport) = prepare(socket.as_fd(), peer, end)?;
        config.transport_config(transport);
        let mut endpoint = Endpoint::new(settings::endpoint(), Some(std::sync::Arc::new(config)), true, None);
        let (now, mut answer) = (Instant::now(), Vec::new());
        let event = endpoint.handle(now, peer, None, None, BytesMut::from(first), &mut answer);
        let Some(DatagramEvent::NewConnection(incoming)) = event else { return Ok(None) };
        match endpoint.accept(incoming, now, &mut answer, None) {
            Ok((handle, connection)) => Ok(Some(Self::over(socket, peer, cc, endpoint, handle, connection))),
            Err(_) => Ok(None),
        }
    }

    fn over(
        socket: OwnedFd,
        peer: SocketAddr,
        cc: &'static str,
        endpoint: Endpoint,
        handle: ConnectionHandle,
        connection: Connection,
    ) -> Self {
        Self {
            socket,
            peer,
            endpoint,
            handle,
            connection,
            cc,
            outgoing: Vec::with_capacity(DATAGRAM),
            segment: None,
            cut: 0,
            incoming: vec![0; DATAGRAM],
            answer: Vec::new(),
            lost: None,
            readable: false,
            writable: false,
            acknowledged: false,
        }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The error of a connection that has ended.
    pub(super) fn alive(&self) -> io::Result<()> {
        self.lost.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Receives, answers, and runs timers. Never blocks; a lost connection shows in [`alive`](Self::alive).
    pub(super) fn drive(&mut self) -> io::Result<()> {
        while self.receive()? == BATCH {
            self.transmit()?;
        }
        self.transmit()
    }

    /// Runs timers and sends what is due.
    pub(super) fn transmit(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.connection.poll_timeout().is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now);
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        if self.flush()? {
            let most = (LARGEST_SEND / usize::from(self.connection.current_mtu().max(1))).clamp(1, BATCH);
            while let Some(transmit) = self.connection.poll_transmit(now, most, &mut self.outgoing) {
                self.take(&transmit);
                if !self.flush()? {
                    break;
                }
            }
        }
        while let Some(event) = self.connection.poll() {
            self.handle_connection_event(event);
        }
        Ok(())
    }

    fn take(&mut self, transmit: &Transmit) {
        self.outgoing.truncate(transmit.size);
        self.segment = transmit.segment_size;
    }

    /// Passes to the socket what is ready; false if it does not take it now.
    fn flush(&mut self) -> io::Result<bool> {
        if self.outgoing.is_empty() {
            return Ok(true);
        }
        let cut = self.segment.unwrap_or(0);
        // A socket with a segment size at or above a single datagram's size sends it unchanged.
        if cut != self.cut && (cut > 0 || (self.cut > 0 && self.outgoing.len() > self.cut)) {
            sys::datagrams::set_segment_size(&self.socket, cut)?;
            self.cut = cut;
        }
        match rustix::net::send(&self.socket, &self.outgoing, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(false),
            // A probe for a larger MTU was too large for the first link, or a queue was full: both are losses, which
            // the protocol handles.
            Err(rustix::io::Errno::MSGSIZE | rustix::io::Errno::NOBUFS) => {}
            Err(errno) => self.refused(errno)?,
        }
        self.outgoing.clear();
        Ok(true)
    }

    /// Takes at most [`BATCH`] datagrams; returns how many.
    fn receive(&mut self) -> io::Result<usize> {
        for count in 0..BATCH {
            let length = match rustix::net::recv(&self.socket, &mut self.incoming[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(rustix::io::Errno::AGAIN) => return Ok(count),
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => {
                    self.refused(errno)?;
                    return Ok(count);
                }
            };
            let now = Instant::now();
            self.answer.clear();
            let data = BytesMut::from(&self.incoming[..length]);
            match self.endpoint.handle(now, self.peer, None, None, data, &mut self.answer) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection.handle_event(event),
                // A second connection from the same address and port, or a packet of a closed one.
                Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
        Ok(BATCH)
    }

    /// The other end's port is closed: its ICMP answer arrived at the socket.
    fn refused(&mut self, errno: rustix::io::Errno) -> io::Result<()> {
        if errno != rustix::io::Errno::CONNREFUSED {
            return Err(errno.into());
        }
        self.lost.get_or_insert(io::ErrorKind::ConnectionReset);
        Ok(())
    }

    fn handle_connection_event(&mut self, event: Event) {
        match event {
            Event::ConnectionLost { reason } => {
                let kind = match io::Error::from(reason).kind() {
                    io::ErrorKind::Other => io::ErrorKind::InvalidData,
                    _ => io::ErrorKind::ConnectionReset,
                };
                self.lost.get_or_insert(kind);
            }
            Event::Stream(StreamEvent::Readable { .. } | StreamEvent::Opened { .. }) => self.readable = true,
            Event::Stream(StreamEvent::Writable { .. }) => self.writable = true,
            Event::Stream(StreamEvent::Finished { .. }) => self.acknowledged = true,
            Event::Stream(_) | Event::HandshakeDataReady | Event::Connected | Event::DatagramReceived => {}
            Event::DatagramsUnblocked => {}
        }
    }

    /// Time until the protocol must be driven again.
    pub(super) fn due_in(&mut self) -> Option<Duration> {
        self.connection.poll_timeout().map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Whether the socket has not taken everything.
    pub(super) fn is_full(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Sleeps until something arrives, a timer is due or `limit` has passed, and then drives.
    pub(super) fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let pause = self.due_in().map_or(limit, |due| due.min(limit));
        let wanted = if self.is_full() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.socket, wanted)], Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.drive(),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Drives until the first data on the stream is sent and something was acknowledged after that, at most for
    /// `limit`: after that this connection may not be driven for a while.
    pub(super) fn see_off(&mut self, limit: Duration) -> io::Result<()> {
        let until = Instant::now() + limit;
        let mut acknowledged = u64::MAX;
        while self.alive().is_ok() && Instant::now() < until {
            let stats = self.connection.stats();
            if acknowledged == u64::MAX && stats.frame_tx.stream > 0 {
                acknowledged = stats.frame_rx.acks;
            }
            if stats.frame_rx.acks > acknowledged {
                break;
            }
            self.wait(until.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    /// Acknowledges what arrived, without the delay that the protocol allows; takes at most `limit`.
    pub(super) fn acknowledge(&mut self, limit: Duration) -> io::Result<()> {
        let until = Instant::now() + limit;
        // A packet that needs an answer carries the acknowledgement. Probes for a larger MTU count as pings too.
        let pings = |connection: &Connection| {
            let stats = connection.stats();
            stats.frame_tx.ping.saturating_sub(stats.path.sent_plpmtud_probes)
        };
        let before = pings(&self.connection);
        self.connection.ping();
        self.transmit()?;
        // Pacing may delay it.
        while pings(&self.connection) == before && self.alive().is_ok() && Instant::now() < until {
            self.wait(until.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    /// Announces to the other end that the connection is over.
    pub(super) fn close(&mut self) {
        if self.lost.is_none() {
            self.connection.close(Instant::now(), VarInt::from_u32(0), Bytes::new());
            // If this is lost, the other end finds out by itself.
            let _ = self.transmit();
            self.lost = Some(io::ErrorKind::NotConnected);
        }
    }
}

/// Prepares a connected UDP socket, and the transport parameters for its route.
fn prepare(
    socket: BorrowedFd<'_>,
    peer: SocketAddr,
    end: &EndOptions,
) -> Result<(&'static str, std::sync::Arc<quinn_proto::TransportConfig>), EngineError> {
    let cc = settings::congestion(end)?;
    let failed = |source: io::Error| EngineError::socket("prepare a QUIC socket for", peer, source);
    sys::datagrams::probe_path_mtu(socket, peer.is_ipv6()).map_err(failed)?;
    let mtu = sys::datagrams::route_mtu(socket, peer.is_ipv6()).unwrap_or(1_500);
    // Kernels before 4.18 lack it: then each datagram has its own call.
    let segments = sys::datagrams::set_segment_size(socket, 1_200).is_ok();
    if segments {
        sys::datagrams::set_segment_size(socket, 0).map_err(failed)?;
    }
    Ok((cc, settings::transport(cc, mtu, peer.is_ipv6(), segments)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::certificate::Identity;

    /// The next datagram that a connection sends.
    fn said(connection: &mut Connection) -> Vec<u8> {
        let mut bytes = Vec::new();
        let transmit = connection.poll_transmit(Instant::now(), 1, &mut bytes).expect("something to send");
        bytes.truncate(transmit.size);
        bytes
    }

    #[test]
    fn an_address_gets_one_datagram_no_longer_than_its_own_until_it_proves_itself() {
        proves_itself(["192.0.2.1:7000", "192.0.2.2:7000", "192.0.2.3:7000"]);
        // A link-local address with its interface.
        proves_itself(["[fe80::1]:7000", "[fe80::2%3]:7000", "[fe80::3%3]:7000"]);
    }

    fn proves_itself(addresses: [&str; 3]) {
        let [server, client, another] = addresses.map(|address| address.parse().unwrap());
        let identity = Identity::new().unwrap();
        let config = settings::server(&identity, Duration::ZERO).unwrap();
        let transport = settings::transport("cubic", 1_500, false, false);
        let wanted = settings::client(&identity.fingerprint(), transport).unwrap();
        let mut endpoint = Endpoint::new(settings::endpoint(), None, true, None);
        let (_, mut connection) = endpoint.connect(Instant::now(), wanted, server, certificate::NAME).unwrap();

        let first = said(&mut connection);
        let First::Retry(answer) = Session::first(client, &first, &config) else { panic!("no Retry") };
        assert!(answer.len() <= first.len(), "{} bytes for {}", answer.len(), first.len());
        let heard = endpoint.handle(Instant::now(), server, None, None, BytesMut::from(&answer[..]), &mut Vec::new());
        let Some(DatagramEvent::ConnectionEvent(_, event)) = heard else { panic!("the client takes no Retry") };
        connection.handle_event(event);
        let second = said(&mut connection);
        assert!(matches!(Session::first(client, &second, &config), First::Proved));
        // The token is of no use at another address, and what is no QUIC gets nothing.
        assert!(!matches!(Session::first(another, &second, &config), First::Proved));
        assert!(matches!(Session::first(client, b"THRUsignal/1 and more", &config), First::Other));
    }
}

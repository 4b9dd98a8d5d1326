//! TLS 1.3 over TCP (RFC 8446). rustls' state machine runs on the measuring thread, between the machine's calls and
//! the socket's; there is no other thread and no async runtime.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use model::{Encryption, NamedTransport, ReceiveBy, Role, SendBy, SocketFacts, Spec};
use rustls::{ClientConnection, Connection, ServerConfig, ServerConnection};
use socket2::{Domain, Socket, Type};

use super::dial;
use super::ktls::{self, KernelTls};
use super::over_tcp::{SEND_LIMIT, over_tcp};
use crate::core::{EngineError, Interest, Turn, not_now};
use crate::transport::certificate::Identity;
use crate::transport::stream::HELLO_LIMIT;
use crate::transport::sys::watched::WatchedSocket;
use crate::transport::{
    BoxFlow, Breaker, Capabilities, Channel, Cookie, Flow, FlowHello, FlowSetup, Greeting, Greetings, Kind, Link,
    ListenOptions, Listener, Rendezvous, TcpInfo, Transport, certificate, cipher, hello_exchange, options, sys,
};

/// The transport.
pub(crate) struct Tls;

const BACKLOG: i32 = 4096;
/// Most plaintext that is encrypted before the socket must take it: 16 records of 16 KiB.
const UNSENT_LIMIT: usize = 256 << 10;
/// Bytes requested in one read of the socket.
const READ: usize = 256 << 10;

impl Transport for Tls {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::TLS
    }

    fn about(&self) -> &'static str {
        "TLS 1.3 over TCP, encrypted by this process or by the kernel"
    }

    /// As TCP; the certificate is made by the worker, so it listens itself.
    fn capabilities(&self) -> Capabilities {
        Capabilities::STREAM
    }

    fn sends(&self) -> &'static [SendBy] {
        &[SendBy::Copy, SendBy::Ktls]
    }

    fn receives(&self) -> &'static [ReceiveBy] {
        &[ReceiveBy::Copy, ReceiveBy::Ktls]
    }

    fn check_engine(&self, spec: &Spec, role: Role) -> Result<(), EngineError> {
        ktls::check(spec, role)
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let wanted = listen.wanted(spec);
        let failed = |source: io::Error| EngineError::socket("listen on", wanted, source);
        let identity = Identity::new()?;
        let mut config = identity.server(None)?;
        Arc::make_mut(&mut config).enable_secret_extraction = ktls::is_requested(spec);
        let socket = Socket::new(Domain::for_address(wanted), Type::STREAM, None).map_err(failed)?;
        socket.set_reuse_address(true).map_err(failed)?;
        options::before_handshake(socket.as_fd(), &spec.far, true)?;
        socket.bind(&wanted.into()).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).unwrap_or(wanted);
        let fingerprint = identity.fingerprint();
        let (cookie, spec) = (listen.cookie, Arc::new(spec.clone()));
        let (patience, greetings) = (listen.patience, Greetings::new());
        Ok(Box::new(TlsListener { socket, address, fingerprint, config, cookie, patience, spec, greetings }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let target = to
            .address
            .ok_or_else(|| EngineError::unsupported("a tls rendezvous without an address", "this is a defect"))?;
        let failed = |source: io::Error| EngineError::socket("open a TLS connection to", target, source);
        let mut config = certificate::client(&to.blob, None)?;
        Arc::make_mut(&mut config).enable_secret_extraction = ktls::is_requested(spec);
        let socket = dial(spec, target, Some((hello.link, super::CONNECT_LIMIT + to.patience)))?;
        let session =
            ClientConnection::new(config, certificate::server_name()).map_err(|error| failed(other(error)))?;
        let mut channel = TlsChannel::open(socket, session.into(), to.patience).map_err(failed)?;
        hello_exchange::exchange_hello(&mut channel, hello, &target.to_string(), to.patience)?;
        channel.apply_options().map_err(failed)?;
        Ok(Link::of(channel))
    }
}

struct TlsListener {
    /// Does not block.
    socket: Socket,
    address: SocketAddr,
    fingerprint: Vec<u8>,
    config: Arc<ServerConfig>,
    cookie: Cookie,
    patience: Duration,
    spec: Arc<Spec>,
    greetings: Greetings,
}

impl Listener for TlsListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous {
            address: Some(self.address),
            path: None,
            cookie: self.cookie,
            blob: self.fingerprint.clone(),
            ..Rendezvous::default()
        }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let address = self.address;
        let failed = move |source: io::Error| EngineError::socket("accept on", address, source);
        let accept = || {
            let (socket, _) = self.socket.accept()?;
            let (config, spec) = (self.config.clone(), self.spec.clone());
            let (cookie, patience) = (self.cookie, self.patience);
            let greeting: Greeting = Box::new(move || {
                socket.set_nonblocking(false).map_err(failed)?;
                options::connected(socket.as_fd(), &spec.far, &spec, true)?;
                // An unauthenticated or broken connection is dropped; the right one is still to come.
                let greeted = greet(socket, config, &cookie, patience).ok().flatten();
                Ok(greeted.map(|(hello, channel)| (hello, Link::of(channel))))
            });
            Ok(greeting)
        };
        self.greetings.next(&self.socket, deadline_ns, accept, failed)
    }
}

fn greet(
    socket: Socket,
    config: Arc<ServerConfig>,
    cookie: &Cookie,
    patience: Duration,
) -> io::Result<Option<(FlowHello, TlsChannel)>> {
    let session = ServerConnection::new(config).map_err(other)?;
    let mut channel = TlsChannel::open(socket, session.into(), patience)?;
    let Some(hello) = hello_exchange::read_hello(&mut channel, cookie, patience)? else { return Ok(None) };
    hello_exchange::welcome(&mut channel)?;
    channel.apply_options()?;
    Ok(Some((hello, channel)))
}

/// A TCP connection with a TLS session over it.
struct TlsChannel {
    socket: WatchedSocket<TcpStream>,
    session: Connection,
    /// Ciphertext as it came; what lies before `taken` has been decrypted.
    wire: Vec<u8>,
    taken: usize,
    filled: usize,
    blocking: bool,
    /// The session has announced its end; the socket follows when that is sent.
    closing: bool,
    /// TCP_NODELAY as the spec requests it.
    nodelay: bool,
}

impl TlsChannel {
    /// Makes the handshake, within [`HELLO_LIMIT`] and the path's patience; leaves a limit on reads, and Nagle's algorithm off, for the hello
    /// that follows: with it, the hello would wait for the acknowledgement of the handshake's last message, which the
    /// other end delays by 40 ms.
    fn open(socket: Socket, mut session: Connection, patience: Duration) -> io::Result<Self> {
        let socket = TcpStream::from(OwnedFd::from(socket));
        let nodelay = socket.nodelay()?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(HELLO_LIMIT + patience))?;
        session.set_buffer_limit(Some(UNSENT_LIMIT));
        let mut through = &socket;
        while session.is_handshaking() {
            session.complete_io(&mut through)?;
        }
        let socket = WatchedSocket::new(socket);
        let wire = vec![0; READ];
        Ok(Self { socket, session, wire, taken: 0, filled: 0, blocking: true, closing: false, nodelay })
    }

    /// The hello is exchanged: from here on the socket has the options of the spec.
    fn apply_options(&self) -> io::Result<()> {
        self.socket.set_read_timeout(None)?;
        self.socket.set_nodelay(self.nodelay)
    }

    /// Passes the ciphertext to the socket; `WouldBlock` if it does not take everything.
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut &*self.socket)?;
        }
        if std::mem::take(&mut self.closing) {
            rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write)?;
        }
        Ok(())
    }

    /// Decrypts a little more, from what was read or from the socket.
    fn decrypt(&mut self) -> io::Result<()> {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
            self.filled = (&*self.socket).read(&mut self.wire)?;
        }
        let mut rest = &self.wire[self.taken..self.filled];
        // An empty remainder is the end of the connection, which the session must know.
        self.taken += self.session.read_tls(&mut rest)?;
        let state = self.session.process_new_packets().map_err(other);
        if state.is_err() {
            // The alert informs the other end of the reason; it may have closed already.
            let _ = self.flush();
        }
        state.map(|_| ())
    }

    fn encryption(&self) -> Option<Encryption> {
        let cipher = self.session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str())?;
        Some(Encryption { version: cipher::VERSION.into(), cipher: cipher::iana(cipher), in_kernel: false })
    }

    /// The same connection with the kernel in place of the session, which must not have read ahead: bytes cannot be
    /// returned to the socket. Neither end sends between the welcome and the first leg, so there are none.
    fn into_kernel(mut self) -> Result<KernelTls, EngineError> {
        let failed = |source| EngineError::socket("hand TLS to the kernel on", "a data connection", source);
        self.flush().map_err(failed)?;
        let state = self.session.process_new_packets().map_err(|error| failed(other(error)))?;
        let encryption = self.encryption();
        match encryption.filter(|_| self.taken == self.filled && state.plaintext_bytes_to_read() == 0) {
            Some(encryption) => KernelTls::new(self.socket, self.session, encryption),
            None => Err(failed(io::Error::new(
                io::ErrorKind::InvalidData,
                "the other end sent data before the first measurement",
            ))),
        }
    }
}

impl Channel for TlsChannel {
    const KIND: Kind = Kind::Stream;

    fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        if ktls::serves(&setup.plan.spec, setup.link_plan.direction, setup.plan.role) {
            return self.into_kernel()?.box_flow(setup);
        }
        self.box_flow(setup)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Earlier data must be sent first, or a slow socket would not block the sender.
        self.flush()?;
        let count = self.session.writer().write(bytes)?;
        match self.flush() {
            Err(error) if !not_now(&error) => Err(error),
            _ => Ok(count),
        }
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.flush() {
            // A read might block for ever while the other end waits for the rest of this end's data.
            Err(error) if self.blocking || !not_now(&error) => return Err(error),
            _ => {}
        }
        loop {
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.decrypt()?,
                result => return result,
            }
        }
    }

    fn waiting(&mut self, turn: Turn) -> io::Result<Turn> {
        Ok(match turn {
            Turn::Wait(_, until) if self.session.wants_write() => Turn::Wait(Interest::Both, until),
            turn => turn,
        })
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.session.send_close_notify();
        self.closing = true;
        self.settled().map(|_| ())
    }

    fn facts(&self) -> SocketFacts {
        SocketFacts { encryption: self.encryption(), ..options::facts(self.socket.as_fd()) }
    }

    over_tcp!();
}

fn other(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

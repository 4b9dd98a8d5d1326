//! The one port of our server: who comes in is a test's stream, a new client, or a stranger.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult,
};
use std::time::{Duration, Instant};

use engine::transport::{foreign, udp};
use model::{EndOptions, Spec};
use socket2::{Domain, Socket, Type};
use speak::iperf3::{Cookie, PEER, REFUSAL, StreamHello, datagram};

use super::session;
use crate::session_deadline::SessionDeadlines;
use crate::{InteropError, Service, plain};

/// Between two looks at whether to end.
const STEP: Duration = Duration::from_millis(50);
/// How long a stranger may take to show a cookie.
const COOKIE_LIMIT: Duration = Duration::from_secs(5);
/// How often an address is asked for that another listener is about to give up.
const REBIND_TRIES: u32 = 50;
/// Datagrams that are thrown away before a test's streams may come: more than a socket of the usual size keeps.
const STALE_DATAGRAMS: u32 = 1_000;

/// One address that is listened on.
pub(super) struct Acceptor {
    pub(super) address: SocketAddr,
    listen_queue: Mutex<ListenQueue>,
    /// Whoever wants to change the entrance: who lets people in stands back from it meanwhile.
    reopening: AtomicUsize,
    /// Held by tests while their connections come: together by those that want nothing of the listener, else by one alone.
    opening: RwLock<()>,
    /// Held by one test while its datagrams come: only their address tells whose they are.
    udp: Mutex<UdpSocket>,
    tests: Mutex<Vec<ExpectedTest>>,
    unauthenticated: AtomicUsize,
    /// Of those that have been let in.
    pub(super) session_deadlines: SessionDeadlines,
}

/// Where connections come in.
struct ListenQueue {
    /// Absent where it could not be had again.
    listener: Option<TcpListener>,
    /// Those that the listener before had still in its queue.
    left: VecDeque<(TcpStream, SocketAddr)>,
}

/// A test whose streams may come.
struct ExpectedTest {
    cookie: Cookie,
    streams: Sender<Arrival>,
    /// How many more. They keep their descriptors until the test takes them, so that more than it wants are not let in.
    left: usize,
}

/// A test that expects streams, as long as it lives.
pub(super) struct TestRegistration<'a> {
    acceptor: &'a Acceptor,
    cookie: Cookie,
    pub(super) streams: Receiver<Arrival>,
}

/// A stream and its place among the connections that were accepted: the cookie of a later one may be read before it.
pub(super) type Arrival = (u64, TcpStream);

/// What a test wants of the acceptor for its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamSource {
    /// Connections, from the listener as it is.
    Connections,
    /// Connections, from a listener with options of its own.
    OwnListener,
    /// Datagrams.
    Datagrams,
}

/// The right of a test to take its streams in, until it is dropped.
pub(super) enum StreamLock<'a> {
    /// Over connections, beside others that want nothing of the listener.
    Shared { _guard: RwLockReadGuard<'a, ()> },
    /// Over connections, with the listener to itself.
    Exclusive { _guard: RwLockWriteGuard<'a, ()> },
    /// Over UDP, with the socket that the first datagrams come to.
    Datagrams(MutexGuard<'a, UdpSocket>),
}

/// Serves on all addresses until the service is told to stop.
pub(super) fn serve(service: &Service) -> Result<(), InteropError> {
    let mut acceptors: Vec<Acceptor> = Vec::new();
    for wanted in &service.addresses {
        // Port 0 asks for any; the second address then takes the one that the first got.
        let port = acceptors.first().map_or(0, |acceptor| acceptor.address.port());
        let wanted = if wanted.port() == 0 { SocketAddr::new(wanted.ip(), port) } else { *wanted };
        acceptors.push(Acceptor::open(wanted)?);
    }
    std::thread::scope(|scope| {
        for acceptor in &acceptors {
            (service.listening)(acceptor.address);
            scope.spawn(|| acceptor.session_deadlines.watch(service));
            scope.spawn(move || acceptor.accept_connections(scope, service));
        }
    });
    Ok(())
}

impl Acceptor {
    pub(super) fn open(wanted: SocketAddr) -> Result<Self, InteropError> {
        let failed = |source| InteropError::socket("listen for iperf3 on", wanted, source);
        let listener = listener(wanted, &EndOptions::default())?;
        let address = listener.local_addr().map_err(failed)?;
        let udp = || -> std::io::Result<UdpSocket> {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
            // Each stream gets a second socket on this port, connected to its peer.
            socket.set_reuse_port(true)?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.bind(&address.into())?;
            socket.set_read_timeout(Some(STEP))?;
            Ok(socket.into())
        };
        Ok(Self {
            address,
            listen_queue: Mutex::new(ListenQueue { listener: Some(listener), left: VecDeque::new() }),
            reopening: AtomicUsize::new(0),
            opening: RwLock::default(),
            udp: Mutex::new(udp().map_err(failed)?),
            tests: Mutex::default(),
            unauthenticated: AtomicUsize::new(0),
            session_deadlines: SessionDeadlines::default(),
        })
    }

    /// Lets in whoever comes.
    fn accept_connections<'s, 'e>(&'e self, scope: &'s std::thread::Scope<'s, 'e>, service: &'e Service)
    where
        'e: 's,
    {
        let mut sequence = 0;
        while !service.stopping() {
            if self.reopening.load(Ordering::SeqCst) > 0 {
                // A lock goes to whoever asks first, which would be this thread time and again.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let accepted = lock(&self.listen_queue).next(self.address);
            let Some((socket, peer)) = accepted else { continue };
            if self.unauthenticated.fetch_add(1, Ordering::SeqCst) >= service.limits.unauthenticated {
                self.unauthenticated.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            sequence += 1;
            let spawned = std::thread::Builder::new()
                .name("iperf3".into())
                .spawn_scoped(scope, move || self.dispatch((sequence, socket), peer, service));
            if spawned.is_err() {
                self.unauthenticated.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Sorts a new connection by its cookie.
    fn dispatch(&self, (sequence, mut socket): Arrival, peer: SocketAddr, service: &Service) {
        let cookie = read_cookie(&mut socket);
        self.unauthenticated.fetch_sub(1, Ordering::SeqCst);
        let Some(cookie) = cookie else { return };
        let mut tests = lock(&self.tests);
        if let Some(test) = tests.iter_mut().find(|test| test.cookie == cookie) {
            if test.left > 0 {
                test.left -= 1;
                // A test that has just ended wants it no more.
                let _ = test.streams.send((sequence, socket));
            } else {
                drop(tests);
                let _ = socket.write_all(&REFUSAL);
            }
            return;
        }
        drop(tests);
        match (service.admit)() {
            Some(admission) => {
                session::serve(self, service, socket, peer, cookie);
                drop(admission);
            }
            None => {
                (service.log)(&format!("{peer}: {} refused: another measurement is running", PEER.name));
                let _ = socket.write_all(&REFUSAL);
            }
        }
    }

    /// Knows this cookie from now on; none of its streams is let in yet.
    pub(super) fn expect(&self, cookie: Cookie) -> TestRegistration<'_> {
        let (sender, streams) = channel();
        lock(&self.tests).push(ExpectedTest { cookie, streams: sender, left: 0 });
        TestRegistration { acceptor: self, cookie, streams }
    }

    /// Lets a test take its streams in; `None` where others do so now that it is not to be mixed up with.
    pub(super) fn stream_lock(&self, want: StreamSource) -> Option<StreamLock<'_>> {
        Some(match want {
            StreamSource::Connections => StreamLock::Shared { _guard: locked(self.opening.try_read())? },
            StreamSource::OwnListener => StreamLock::Exclusive { _guard: locked(self.opening.try_write())? },
            StreamSource::Datagrams => {
                let udp = locked(self.udp.try_lock())?;
                // The test has not been told yet that it may send: what is here is of one that gave up.
                udp.set_nonblocking(true).ok()?;
                for _ in 0..STALE_DATAGRAMS {
                    if udp.recv_from(&mut [0]).is_err() {
                        break;
                    }
                }
                udp.set_nonblocking(false).ok()?;
                StreamLock::Datagrams(udp)
            }
        })
    }

    /// Puts a listener with these options in the place of the one that is there: some must be set before the handshake. At most
    /// `most` of the connections that nobody has looked at yet are kept. Where it fails, the usual listener is there.
    pub(super) fn reopen(&self, options: &EndOptions, most: usize) -> Result<(), InteropError> {
        if *options != EndOptions::default() {
            // Nobody is disturbed for options that cannot be had.
            listener(SocketAddr::new(self.address.ip(), 0), options)?;
        }
        self.reopening.fetch_add(1, Ordering::SeqCst);
        let mut listen_queue = lock(&self.listen_queue);
        listen_queue.close(most);
        let opened = self.listen_again(options);
        let (listener, failed) = match opened {
            Ok(listener) => (Some(listener), None),
            Err(error) => (self.listen_again(&EndOptions::default()).ok(), Some(error)),
        };
        listen_queue.listener = listener;
        self.reopening.fetch_sub(1, Ordering::SeqCst);
        failed.map_or(Ok(()), Err)
    }

    /// A listener on the address that another one has just given up.
    fn listen_again(&self, options: &EndOptions) -> Result<TcpListener, InteropError> {
        let mut opened = listener(self.address, options);
        for _ in 0..REBIND_TRIES {
            if opened.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            opened = listener(self.address, options);
        }
        opened
    }

    /// The next UDP stream of the client at `from`: whoever else sends something is not heard.
    pub(super) fn datagram_stream(
        &self,
        udp: &UdpSocket,
        from: IpAddr,
        spec: &Spec,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Socket>, InteropError> {
        let failed = |source| InteropError::socket("open a UDP stream on", self.address, source);
        let mut buffer = [0; 64];
        while keep_waiting() {
            let Ok((count, peer)) = udp.recv_from(&mut buffer) else { continue };
            // Whatever its value: versions differ in it. Longer ones are the rest of a stream that has ended.
            if count != datagram::REQUEST.len() || peer.ip() != from {
                continue;
            }
            let socket = udp::connected_twin(self.address, peer, Some(spec)).map_err(failed)?;
            foreign::prepare(socket.as_fd(), spec, model::Role::Passive)?;
            socket.send(&datagram::REPLY).map_err(failed)?;
            return Ok(Some(socket));
        }
        Ok(None)
    }
}

impl ListenQueue {
    /// The next connection, if there is one soon.
    fn next(&mut self, address: SocketAddr) -> Option<(TcpStream, SocketAddr)> {
        if let Some(kept) = self.left.pop_front() {
            return Some(kept);
        }
        if self.listener.is_none() {
            self.listener = listener(address, &EndOptions::default()).ok();
        }
        match &self.listener {
            Some(listener) => plain::next(listener),
            None => {
                std::thread::sleep(STEP);
                None
            }
        }
    }

    /// Closes the listener: an address has one at a time. At most `most` of those in its queue, which would be reset with it, are kept.
    fn close(&mut self, most: usize) {
        let Some(listener) = self.listener.take() else { return };
        if listener.set_nonblocking(true).is_err() {
            return;
        }
        while self.left.len() < most
            && let Ok(accepted) = listener.accept()
        {
            self.left.push_back(accepted);
        }
    }
}

impl TestRegistration<'_> {
    /// Lets in so many of its streams.
    pub(super) fn want(&self, streams: usize) {
        if let Some(test) = lock(&self.acceptor.tests).iter_mut().find(|test| test.cookie == self.cookie) {
            test.left = streams;
        }
    }
}

impl Drop for TestRegistration<'_> {
    fn drop(&mut self) {
        lock(&self.acceptor.tests).retain(|test| test.cookie != self.cookie);
    }
}

fn listener(address: SocketAddr, options: &EndOptions) -> Result<TcpListener, InteropError> {
    Ok(TcpListener::from(foreign::listen(address, options)?))
}

/// The cookie at the front of a connection; `None` where none came in time.
fn read_cookie(socket: &mut TcpStream) -> Option<Cookie> {
    let deadline = Instant::now() + COOKIE_LIMIT;
    let mut hello = StreamHello::default();
    // A byte beyond the cookie belongs to what follows: a stream's first payload, which is not to be lost.
    let mut left = speak::iperf3::COOKIE_BYTES;
    let mut buffer = [0; speak::iperf3::COOKIE_BYTES];
    while left > 0 {
        let limit = deadline.checked_duration_since(Instant::now())?;
        socket.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).ok()?;
        let count = socket.read(&mut buffer[..left]).ok().filter(|count| *count > 0)?;
        left -= count;
        if let Some(cookie) = hello.take(&mut &buffer[..count]) {
            socket.set_read_timeout(None).ok()?;
            return Some(cookie);
        }
    }
    None
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was locked; `None` where somebody else has it.
fn locked<T>(tried: TryLockResult<T>) -> Option<T> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

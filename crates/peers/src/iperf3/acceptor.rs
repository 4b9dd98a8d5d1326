//! What tests share at one address of the server: its listener, and the streams that they expect.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult,
};
use std::time::Duration;

use engine::transport::{at_port, programs, udp};
use model::{EndOptions, Spec};
use peer_wire::iperf3::{TestCookie, datagram};
use socket2::{Domain, Socket, Type};

use crate::session_deadline::SessionDeadlines;
use crate::{ProgramError, plain};

/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// Attempts to bind an address that the previous listener is releasing.
const REBIND_TRIES: u32 = 50;
/// Datagrams discarded before a test's streams open: more than a default socket buffer holds.
const STALE_DATAGRAMS: u32 = 1_000;

/// One address that is listened on.
pub(super) struct Acceptor {
    pub(super) address: SocketAddr,
    pub(super) listen_queue: Mutex<ListenQueue>,
    /// Threads that replace the listener; the accepting thread leaves the lock to them.
    pub(super) reopening: AtomicUsize,
    /// Held by tests while their connections arrive: shared if they need no listener options, else exclusive.
    opening: RwLock<()>,
    /// Held by one test while its first datagrams arrive: only their address identifies the client.
    udp: Mutex<UdpSocket>,
    pub(super) tests: Mutex<Vec<ExpectedTest>>,
    pub(super) unauthenticated: AtomicUsize,
    /// Clients that wait for the machine.
    pub(super) waiting: AtomicUsize,
    /// Of those that have been let in.
    pub(super) session_deadlines: SessionDeadlines,
}

/// The listener and the connections that it has accepted.
pub(super) struct ListenQueue {
    /// Absent if it could not be opened again.
    listener: Option<TcpListener>,
    /// Connections from the queue of the previous listener.
    left: VecDeque<(TcpStream, SocketAddr)>,
}

/// A test that waits for streams.
pub(super) struct ExpectedTest {
    pub(super) cookie: TestCookie,
    pub(super) streams: Sender<Arrival>,
    /// How many more are accepted. Each holds a descriptor until the test takes it.
    pub(super) left: usize,
}

/// A test that expects streams, as long as it lives.
pub(super) struct TestRegistration<'a> {
    acceptor: &'a Acceptor,
    cookie: TestCookie,
    pub(super) streams: Receiver<Arrival>,
}

/// A stream and its position among accepted connections: a later connection's cookie may be read first.
pub(super) type Arrival = (u64, TcpStream);

/// What a test needs from the acceptor for its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamSource {
    /// Connections, from the listener as it is.
    Connections,
    /// Connections, from a listener with options of its own.
    OwnListener,
    /// Datagrams.
    Datagrams,
}

/// A lock that a test holds while its streams open.
pub(super) enum StreamLock<'a> {
    /// Over connections, together with other tests that need no listener options.
    Shared { _guard: RwLockReadGuard<'a, ()> },
    /// Over connections, with exclusive use of the listener.
    Exclusive { _guard: RwLockWriteGuard<'a, ()> },
    /// Over UDP, with the socket that receives the first datagrams.
    Datagrams(MutexGuard<'a, UdpSocket>),
}

impl Acceptor {
    pub(super) fn open(wanted: SocketAddr) -> Result<Self, ProgramError> {
        let failed = |source| ProgramError::socket("listen for iperf3 on", wanted, source);
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
            waiting: AtomicUsize::new(0),
            session_deadlines: SessionDeadlines::default(),
        })
    }

    /// Knows this cookie from now on; none of its streams is let in yet.
    pub(super) fn expect(&self, cookie: TestCookie) -> TestRegistration<'_> {
        let (sender, streams) = channel();
        lock(&self.tests).push(ExpectedTest { cookie, streams: sender, left: 0 });
        TestRegistration { acceptor: self, cookie, streams }
    }

    /// Locks the acceptor for a test's streams; `None` while a conflicting test holds it.
    pub(super) fn stream_lock(&self, want: StreamSource) -> Option<StreamLock<'_>> {
        Some(match want {
            StreamSource::Connections => StreamLock::Shared { _guard: locked(self.opening.try_read())? },
            StreamSource::OwnListener => StreamLock::Exclusive { _guard: locked(self.opening.try_write())? },
            StreamSource::Datagrams => {
                let udp = locked(self.udp.try_lock())?;
                // The client may not send yet, so these datagrams are from an earlier test.
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

    /// Replaces the listener by one with these options: some must be set before the handshake. Keeps at most
    /// `most` queued connections. On failure the default listener is opened again.
    pub(super) fn reopen(&self, options: &EndOptions, most: usize) -> Result<(), ProgramError> {
        if *options != EndOptions::default() {
            // Invalid options must not interrupt the current listener.
            listener(at_port(self.address, 0), options)?;
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

    /// Opens a listener on the address that the previous one has just released.
    fn listen_again(&self, options: &EndOptions) -> Result<TcpListener, ProgramError> {
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

    /// The next UDP stream of the client at `from`; datagrams of other hosts are discarded.
    pub(super) fn datagram_stream(
        &self,
        udp: &UdpSocket,
        from: IpAddr,
        spec: &Spec,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Socket>, ProgramError> {
        let failed = |source| ProgramError::socket("open a UDP stream on", self.address, source);
        let mut buffer = [0; 64];
        while keep_waiting() {
            let Ok((count, peer)) = udp.recv_from(&mut buffer) else { continue };
            // Any value: versions differ in it. Longer datagrams belong to an ended stream.
            if count != datagram::REQUEST.len() || peer.ip() != from {
                continue;
            }
            let socket = udp::connected_twin(self.address, peer, Some(spec)).map_err(failed)?;
            programs::prepare(socket.as_fd(), spec, model::Role::Passive)?;
            socket.send(&datagram::REPLY).map_err(failed)?;
            return Ok(Some(socket));
        }
        Ok(None)
    }
}

impl ListenQueue {
    /// The next connection, if one arrives soon.
    pub(super) fn next(&mut self, address: SocketAddr) -> Option<(TcpStream, SocketAddr)> {
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

    /// Closes the listener, because an address can have only one. Keeps at most `most` queued connections,
    /// which closing would reset.
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

fn listener(address: SocketAddr, options: &EndOptions) -> Result<TcpListener, ProgramError> {
    Ok(TcpListener::from(programs::listen(address, options)?))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The guard; `None` while another thread holds the lock.
fn locked<T>(tried: TryLockResult<T>) -> Option<T> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

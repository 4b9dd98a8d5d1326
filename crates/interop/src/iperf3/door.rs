//! The one port of our server: who comes in is a test's stream, a new client, or a stranger.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::transport::{foreign, udp};
use model::{EndOptions, Spec};
use socket2::{Domain, Socket, Type};
use speak::iperf3::{Cookie, PEER, REFUSAL, StreamHello, datagram};

use super::session;
use crate::{InteropError, Service, plain};

/// Between two looks at whether to end.
const STEP: Duration = Duration::from_millis(50);
/// How long a stranger may take to show a cookie.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
/// How often an address is asked for that another listener is about to give up.
const TRIES: u32 = 50;

/// One address that is listened on.
pub(super) struct Door {
    pub(super) address: SocketAddr,
    listener: Mutex<TcpListener>,
    udp: Mutex<UdpSocket>,
    tests: Mutex<Vec<(Cookie, Sender<Arrival>)>>,
    strangers: AtomicUsize,
}

/// A test that expects streams, as long as it lives.
pub(super) struct Expecting<'a> {
    door: &'a Door,
    cookie: Cookie,
    pub(super) streams: Receiver<Arrival>,
}

/// A stream and its place among the connections that were accepted: the cookie of a later one may be read before it.
pub(super) type Arrival = (u64, TcpStream);

/// Serves on all addresses until the service is told to stop.
pub(super) fn serve(service: &Service) -> Result<(), InteropError> {
    let mut doors: Vec<Door> = Vec::new();
    for wanted in &service.addresses {
        // Port 0 asks for any; the second address then takes the one that the first got.
        let port = doors.first().map_or(0, |door| door.address.port());
        let wanted = if wanted.port() == 0 { SocketAddr::new(wanted.ip(), port) } else { *wanted };
        doors.push(Door::open(wanted)?);
    }
    std::thread::scope(|scope| {
        for door in &doors {
            (service.listening)(door.address);
            scope.spawn(move || door.attend(scope, service));
        }
    });
    Ok(())
}

impl Door {
    fn open(wanted: SocketAddr) -> Result<Self, InteropError> {
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
            listener: Mutex::new(listener),
            udp: Mutex::new(udp().map_err(failed)?),
            tests: Mutex::default(),
            strangers: AtomicUsize::new(0),
        })
    }

    /// Lets in whoever comes.
    fn attend<'s, 'e>(&'e self, scope: &'s std::thread::Scope<'s, 'e>, service: &'e Service)
    where
        'e: 's,
    {
        let mut place = 0;
        while !service.stopping() {
            let accepted = plain::next(&lock(&self.listener));
            let Some((socket, peer)) = accepted else {
                // Lets a test put a listener with other options in this one's place.
                std::thread::yield_now();
                continue;
            };
            if self.strangers.fetch_add(1, Ordering::SeqCst) >= service.limits.strangers {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            place += 1;
            let greeted = std::thread::Builder::new()
                .name("iperf3".into())
                .spawn_scoped(scope, move || self.greet((place, socket), peer, service));
            if greeted.is_err() {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Sorts a new connection by its cookie.
    fn greet(&self, (place, mut socket): Arrival, peer: SocketAddr, service: &Service) {
        let cookie = read_cookie(&mut socket);
        self.strangers.fetch_sub(1, Ordering::SeqCst);
        let Some(cookie) = cookie else { return };
        let expected = lock(&self.tests).iter().find(|(known, _)| *known == cookie).map(|(_, streams)| streams.clone());
        if let Some(streams) = expected {
            // A test that has just ended wants it no more.
            let _ = streams.send((place, socket));
            return;
        }
        match (service.admit)() {
            Some(admission) => {
                session::serve(self, service, socket, peer, cookie);
                drop(admission);
            }
            None => {
                (service.news)(&format!("{peer}: {} refused: another measurement is running", PEER.name));
                let _ = socket.write_all(&REFUSAL);
            }
        }
    }

    /// Expects streams with this cookie.
    pub(super) fn expect(&self, cookie: Cookie) -> Expecting<'_> {
        let (sender, streams) = channel();
        lock(&self.tests).push((cookie, sender));
        Expecting { door: self, cookie, streams }
    }

    /// Puts a listener with these options in the place of the one that is there: some must be set before the handshake.
    pub(super) fn reopen(&self, options: &EndOptions) -> Result<(), InteropError> {
        let mut place = lock(&self.listener);
        let failed = |source| InteropError::socket("listen for iperf3 on", self.address, source);
        // An address has one listener at a time: the place is held by one of another port meanwhile.
        *place = TcpListener::bind(SocketAddr::new(self.address.ip(), 0)).map_err(failed)?;
        let mut opened = listener(self.address, options);
        for _ in 0..TRIES {
            if opened.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            opened = listener(self.address, options);
        }
        match opened {
            Ok(listener) => *place = listener,
            Err(error) => {
                *place = listener(self.address, &EndOptions::default())?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The next UDP stream of the client at `from`: whoever else sends something is not heard.
    pub(super) fn datagram_stream(
        &self,
        from: IpAddr,
        spec: &Spec,
        still: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Socket>, InteropError> {
        let failed = |source| InteropError::socket("open a UDP stream on", self.address, source);
        let udp = lock(&self.udp);
        let mut buffer = [0; 64];
        while still() {
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

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        lock(&self.door.tests).retain(|(known, _)| *known != self.cookie);
    }
}

fn listener(address: SocketAddr, options: &EndOptions) -> Result<TcpListener, InteropError> {
    Ok(TcpListener::from(foreign::listen(address, options)?))
}

/// The cookie at the front of a connection; `None` where none came in time.
fn read_cookie(socket: &mut TcpStream) -> Option<Cookie> {
    let deadline = Instant::now() + HELLO_LIMIT;
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

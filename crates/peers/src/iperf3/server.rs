//! The server's only port: a connection is a stream of a test, a new client, or neither.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use engine::transport::at_port;
use peer_wire::iperf3::{PEER, REFUSAL, StreamHello, TestCookie};
use text::say;

use super::acceptor::{Acceptor, Arrival, lock};
use super::session;
use crate::{MachineUse, ProgramError, Service};

/// Time limit for an unauthenticated connection to send its cookie.
const COOKIE_LIMIT: Duration = Duration::from_secs(5);

/// Serves on all addresses until the service stops.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    let mut acceptors: Vec<Acceptor> = Vec::new();
    for wanted in &service.addresses {
        // Port 0 means any free port; all addresses share the one that the first got.
        let port = acceptors.first().map_or(0, |acceptor| acceptor.address.port());
        let wanted = if wanted.port() == 0 { at_port(*wanted, port) } else { *wanted };
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
    /// Accepts connections.
    fn accept_connections<'s, 'e>(&'e self, scope: &'s std::thread::Scope<'s, 'e>, service: &'e Service)
    where
        'e: 's,
    {
        let mut sequence = 0;
        while !service.stopping() {
            if self.reopening.load(Ordering::SeqCst) > 0 {
                // Without the pause this thread would take the lock again at once.
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
                // The test may have just ended.
                let _ = test.streams.send((sequence, socket));
            } else {
                drop(tests);
                let _ = socket.write_all(&REFUSAL);
            }
            return;
        }
        drop(tests);
        match self.admit(service) {
            Some(admission) => {
                session::serve(self, service, socket, peer, cookie);
                drop(admission);
            }
            None => {
                (service.log)(peer, &say!("{peer}: {} refused: another measurement is running", PEER.name));
                let _ = socket.write_all(&REFUSAL);
            }
        }
    }
}

impl Acceptor {
    /// The machine for a new client. A limited number of clients wait a moment for one that is leaving; the others do not, so that the
    /// streams of a test find room.
    fn admit(&self, service: &Service) -> Option<MachineUse> {
        let waits = self.waiting.fetch_add(1, Ordering::SeqCst) < service.limits.unauthenticated;
        let admission = if waits { service.admit_soon() } else { (service.admit)() };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        admission
    }
}

/// Reads the cookie of a connection; `None` if it did not arrive in time.
fn read_cookie(socket: &mut TcpStream) -> Option<TestCookie> {
    let deadline = Instant::now() + COOKIE_LIMIT;
    let mut hello = StreamHello::default();
    // Bytes after the cookie are the stream's first payload and must stay in the socket.
    let mut left = peer_wire::iperf3::COOKIE_BYTES;
    let mut buffer = [0; peer_wire::iperf3::COOKIE_BYTES];
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

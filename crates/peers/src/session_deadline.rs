//! Deadlines of sessions. A peer that sends all the time, or a byte at a time, never causes a timeout. So
//! another thread shuts its connection down at the deadline, and the session sees the end of the connection.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

use crate::Service;

/// Time limit of a client until it is admitted to a measurement.
const UNAUTHENTICATED: Duration = Duration::from_secs(30);
/// Time for a session to end by itself after its deadline or when the service stops.
const GRACE: Duration = Duration::from_secs(2);
/// Interval between checks.
const STEP: Duration = Duration::from_millis(50);

/// The deadlines of a service's sessions.
#[derive(Default)]
pub(crate) struct SessionDeadlines {
    clients: Mutex<Vec<Weak<Mutex<Client>>>>,
}

/// The deadline of one session; dropping it removes the deadline.
pub(crate) struct SessionDeadline {
    client: Arc<Mutex<Client>>,
}

struct Client {
    /// Its control connection.
    socket: Option<OwnedFd>,
    /// The deadline; `None` for no limit.
    until: Option<Instant>,
    cut: bool,
}

impl Client {
    fn cut(&mut self) {
        self.cut = true;
        if let Some(socket) = &self.socket {
            // If it fails, the connection is already closed.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl SessionDeadlines {
    /// Adds an unauthenticated connection.
    pub(crate) fn take(&self, socket: impl AsFd) -> SessionDeadline {
        let session_deadline = SessionDeadline::of(socket, Instant::now().checked_add(UNAUTHENTICATED));
        lock(&self.clients).push(Arc::downgrade(&session_deadline.client));
        session_deadline
    }

    /// Closes connections after their deadline, until the service stops and the last client has left.
    pub(crate) fn watch(&self, service: &Service) {
        let mut stopped: Option<Instant> = None;
        loop {
            let now = Instant::now();
            if service.stopping() {
                stopped = stopped.or(Some(now));
            }
            let over = stopped.is_some_and(|since| now.duration_since(since) > GRACE);
            let mut clients = lock(&self.clients);
            clients.retain(|client| client.strong_count() > 0);
            if over && clients.is_empty() {
                return;
            }
            for client in clients.iter().filter_map(Weak::upgrade) {
                let mut client = lock(&client);
                if !client.cut && (over || client.until.is_some_and(|until| now > until)) {
                    client.cut();
                }
            }
            drop(clients);
            std::thread::sleep(STEP);
        }
    }
}

impl SessionDeadline {
    /// A session without a deadline.
    pub(crate) fn unlimited(socket: impl AsFd) -> Self {
        Self::of(socket, None)
    }

    fn of(socket: impl AsFd, until: Option<Instant>) -> Self {
        let socket = socket.as_fd().try_clone_to_owned().ok();
        Self { client: Arc::new(Mutex::new(Client { socket, until, cut: false })) }
    }

    /// Sets the deadline to this long from now, plus a grace period.
    pub(crate) fn extend(&self, hold: Duration) {
        lock(&self.client).until = hold.checked_add(GRACE).and_then(|hold| Instant::now().checked_add(hold));
    }

    /// Whether the deadline has passed, without the grace period.
    pub(crate) fn is_over(&self) -> bool {
        let client = lock(&self.client);
        client.cut || client.until.is_some_and(|until| Instant::now() + GRACE > until)
    }

    /// The session continues on another connection.
    pub(crate) fn move_to(&self, socket: impl AsFd) {
        let mut client = lock(&self.client);
        client.socket = socket.as_fd().try_clone_to_owned().ok();
        if client.cut {
            client.cut();
        }
    }

    /// Whether the connection was closed at the deadline.
    pub(crate) fn was_cut(&self) -> bool {
        lock(&self.client).cut
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> [TcpStream; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        [near, listener.accept().unwrap().0]
    }

    fn service() -> Service {
        Service {
            addresses: Vec::new(),
            options: String::new(),
            users: None,
            limits: crate::ServiceLimits {
                unauthenticated: 1,
                hold_ns: 1,
                flows: 1,
                rate_bps: None,
                memory_bytes: 8 << 30,
            },
            admit: Box::new(|| None),
            log: Box::new(|_, _| {}),
            listening: Box::new(|_| {}),
            stop: false.into(),
        }
    }

    #[test]
    fn sessions_end_at_their_deadline_or_when_the_service_stops() {
        let (service, session_deadlines) = (service(), SessionDeadlines::default());
        let ([mut there, here], [mut other, kept]) = (pair(), pair());
        let (brief, long) = (session_deadlines.take(&here), session_deadlines.take(&kept));
        lock(&brief.client).until = Some(Instant::now());
        long.extend(Duration::MAX);
        std::thread::scope(|scope| {
            scope.spawn(|| session_deadlines.watch(&service));
            assert_eq!(there.read(&mut [0]).unwrap(), 0);
            assert!(brief.was_cut() && !long.was_cut());
            // Its new connection is closed as well.
            let [mut next, socket] = pair();
            brief.move_to(&socket);
            assert_eq!(next.read(&mut [0]).unwrap(), 0);
            service.stop.store(true, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(other.read(&mut [0]).unwrap(), 0);
            drop((brief, long));
        });
    }
}

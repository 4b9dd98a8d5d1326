//! How long a client may hold on to this host. A peer that feeds a session without end, or a byte at a time, is never silent, so that no wait
//! for it ends: its connection is shut from outside when its time is over, and the session finds it ended.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

use crate::Service;

/// What a client may take in all until it is admitted to a measurement.
const UNAUTHENTICATED: Duration = Duration::from_secs(30);
/// What a session may take to end by itself, where its time is over or the service stops.
const GRACE: Duration = Duration::from_secs(2);
/// Between two looks.
const STEP: Duration = Duration::from_millis(50);

/// The leashes of a service's clients.
#[derive(Default)]
pub(crate) struct SessionDeadlines {
    clients: Mutex<Vec<Weak<Mutex<Client>>>>,
}

/// One client's; it is off the leash when this is dropped.
pub(crate) struct SessionDeadline {
    client: Arc<Mutex<Client>>,
}

struct Client {
    /// The connection that it speaks on.
    socket: Option<OwnedFd>,
    /// Until when it may; `None` for ever.
    until: Option<Instant>,
    cut: bool,
}

impl Client {
    fn cut(&mut self) {
        self.cut = true;
        if let Some(socket) = &self.socket {
            // Where it fails the connection is gone.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl SessionDeadlines {
    /// Takes the client of a connection, as a stranger.
    pub(crate) fn take(&self, socket: impl AsFd) -> SessionDeadline {
        let session_deadline = SessionDeadline::of(socket, Instant::now().checked_add(UNAUTHENTICATED));
        lock(&self.clients).push(Arc::downgrade(&session_deadline.client));
        session_deadline
    }

    /// Cuts whose time is over, until the service stops and the last client has gone.
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
    /// Of a client that nobody watches over.
    pub(crate) fn unlimited(socket: impl AsFd) -> Self {
        Self::of(socket, None)
    }

    fn of(socket: impl AsFd, until: Option<Instant>) -> Self {
        let socket = socket.as_fd().try_clone_to_owned().ok();
        Self { client: Arc::new(Mutex::new(Client { socket, until, cut: false })) }
    }

    /// From now on it may stay for this long, and a moment to end by itself.
    pub(crate) fn extend(&self, hold: Duration) {
        lock(&self.client).until = hold.checked_add(GRACE).and_then(|hold| Instant::now().checked_add(hold));
    }

    /// Whether its time is over, but for the moment to end by itself.
    pub(crate) fn is_over(&self) -> bool {
        let client = lock(&self.client);
        client.cut || client.until.is_some_and(|until| Instant::now() + GRACE > until)
    }

    /// It speaks on another connection now.
    pub(crate) fn move_to(&self, socket: impl AsFd) {
        let mut client = lock(&self.client);
        client.socket = socket.as_fd().try_clone_to_owned().ok();
        if client.cut {
            client.cut();
        }
    }

    /// Whether its time was over.
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
            limits: crate::Limits { unauthenticated: 1, hold_ns: 1, flows: 1, rate_bps: None, memory_bytes: 8 << 30 },
            admit: Box::new(|| None),
            log: Box::new(|_| {}),
            listening: Box::new(|_| {}),
            stop: false.into(),
        }
    }

    #[test]
    fn whose_time_is_over_is_cut_and_others_go_on_until_the_service_stops() {
        let (service, session_deadlines) = (service(), SessionDeadlines::default());
        let ([mut there, here], [mut other, kept]) = (pair(), pair());
        let (brief, long) = (session_deadlines.take(&here), session_deadlines.take(&kept));
        lock(&brief.client).until = Some(Instant::now());
        long.extend(Duration::MAX);
        std::thread::scope(|scope| {
            scope.spawn(|| session_deadlines.watch(&service));
            assert_eq!(there.read(&mut [0]).unwrap(), 0);
            assert!(brief.was_cut() && !long.was_cut());
            // Where it goes on to, it is cut as well.
            let [mut next, socket] = pair();
            brief.move_to(&socket);
            assert_eq!(next.read(&mut [0]).unwrap(), 0);
            service.stop.store(true, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(other.read(&mut [0]).unwrap(), 0);
            drop((brief, long));
        });
    }
}

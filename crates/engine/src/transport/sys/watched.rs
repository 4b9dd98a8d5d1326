//! A socket that its owner uses without a lock, and that other threads may look at and shut down while it is open.

use std::net::TcpStream;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What owns one descriptor.
///
/// # Safety
/// Of a value that is only borrowed, `as_fd` answers the same descriptor each time, and it stays open.
pub unsafe trait Owner: AsFd {}

// SAFETY: it closes its descriptor when it is dropped, and has no method that replaces it.
unsafe impl Owner for OwnedFd {}
// SAFETY: as an OwnedFd, which it consists of.
unsafe impl Owner for TcpStream {}

/// The number of an open socket; none once its owner has let go of it. The owner takes the lock before it closes the socket,
/// a watcher for the length of its call: the number cannot become another file's in between.
type Slot = Mutex<Option<RawFd>>;

fn lock(slot: &Slot) -> MutexGuard<'_, Option<RawFd>> {
    // The number is stored in one step: a panic elsewhere leaves it right.
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket with watchers. Its owner's calls take no lock; to replace or to drop it takes one.
#[derive(Debug)]
pub struct WatchedSocket<S: Owner> {
    /// Only `replace` and `drop` change it; nothing lends it mutably.
    socket: S,
    slot: Arc<Slot>,
}

impl<S: Owner> WatchedSocket<S> {
    /// Takes the socket.
    pub fn new(socket: S) -> Self {
        let slot = Arc::new(Mutex::new(Some(socket.as_fd().as_raw_fd())));
        Self { socket, slot }
    }

    /// Puts another socket in its place; what was there is watched no more, and still open.
    pub fn replace(&mut self, socket: S) -> S {
        let mut number = lock(&self.slot);
        *number = Some(socket.as_fd().as_raw_fd());
        std::mem::replace(&mut self.socket, socket)
    }

    /// What other threads may have.
    pub(crate) fn watcher(&self) -> Watcher {
        Watcher(self.slot.clone())
    }
}

impl<S: Owner> Deref for WatchedSocket<S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.socket
    }
}

impl<S: Owner> AsFd for WatchedSocket<S> {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<S: Owner> Drop for WatchedSocket<S> {
    fn drop(&mut self) {
        // Before the socket is closed, which is dropped after this.
        *lock(&self.slot) = None;
    }
}

/// Access to a [`WatchedSocket`] from another thread, as long as it is open.
#[derive(Debug, Clone)]
pub(crate) struct Watcher(Arc<Slot>);

impl Watcher {
    /// What `call` answers for the socket; `None` once it is closed. The call must not wait: the owner may have to wait for
    /// it before it closes or replaces the socket.
    pub(crate) fn with<R>(&self, call: impl FnOnce(BorrowedFd<'_>) -> R) -> Option<R> {
        let number = lock(&self.0);
        let socket = (*number)?;
        // SAFETY: the descriptor is open for as long as the lock is held: its owner takes the lock and stores another number, or
        // none, before it closes this one. An owner that is forgotten never closes it.
        Some(call(unsafe { BorrowedFd::borrow_raw(socket) }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn number(watcher: &Watcher) -> Option<RawFd> {
        watcher.with(|socket| socket.as_raw_fd())
    }

    #[test]
    fn a_watcher_has_the_socket_that_is_there_and_none_after_it() {
        let (first, second) = pair();
        let (one, two) = (first.as_raw_fd(), second.as_raw_fd());
        let mut watched = WatchedSocket::new(first);
        let watcher = watched.watcher();
        assert_eq!((number(&watcher), watched.as_raw_fd()), (Some(one), one));
        assert_eq!(watched.replace(second).as_raw_fd(), one);
        assert_eq!(number(&watcher), Some(two));
        drop(watched);
        assert_eq!(number(&watcher), None);
    }

    /// Ends the other threads of a test also when it fails.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Shuts down what the last of `watchers` is given, until it is `over`; how often it could.
    fn break_all(watchers: &Mutex<Watcher>, over: &AtomicBool) -> u32 {
        let mut broken = 0;
        while !over.load(Ordering::Relaxed) {
            let watcher = watchers.lock().unwrap().clone();
            for _ in 0..64 {
                let done = watcher.with(|socket| rustix::net::shutdown(socket, Shutdown::Both));
                broken += u32::from(done.is_some_and(|result| result.is_ok()));
            }
        }
        broken
    }

    /// An owner renews and drops its socket while bystanders take the numbers that become free, and watchers shut down
    /// what they are given. By number alone they would shut down a bystander.
    #[test]
    fn a_watcher_never_reaches_the_file_that_has_the_number_next() {
        let mut watched = Some(WatchedSocket::new(pair().0));
        let watchers = Mutex::new(watched.as_ref().unwrap().watcher());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let breakers = [(); 3].map(|()| scope.spawn(|| break_all(&watchers, &over)));
            let ended = Over(&over);
            for round in 0..20_000u32 {
                let (fresh, _far) = pair();
                if round % 4 == 3 {
                    drop(watched.take());
                } else {
                    drop(watched.as_mut().unwrap().replace(fresh.try_clone().unwrap()));
                }
                // They have the numbers that were just closed.
                let (left, right) = pair();
                for _ in 0..4 {
                    let alive = rustix::io::write(&left, b"x").and_then(|_| rustix::io::read(&right, &mut [0; 1][..]));
                    assert_eq!(alive, Ok(1), "a bystander was shut down in round {round}");
                }
                if watched.is_none() {
                    watched = Some(WatchedSocket::new(fresh));
                    *watchers.lock().unwrap() = watched.as_ref().unwrap().watcher();
                }
            }
            drop(ended);
            let broken: u32 = breakers.map(|breaker| breaker.join().unwrap()).iter().sum();
            assert!(broken > 0, "the watchers had the sockets");
        });
    }
}

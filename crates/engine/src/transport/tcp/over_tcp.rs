//! What the two ways of TLS share: the TCP connection below them.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::transport::Breaker;

/// How long a blocking send may take before it returns with a partial result.
pub(super) const SEND_LIMIT: Duration = Duration::from_millis(100);

/// A socket's number, for the breaker; -1 once it is dropped.
pub(super) struct Slot(Arc<AtomicI32>);

impl Slot {
    pub(super) fn of(socket: &TcpStream) -> Self {
        Self(Arc::new(AtomicI32::new(socket.as_raw_fd())))
    }

    pub(super) fn breaker(&self) -> Breaker {
        Breaker::of(&self.0)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.store(-1, Ordering::SeqCst);
    }
}

/// The calls of a `Channel` that go to its TCP connection unchanged, for one with `slot`, `socket`, `blocking` and
/// `flush`.
macro_rules! over_tcp {
    () => {
        fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
            self.blocking = !on;
            self.socket.set_nonblocking(on)
        }

        fn prompt(&mut self) {
            options::prompt(self.socket.as_fd());
        }

        fn limit_sends(&mut self) -> io::Result<()> {
            self.socket.set_write_timeout(Some(SEND_LIMIT))
        }

        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            Some(self.socket.as_fd())
        }

        fn settled(&mut self) -> io::Result<bool> {
            match self.flush() {
                Err(error) if !not_now(&error) => Err(error),
                result => Ok(result.is_ok()),
            }
        }

        fn tcp(&self) -> Option<TcpInfo> {
            TcpInfo::of(self.socket.as_fd())
        }

        fn unsent(&self) -> u64 {
            sys::sockopt::unsent(&self.socket)
        }

        fn breaker(&self) -> Breaker {
            self.slot.breaker()
        }
    };
}
pub(super) use over_tcp;

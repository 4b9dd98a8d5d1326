//! What the two ways of TLS share: the TCP connection below them.

use std::time::Duration;

/// How long a blocking send may take before it returns with a partial result.
pub(super) const SEND_LIMIT: Duration = Duration::from_millis(100);

/// The calls of a `Channel` that go to its TCP connection unchanged, for one with `socket`, `blocking` and
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
            Breaker::of(&self.socket)
        }
    };
}
pub(super) use over_tcp;

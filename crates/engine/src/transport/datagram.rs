//! The channel over a connected datagram socket, UDP or Unix.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use model::SocketFacts;
use rustix::net::{RecvFlags, SendFlags};

use super::{Breaker, Channel, Kind, sys};

/// How long a blocking call waits before its machine gets to look at the clock and the stop flag: a lost datagram must not
/// block a thread for ever.
const CALL_LIMIT: Duration = Duration::from_millis(20);

/// A connected datagram socket.
pub(crate) struct DatagramChannel {
    socket: OwnedFd,
}

impl DatagramChannel {
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let borrowed = socket2::SockRef::from(&socket);
        borrowed.set_nonblocking(false)?;
        borrowed.set_read_timeout(Some(CALL_LIMIT))?;
        borrowed.set_write_timeout(Some(CALL_LIMIT))?;
        Ok(Self { socket })
    }
}

/// ICMP errors of earlier datagrams surface on the next call; the path may well carry the next one.
fn transient(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(error, Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH)
}

impl Channel for DatagramChannel {
    const KIND: Kind = Kind::Datagram;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
            // A full device queue: the datagram was not taken, and the queue drains by itself.
            Err(rustix::io::Errno::NOBUFS) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) if transient(error) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other?),
        }
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match rustix::net::recv(&self.socket, into, RecvFlags::empty()) {
            Err(error) if transient(error) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other?.1),
        }
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, on)?)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn facts(&self) -> SocketFacts {
        super::options::facts(self.socket.as_fd())
    }

    fn unsent(&self) -> u64 {
        0
    }

    fn socket_drops(&self) -> u64 {
        sys::sockopt::drops(&self.socket).unwrap_or(0)
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}

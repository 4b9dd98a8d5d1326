//! A channel over a socket whose sends and receives are submitted to the kernel and complete later (`--wait uring`).

use std::io;
use std::os::fd::BorrowedFd;

use model::SocketFacts;

use crate::transport::{Breaker, Channel, Kind, Operations, TcpInfo};

/// The channel. Its bytes belong to the ring: what a machine passes in counts by its length only, and nothing is
/// written to its receive buffer, because machines of streams do not read payload. Blocking calls (between legs) go to
/// the socket itself.
pub(crate) struct CompletionChannel<C> {
    socket: C,
    operations: Operations,
    /// Whether calls are submitted as operations.
    submitting: bool,
}

impl<C: Channel> CompletionChannel<C> {
    pub(crate) fn new(socket: C) -> Self {
        Self { socket, operations: Operations::default(), submitting: false }
    }
}

impl<C: Channel> Channel for CompletionChannel<C> {
    const KIND: Kind = C::KIND;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.submitting { self.operations.send.call(bytes.len()) } else { self.socket.send(bytes) }
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.submitting { self.operations.recv.call(into.len()) } else { self.socket.recv(into) }
    }

    #[inline]
    fn owes(&self) -> bool {
        self.operations.owes()
    }

    fn operations(&mut self) -> Option<&mut Operations> {
        Some(&mut self.operations)
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        // The socket stays blocking: on a non-blocking one io_uring returns EAGAIN instead of waiting.
        self.submitting = on;
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.poll_fd()
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.socket.finish_sending()
    }

    fn facts(&self) -> SocketFacts {
        self.socket.facts()
    }

    fn brief_facts(&self) -> SocketFacts {
        self.socket.brief_facts()
    }

    fn tcp(&self) -> Option<TcpInfo> {
        self.socket.tcp()
    }

    fn unsent(&self) -> u64 {
        self.socket.unsent()
    }

    fn breaker(&self) -> Breaker {
        self.socket.breaker()
    }
}

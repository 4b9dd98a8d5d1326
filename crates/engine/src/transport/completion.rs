//! A stream socket whose sends and receives are submitted to the kernel and complete later (`--wait uring`).

use std::io;
use std::os::fd::BorrowedFd;

use model::SocketFacts;

use super::stream::StreamChannel;
use super::sys::uring::Op;
use super::{Breaker, Channel, Kind, TcpInfo};

/// The operations of one flow: a send and a receive at most.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    send: Operation,
    recv: Operation,
}

#[derive(Debug, Default)]
enum Operation {
    #[default]
    None,
    /// Requested by the machine, not submitted yet.
    Wanted(usize),
    /// Submitted to the kernel.
    Out(usize),
    /// Completed, but not yet collected by the machine.
    Done(io::Result<usize>),
}

impl Operation {
    /// The machine's call: the result of a completed operation, or "not now" and a new operation.
    fn call(&mut self, len: usize) -> io::Result<usize> {
        match std::mem::take(self) {
            // A machine that now requests less gets no more than that.
            Self::Done(Ok(count)) if count > len => {
                *self = Self::Done(Ok(count - len));
                Ok(len)
            }
            Self::Done(result) => result,
            Self::None => {
                *self = Self::Wanted(len);
                Err(io::ErrorKind::WouldBlock.into())
            }
            pending => {
                *self = pending;
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

impl Operations {
    fn of(&mut self, op: Op) -> &mut Operation {
        match op {
            Op::Send => &mut self.send,
            Op::Recv => &mut self.recv,
        }
    }

    /// Bytes of a send or receive to submit now.
    pub(crate) fn take(&mut self, op: Op) -> Option<usize> {
        let operation = self.of(op);
        let Operation::Wanted(len) = *operation else { return None };
        *operation = Operation::Out(len);
        Some(len)
    }

    /// The result of a submitted operation.
    pub(crate) fn fill(&mut self, op: Op, result: io::Result<usize>) {
        let operation = self.of(op);
        *operation = match (&operation, result) {
            (Operation::Out(len), Err(error)) if crate::pattern::not_now(&error) => Operation::Wanted(*len),
            (_, result) => Operation::Done(result),
        };
    }
}

/// The channel. Its bytes belong to the ring: what a machine passes in counts by its length only, and nothing is
/// written to its receive buffer, because machines of streams do not read payload. Blocking calls (between legs) go to
/// the socket itself.
pub(crate) struct CompletionChannel {
    socket: StreamChannel,
    operations: Operations,
    /// Whether calls are submitted as operations.
    submitting: bool,
}

impl CompletionChannel {
    pub(crate) fn new(socket: StreamChannel) -> Self {
        Self { socket, operations: Operations::default(), submitting: false }
    }
}

impl Channel for CompletionChannel {
    const KIND: Kind = Kind::Stream;

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
        !matches!(self.operations.send, Operation::None)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_pending_until_it_completes() {
        let mut operations = Operations::default();
        let blocked = |result: io::Result<usize>| result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        assert!(blocked(operations.recv.call(10)));
        assert!(blocked(operations.recv.call(10)), "still one order");
        assert_eq!(
            (operations.take(Op::Recv), operations.take(Op::Recv), operations.take(Op::Send)),
            (Some(10), None, None)
        );
        operations.fill(Op::Recv, Err(io::ErrorKind::Interrupted.into()));
        assert!(blocked(operations.recv.call(10)));
        assert_eq!(operations.take(Op::Recv), Some(10), "an interrupted operation is submitted again");
        operations.fill(Op::Recv, Ok(7));
        assert_eq!(operations.recv.call(5).unwrap(), 5);
        assert_eq!(operations.recv.call(5).unwrap(), 2, "what was not requested is kept");
        assert!(blocked(operations.recv.call(5)));
    }
}

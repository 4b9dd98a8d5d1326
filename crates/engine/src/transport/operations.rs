//! The sends and receives that a flow has submitted to the kernel, between its machine and the ring.

use std::io;

use super::sys::uring::Op;
use crate::core::not_now;

/// The operations of one flow: a send and a receive at most.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(super) send: Operation,
    pub(super) recv: Operation,
}

#[derive(Debug, Default)]
pub(super) enum Operation {
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
    pub(super) fn call(&mut self, len: usize) -> io::Result<usize> {
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

    /// Whether the result of a send has not been collected yet.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        !matches!(self.send, Operation::None)
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
            (Operation::Out(len), Err(error)) if not_now(&error) => Operation::Wanted(*len),
            (_, result) => Operation::Done(result),
        };
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

//! A thread that serves many flows by completion: all their sends and receives go to the kernel together, one call per
//! round, and a flow goes on when its own complete.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::rounds::{Rounds, Waits};
use crate::core::{Interest, PageBuffer, now_ns};
use crate::transport::uring::{Completion, Op, Uring};
use crate::transport::{Flow, Scratch};

/// A ring and the flows' deadlines.
pub(super) struct Completions {
    ring: Uring,
    done: Vec<Completion>,
    rounds: Rounds,
    /// Flows already listed as ready (a send and a receive of one may complete together) or done with the leg.
    listed: Vec<bool>,
}

impl Completions {
    /// Created by the thread that uses it, for the flows in their order.
    pub(super) fn new(flows: &[Box<dyn Flow>], scratch: &Scratch) -> io::Result<Self> {
        let sockets: Option<Vec<BorrowedFd<'_>>> = flows.iter().map(|flow| flow.poll_fd()).collect();
        let sockets = sockets.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self {
            ring: Uring::new(&sockets, scratch.tx.again(), PageBuffer::filled(scratch.rx.len(), 0xff))?,
            done: Vec::with_capacity(4 * flows.len()),
            rounds: Rounds::new(flows.len()),
            listed: vec![false; flows.len()],
        })
    }

    fn list(&mut self, index: usize) {
        if !std::mem::replace(&mut self.listed[index], true) {
            self.rounds.ready.push(index);
        }
    }
}

impl Waits for Completions {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, flows: usize) {
        self.listed.fill(false);
        (0..flows).for_each(|index| self.list(index));
    }

    fn called(&mut self, index: usize) {
        self.listed[index] = false;
    }

    fn watch(&mut self, flow: &mut dyn Flow, index: usize, _: Interest, until: u64) -> io::Result<()> {
        if until != u64::MAX {
            self.rounds.timers.set(index, until);
        }
        if let Some(operations) = flow.operations() {
            for op in [Op::Send, Op::Recv] {
                if let Some(len) = operations.take(op) {
                    self.ring.queue(index, op, len)?;
                }
            }
        }
        Ok(())
    }

    fn forget(&mut self, _: &mut dyn Flow, index: usize) -> io::Result<()> {
        self.listed[index] = true;
        self.rounds.timers.clear(index);
        Ok(())
    }

    /// Submits the operations and lists the flows that can go on; sleeps for the first one if none can.
    fn wait(&mut self, flows: &mut [Box<dyn Flow>]) -> io::Result<()> {
        let pause = self.rounds.pause(!self.rounds.again.is_empty());
        self.ring.turn(Duration::from_nanos(pause), &mut self.done)?;
        let mut done = std::mem::take(&mut self.done);
        for Completion { flow, op, result } in done.drain(..) {
            if let Some(operations) = flows[flow].operations() {
                operations.fill(op, result);
            }
            self.rounds.timers.clear(flow);
            self.list(flow);
        }
        self.done = done;
        let mut again = std::mem::take(&mut self.rounds.again);
        again.drain(..).for_each(|index| self.list(index));
        self.rounds.again = again;
        if self.rounds.timers.first().is_some() {
            let now = now_ns();
            while let Some(index) = self.rounds.timers.due(now) {
                self.list(index);
            }
        }
        Ok(())
    }
}

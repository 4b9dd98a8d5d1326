//! A thread that serves many flows by completion: all their sends and receives are handed to the kernel together, one call a
//! round, and a flow goes on when its own come back.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::readiness::pause;
use super::timers::Timers;
use super::{Flow, PageBuffer, Scratch, Signals};
use crate::now_ns;
use crate::pattern::Turn;
use crate::transport::uring::{Completion, Op, Uring};

/// A ring and the flows' deadlines.
pub(super) struct Completions {
    ring: Uring,
    timers: Timers,
    done: Vec<Completion>,
    /// Flows that can go on, and those that can in the next round; memory that is kept from leg to leg.
    ready: Vec<usize>,
    again: Vec<usize>,
    /// Which flows stand in `ready` (a send and a receive of one may come back together) or are done with the leg.
    listed: Vec<bool>,
}

impl Completions {
    /// Made by the thread that will use it, for the flows in their order.
    pub(super) fn new(flows: &[Box<dyn Flow>], scratch: &Scratch) -> io::Result<Self> {
        let sockets: Option<Vec<BorrowedFd<'_>>> = flows.iter().map(|flow| flow.poll_fd()).collect();
        let sockets = sockets.ok_or(io::ErrorKind::Unsupported)?;
        let like = |buffer: &PageBuffer| PageBuffer::filled(buffer.len(), b't');
        Ok(Self {
            ring: Uring::new(&sockets, like(&scratch.tx), like(&scratch.rx))?,
            timers: Timers::new(flows.len()),
            done: Vec::with_capacity(4 * flows.len()),
            ready: Vec::with_capacity(flows.len()),
            again: Vec::with_capacity(flows.len()),
            listed: vec![false; flows.len()],
        })
    }

    /// Takes all flows through one leg.
    pub(super) fn serve(
        &mut self,
        flows: &mut [Box<dyn Flow>],
        scratch: &mut Scratch,
        signals: &Signals,
    ) -> io::Result<()> {
        let mut open = flows.len();
        self.again.clear();
        self.ready.clear();
        self.listed.fill(false);
        (0..flows.len()).for_each(|index| self.list(index));
        while open > 0 {
            let mut ready = std::mem::take(&mut self.ready);
            for index in ready.drain(..) {
                self.listed[index] = false;
                let flow = &mut flows[index];
                match flow.advance(scratch, signals)? {
                    Turn::Done | Turn::Next(_) => {
                        self.listed[index] = true;
                        self.timers.clear(index);
                        open -= 1;
                    }
                    Turn::Again => self.again.push(index),
                    Turn::Sleep(until) => self.timers.set(index, until),
                    Turn::Wait(_, until) => {
                        if until != u64::MAX {
                            self.timers.set(index, until);
                        }
                        if let Some(orders) = flow.orders() {
                            for op in [Op::Send, Op::Recv] {
                                if let Some(len) = orders.take(op) {
                                    self.ring.order(index, op, len)?;
                                }
                            }
                        }
                    }
                }
            }
            self.ready = ready;
            if signals.aborting() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if open > 0 {
                self.turn(flows)?;
            }
        }
        Ok(())
    }

    /// Hands the orders over and lists the flows that can go on; sleeps for the first one where none can.
    fn turn(&mut self, flows: &mut [Box<dyn Flow>]) -> io::Result<()> {
        let pause = pause(&self.timers, !self.again.is_empty());
        self.ring.turn(Duration::from_nanos(pause), &mut self.done)?;
        let mut done = std::mem::take(&mut self.done);
        for Completion { flow, op, result } in done.drain(..) {
            if let Some(orders) = flows[flow].orders() {
                orders.fill(op, result);
            }
            self.timers.clear(flow);
            self.list(flow);
        }
        self.done = done;
        let mut again = std::mem::take(&mut self.again);
        again.drain(..).for_each(|index| self.list(index));
        self.again = again;
        if self.timers.first().is_some() {
            let now = now_ns();
            while let Some(index) = self.timers.due(now) {
                self.list(index);
            }
        }
        Ok(())
    }

    fn list(&mut self, index: usize) {
        if !std::mem::replace(&mut self.listed[index], true) {
            self.ready.push(index);
        }
    }
}

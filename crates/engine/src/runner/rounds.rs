//! A thread that serves many flows: in each round those that can go on do; the others wait for their time or for their
//! channels.

use std::io;

use super::timers::Timers;
use crate::core::{Interest, Signals, Turn, now_ns};
use crate::transport::{Flow, Scratch};

/// How long before a deadline a waiting thread stops sleeping: twice the wake-up time of an idle virtual core.
pub(super) const AWAKE_NS: u64 = 150_000;
/// Longest sleep between two checks of the stop flag, ns.
pub(super) const STOP_CHECK_NS: u64 = 20_000_000;

/// Flows that can go on, by their indexes, and the deadlines of the others; the memory is kept from leg to leg.
pub(super) struct Rounds {
    pub(super) ready: Vec<usize>,
    /// Those that can go on in the next round.
    pub(super) again: Vec<usize>,
    pub(super) timers: Timers,
    /// How long before a deadline the thread stops sleeping, ns.
    pub(super) awake_ns: u64,
}

impl Rounds {
    pub(super) fn new(flows: usize) -> Self {
        let (ready, again) = (Vec::with_capacity(flows), Vec::with_capacity(flows));
        Self { ready, again, timers: Timers::new(flows), awake_ns: AWAKE_NS }
    }

    /// How long a thread may sleep, ns: not at all while it is `busy`, else until shortly before the first deadline,
    /// and never too long to see the stop flag.
    pub(super) fn pause(&self, busy: bool) -> u64 {
        match self.timers.first() {
            _ if busy => 0,
            None => STOP_CHECK_NS,
            Some((_, until)) => until.saturating_sub(now_ns() + self.awake_ns).min(STOP_CHECK_NS),
        }
    }
}

/// A way of waiting for channels.
pub(super) trait Waits {
    fn rounds(&mut self) -> &mut Rounds;

    /// A leg begins: all of its flows are ready.
    fn begin(&mut self, flows: usize);

    /// A flow that was ready is about to be called.
    fn called(&mut self, _: usize) {}

    /// A flow waits for its channel, at most until the given time (ns of the monotonic clock; `u64::MAX` for no limit).
    fn watch(&mut self, flow: &mut dyn Flow, index: usize, interest: Interest, until: u64) -> io::Result<()>;

    /// A flow is done with the leg.
    fn forget(&mut self, flow: &mut dyn Flow, index: usize) -> io::Result<()>;

    /// Adds the flows that can go on to the ready ones; sleeps for them if there are none.
    fn wait(&mut self, flows: &mut [Box<dyn Flow>]) -> io::Result<()>;
}

/// Takes all flows through one leg.
pub(super) fn serve(
    waiter: &mut impl Waits,
    flows: &mut [Box<dyn Flow>],
    scratch: &mut Scratch,
    signals: &Signals,
) -> io::Result<()> {
    let mut open = flows.len();
    let rounds = waiter.rounds();
    rounds.again.clear();
    rounds.ready.clear();
    waiter.begin(flows.len());
    while open > 0 {
        let mut ready = std::mem::take(&mut waiter.rounds().ready);
        for index in ready.drain(..) {
            waiter.called(index);
            let flow = &mut *flows[index];
            match flow.advance(scratch, signals)? {
                Turn::Done | Turn::Next(_) => {
                    waiter.forget(flow, index)?;
                    open -= 1;
                }
                Turn::Again => waiter.rounds().again.push(index),
                Turn::Wait(interest, until) => waiter.watch(flow, index, interest, until)?,
                Turn::Sleep(until) => waiter.rounds().timers.set(index, until),
            }
        }
        waiter.rounds().ready = ready;
        if signals.aborting() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if open > 0 {
            waiter.wait(flows)?;
        }
    }
    Ok(())
}

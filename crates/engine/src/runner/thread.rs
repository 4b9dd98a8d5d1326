//! One measuring thread: its flows, leg after leg, by the chosen strategy.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::Strategy;
use rustix::thread::{CpuSet, sched_setaffinity};
use text::say;

use super::completions::Completions;
use super::gate::Gate;
use super::merge::ThreadLegs;
use super::readiness::Readiness;
use super::rounds::{AWAKE_NS, STOP_CHECK_NS, Waits, serve};
use super::stopwatch::Stopwatch;
use super::sys;
use crate::core::{EngineError, Signals, TrialPlan, Turn, now_ns};
use crate::transport::{Flow, FlowLeg, Scratch};

/// What a thread needs besides its flows.
pub(super) struct Job<'a> {
    pub(super) plan: Arc<TrialPlan>,
    pub(super) strategy: Strategy,
    pub(super) signals: &'a Signals,
    pub(super) core: Option<u32>,
}

/// How long the flows of one thread may take to settle between two legs, and the pause between two checks.
const SETTLE_NS: u64 = 10_000_000_000;
const SETTLE_STEP: Duration = Duration::from_micros(100);

/// Time slice of a paced thread while others want its core: the kernel's minimum.
const SLICE_NS: u64 = 100_000;

/// How a thread of several flows waits for them; a thread that spins or has one flow needs nothing for it.
enum Waiting {
    Alone,
    Readiness(Box<Readiness>),
    Completions(Box<Completions>),
}

impl Job<'_> {
    /// Runs all legs. In every case the gate is passed once, and the counts are returned.
    pub(super) fn run(&self, mut flows: Vec<Box<dyn Flow>>, gate: &Gate) -> (ThreadLegs, Option<EngineError>) {
        let prepared = self.prepare().and_then(|()| agree(&mut flows, 0));
        let mut scratch = Scratch::new(&self.plan, flows.first().is_some_and(|flow| flow.may_be_compressed()));
        let mut waiting = match self.strategy {
            Strategy::Epoll => Readiness::new(flows.len()).map(|mut set| {
                // A probe need not send to the microsecond, and time spent spinning before a send may be missing when
                // the reply arrives.
                if self.plan.spec.outstanding.is_some() {
                    set.rounds().awake_ns = 0;
                }
                Waiting::Readiness(Box::new(set))
            }),
            Strategy::Uring => Completions::new(&flows, &scratch).map(|ring| Waiting::Completions(Box::new(ring))),
            _ => Ok(Waiting::Alone),
        };
        let mut legs = ThreadLegs::default();
        let mut watch = (self.plan.legs.len() == 1).then(Stopwatch::new);
        gate.pass();
        if let Some(watch) = &mut watch {
            watch.release();
        }
        let mut failure = prepared.err();
        for leg in 0..self.plan.legs.len() {
            if leg > 0 && failure.is_none() {
                failure = agree(&mut flows, leg).err();
            }
            if failure.is_some() || (leg > 0 && self.signals.aborting()) {
                break;
            }
            failure = self.leg(&mut flows, &mut scratch, &mut waiting).err().filter(|_| !self.signals.aborting());
            legs.time = watch.as_ref().map(Stopwatch::finish);
            let ended: Vec<FlowLeg> = flows.iter_mut().map(|flow| flow.close()).collect();
            legs.push(ended, scratch.rtt.take(), scratch.pace.take());
        }
        if failure.is_none() {
            self.part(&mut flows, &mut scratch.rx);
        } else {
            // The other threads' flows go to the same peer: their further counts would be of no use.
            self.signals.abort();
        }
        (legs, failure)
    }

    fn prepare(&self) -> Result<(), EngineError> {
        if let Some(core) = self.core {
            let mut set = CpuSet::new();
            if core as usize >= CpuSet::MAX_CPU {
                return Err(EngineError::unsupported(say!("core {core}"), "this host does not have it"));
            }
            set.set(core as usize);
            sched_setaffinity(None, &set).map_err(|error| {
                EngineError::Thread(format!("cannot pin a thread to core {core}: {error}; `thru host` lists the cores"))
            })?;
        }
        // Paced sends sleep for some microseconds; the default timer slack of 50 µs would be added to each.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        if self.plan.spec.rate_bps.is_some() {
            // A thread that wakes up should not wait for its core either; if the request fails, its timing errors are
            // larger.
            let _ = sys::request_slices(SLICE_NS);
        }
        Ok(())
    }

    fn leg(
        &self,
        flows: &mut [Box<dyn Flow>],
        scratch: &mut Scratch,
        waiting: &mut io::Result<Waiting>,
    ) -> Result<(), EngineError> {
        let outcome = match waiting {
            Ok(Waiting::Readiness(waiter)) => serve(waiter.as_mut(), flows, scratch, self.signals),
            Ok(Waiting::Completions(waiter)) => serve(waiter.as_mut(), flows, scratch, self.signals),
            Ok(Waiting::Alone) if self.strategy == Strategy::Spin => self.spin(flows, scratch),
            Ok(Waiting::Alone) => flows.iter_mut().try_for_each(|flow| self.block(flow.as_mut(), scratch)),
            Err(error) => Err(io::Error::new(error.kind(), format!("cannot set up epoll or io_uring: {error}"))),
        };
        outcome.map_err(|source| {
            let operation = match source.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    "lost the data connection to"
                }
                _ => "exchange data with",
            };
            EngineError::socket(operation, "the other end", source)
        })
    }

    fn block(&self, flow: &mut dyn Flow, scratch: &mut Scratch) -> io::Result<()> {
        loop {
            match flow.advance(scratch, self.signals)? {
                Turn::Done | Turn::Next(_) => return Ok(()),
                Turn::Sleep(_) | Turn::Again | Turn::Wait(..) if self.signals.aborting() => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Turn::Sleep(until) => self.sleep(until),
                Turn::Again | Turn::Wait(..) => {}
            }
        }
    }

    fn spin(&self, flows: &mut [Box<dyn Flow>], scratch: &mut Scratch) -> io::Result<()> {
        let mut open: Vec<usize> = (0..flows.len()).collect();
        while !open.is_empty() {
            let mut index = 0;
            while index < open.len() {
                match flows[open[index]].advance(scratch, self.signals)? {
                    Turn::Done | Turn::Next(_) => {
                        open.swap_remove(index);
                    }
                    _ => index += 1,
                }
            }
            if self.signals.aborting() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    /// Stays after the last leg until the other ends know that it is over.
    fn part(&self, flows: &mut [Box<dyn Flow>], rx: &mut [u8]) {
        let mut waiting: Vec<&mut Box<dyn Flow>> = flows.iter_mut().collect();
        loop {
            waiting.retain_mut(|flow| !flow.has_parted(rx));
            if waiting.is_empty() || self.signals.aborting() {
                return;
            }
            std::thread::sleep(SETTLE_STEP);
        }
    }

    /// Waits until a time: asleep until shortly before it, then spinning, because the duration of a wake-up varies.
    fn sleep(&self, until_ns: u64) {
        let left = until_ns.saturating_sub(now_ns());
        if left > AWAKE_NS {
            std::thread::sleep(Duration::from_nanos((left - AWAKE_NS).min(STOP_CHECK_NS)));
        }
        if left <= STOP_CHECK_NS {
            while now_ns() < until_ns && !self.signals.stopping() {
                std::hint::spin_loop();
            }
        }
    }
}

/// Agrees with the other end on a leg of every flow: first all announcements, then all answers, one round trip in all.
fn agree(flows: &mut [Box<dyn Flow>], leg: usize) -> Result<(), EngineError> {
    flows.iter_mut().try_for_each(|flow| flow.announce(leg))?;
    settle(flows).map_err(|source| EngineError::socket("agree on a measurement with", "the other end", source))?;
    flows.iter_mut().try_for_each(|flow| flow.open(leg))
}

/// Waits until every flow can be left alone: the next step blocks on one after the other, and the other end may still
/// need something from any of them. Returns at once for transports of the kernel.
fn settle(flows: &mut [Box<dyn Flow>]) -> io::Result<()> {
    let deadline = now_ns() + SETTLE_NS;
    while flows.len() > 1 && now_ns() < deadline {
        let mut settled = true;
        for flow in flows.iter_mut() {
            settled &= flow.settled()?;
        }
        if settled {
            break;
        }
        std::thread::sleep(SETTLE_STEP);
    }
    Ok(())
}

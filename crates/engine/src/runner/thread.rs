//! One measuring thread: its flows, leg after leg, by the way of waiting that was chosen.

use std::io;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use model::Strategy;
use rustix::event::epoll;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::Timespec;

use super::merge::ThreadLegs;
use super::{Flow, FlowLeg, Scratch, Signals};
use crate::pattern::{Interest, Turn};
use crate::{EngineError, TrialPlan, now_ns};

/// What a thread needs besides its flows.
pub(super) struct Job<'a> {
    pub(super) plan: Arc<TrialPlan>,
    pub(super) strategy: Strategy,
    pub(super) signals: &'a Signals,
    pub(super) core: Option<u32>,
}

/// How long before a time a thread that waits for it stops sleeping: twice what an idle virtual core takes to wake up.
const AWAKE_NS: u64 = 150_000;
/// Longest sleep between two looks at the stop flag, ns.
const LOOK_NS: u64 = 20_000_000;
/// How long flows of one thread may take to settle between two legs, and the pause between two looks.
const SETTLE_NS: u64 = 10_000_000_000;
const SETTLE_STEP: Duration = Duration::from_micros(100);

impl Job<'_> {
    /// Runs all legs. Whatever happens, the barrier is passed once, and what was counted comes back.
    pub(super) fn run(&self, mut flows: Vec<Box<dyn Flow>>, barrier: &Barrier) -> (ThreadLegs, Option<EngineError>) {
        let prepared = self.prepare().and_then(|()| agree(&mut flows, 0));
        let mut scratch = Scratch::new(&self.plan);
        let mut waiting = match self.strategy {
            Strategy::Epoll => Waiting::new(&flows).map(Some),
            _ => Ok(None),
        };
        let mut legs = ThreadLegs::default();
        barrier.wait();
        let mut failure = prepared.err();
        for leg in 0..self.plan.legs.len() {
            if leg > 0 && failure.is_none() {
                failure = agree(&mut flows, leg).err();
            }
            if failure.is_some() || (leg > 0 && self.signals.aborting()) {
                break;
            }
            failure = self.leg(&mut flows, &mut scratch, &mut waiting).err().filter(|_| !self.signals.aborting());
            let ended: Vec<FlowLeg> = flows.iter_mut().map(|flow| flow.close()).collect();
            legs.push(ended, scratch.rtt.take(), scratch.pace.take());
        }
        if failure.is_some() {
            // The other threads' flows go to the same peer: nothing they could still count would be of use.
            self.signals.abort();
        }
        (legs, failure)
    }

    fn prepare(&self) -> Result<(), EngineError> {
        if let Some(core) = self.core {
            let mut set = CpuSet::new();
            if core as usize >= CpuSet::MAX_CPU {
                return Err(EngineError::unsupported(format!("core {core}"), "this host does not have it"));
            }
            set.set(core as usize);
            sched_setaffinity(None, &set).map_err(|error| {
                EngineError::Thread(format!(
                    "cannot pin a thread to core {core}: {error}; see `thru host` for the cores there are"
                ))
            })?;
        }
        // Paced sends sleep for some microseconds; the default slack of 50 us would be added to each.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        Ok(())
    }

    fn leg(
        &self,
        flows: &mut [Box<dyn Flow>],
        scratch: &mut Scratch,
        waiting: &mut io::Result<Option<Waiting>>,
    ) -> Result<(), EngineError> {
        let outcome = match (self.strategy, flows) {
            (Strategy::Epoll, flows) => match waiting {
                Ok(Some(waiting)) => self.multiplex(flows, scratch, waiting),
                Ok(None) => Err(io::ErrorKind::Unsupported.into()),
                Err(error) => Err(io::Error::new(error.kind(), format!("no epoll set: {error}"))),
            },
            (Strategy::Spin, flows) => self.spin(flows, scratch),
            (_, flows) => flows.iter_mut().try_for_each(|flow| self.block(flow.as_mut(), scratch)),
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
                Turn::Sleep(until) => self.sleep(until),
                Turn::Again | Turn::Wait(..) if self.signals.aborting() => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
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

    /// Serves many flows: those that can work do, the others wait in the epoll set or for their time.
    fn multiplex(&self, flows: &mut [Box<dyn Flow>], scratch: &mut Scratch, waiting: &mut Waiting) -> io::Result<()> {
        let (mut ready, mut again) = waiting.lists(flows.len());
        let mut open = flows.len();
        while open > 0 {
            for index in ready.drain(..) {
                match flows[index].advance(scratch, self.signals)? {
                    Turn::Done | Turn::Next(_) => {
                        waiting.forget(&*flows[index], index)?;
                        open -= 1;
                    }
                    Turn::Again => again.push(index),
                    Turn::Wait(interest, until) => waiting.watch(&*flows[index], index, interest, until)?,
                    Turn::Sleep(until) => waiting.sleep(index, until),
                }
            }
            if self.signals.aborting() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if open > 0 {
                waiting.wait(again.is_empty(), &mut again)?;
            }
            std::mem::swap(&mut ready, &mut again);
        }
        waiting.keep(ready, again);
        Ok(())
    }

    /// Waits for a time: asleep until shortly before it, then awake, for a wake-up takes as long as it likes.
    fn sleep(&self, until_ns: u64) {
        let left = until_ns.saturating_sub(now_ns());
        if left > AWAKE_NS {
            std::thread::sleep(Duration::from_nanos((left - AWAKE_NS).min(LOOK_NS)));
        }
        if left <= LOOK_NS {
            while now_ns() < until_ns && !self.signals.stopping() {
                std::hint::spin_loop();
            }
        }
    }
}

/// Agrees with the other end on a leg of every flow: first all announcements, then all answers, one round trip in all.
fn agree(flows: &mut [Box<dyn Flow>], leg: usize) -> Result<(), EngineError> {
    flows.iter_mut().try_for_each(|flow| flow.announce(leg))?;
    settle(flows).map_err(|source| EngineError::socket("agree on a leg with", "the other end", source))?;
    flows.iter_mut().try_for_each(|flow| flow.open(leg))
}

/// Waits until every flow can be left alone: the next step blocks on one after the other, and the other end may still wait for
/// something of any of them. Returns at once for what the kernel takes care of.
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

/// An epoll set and the flows' deadlines.
struct Waiting {
    set: std::os::fd::OwnedFd,
    /// What each flow is registered for, if it is.
    registered: Vec<Option<Interest>>,
    /// Flow and time of those that wait for a time (as well).
    timers: Vec<(usize, u64)>,
    /// Flows that wait for their channel; an event of another one is ignored.
    waits: Vec<bool>,
    events: Vec<epoll::Event>,
    /// Memory for the lists of flows that can go on, kept from leg to leg.
    spare: (Vec<usize>, Vec<usize>),
}

impl Waiting {
    fn new(flows: &[Box<dyn Flow>]) -> io::Result<Self> {
        Ok(Self {
            set: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            registered: vec![None; flows.len()],
            timers: Vec::with_capacity(flows.len()),
            waits: vec![false; flows.len()],
            events: Vec::with_capacity(256),
            spare: (Vec::with_capacity(flows.len()), Vec::with_capacity(flows.len())),
        })
    }

    /// Two lists, the first with all flows, for they all begin.
    fn lists(&mut self, flows: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut ready, mut again) = std::mem::take(&mut self.spare);
        ready.clear();
        ready.extend(0..flows);
        again.clear();
        (ready, again)
    }

    /// Takes the lists back for the next leg.
    fn keep(&mut self, ready: Vec<usize>, again: Vec<usize>) {
        self.spare = (ready, again);
        self.timers.clear();
    }

    fn watch(&mut self, flow: &dyn Flow, index: usize, interest: Interest, until: u64) -> io::Result<()> {
        let Some(fd) = flow.poll_fd() else { return Err(io::ErrorKind::Unsupported.into()) };
        let flags = match interest {
            Interest::Read => epoll::EventFlags::IN,
            Interest::Write => epoll::EventFlags::OUT,
            Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        };
        let data = epoll::EventData::new_u64(index as u64);
        match self.registered[index] {
            None => epoll::add(&self.set, fd, data, flags)?,
            Some(before) if before != interest => epoll::modify(&self.set, fd, data, flags)?,
            Some(_) => {}
        }
        self.registered[index] = Some(interest);
        self.waits[index] = true;
        if until != u64::MAX {
            self.timers.push((index, until));
        }
        Ok(())
    }

    fn sleep(&mut self, index: usize, until: u64) {
        self.timers.push((index, until));
    }

    fn forget(&mut self, flow: &dyn Flow, index: usize) -> io::Result<()> {
        if self.registered[index].take().is_some()
            && let Some(fd) = flow.poll_fd()
        {
            epoll::delete(&self.set, fd)?;
        }
        self.waits[index] = false;
        Ok(())
    }

    /// Adds the flows that can go on to `ready`; sleeps for them where `may_sleep`.
    fn wait(&mut self, may_sleep: bool, ready: &mut Vec<usize>) -> io::Result<()> {
        let now = now_ns();
        let next = self.timers.iter().map(|(_, until)| *until).min().unwrap_or(u64::MAX);
        let pause = if may_sleep { next.saturating_sub(now + AWAKE_NS).min(LOOK_NS) } else { 0 };
        let limit = Timespec { tv_sec: 0, tv_nsec: pause as i64 };
        self.events.clear();
        match epoll::wait(&self.set, rustix::buffer::spare_capacity(&mut self.events), Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            let index = event.data.u64() as usize;
            if std::mem::take(&mut self.waits[index]) {
                ready.push(index);
                self.timers.retain(|(timed, _)| *timed != index);
            }
        }
        let now = now_ns();
        let waits = &mut self.waits;
        self.timers.retain(|(index, until)| {
            let due = *until <= now;
            if due {
                waits[*index] = false;
                ready.push(*index);
            }
            !due
        });
        Ok(())
    }
}

//! A thread that serves many flows by readiness: those that can work do, the others wait in an epoll set or for their time.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::time::Timespec;

use super::thread::{AWAKE_NS, LOOK_NS};
use super::timers::Timers;
use super::{Flow, Scratch, Signals};
use crate::now_ns;
use crate::pattern::{Interest, Turn};

/// Events that one call brings at most: enough that the call is nothing beside the work that they mean.
const EVENTS: usize = 512;

/// An epoll set and the flows' deadlines.
pub(super) struct Readiness {
    set: OwnedFd,
    /// What each flow is registered for, if it is.
    registered: Vec<Option<Interest>>,
    timers: Timers,
    /// Flows that wait for their channel; an event of another one is ignored.
    waits: Vec<bool>,
    events: Vec<epoll::Event>,
    /// Flows that can go on, and those that can in the next round; memory that is kept from leg to leg.
    ready: Vec<usize>,
    again: Vec<usize>,
}

impl Readiness {
    pub(super) fn new(flows: usize) -> io::Result<Self> {
        Ok(Self {
            set: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            registered: vec![None; flows],
            timers: Timers::new(flows),
            waits: vec![false; flows],
            events: Vec::with_capacity(EVENTS),
            ready: Vec::with_capacity(flows),
            again: Vec::with_capacity(flows),
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
        self.ready.extend(0..flows.len());
        while open > 0 {
            let mut ready = std::mem::take(&mut self.ready);
            for index in ready.drain(..) {
                match flows[index].advance(scratch, signals)? {
                    Turn::Done | Turn::Next(_) => {
                        self.forget(&*flows[index], index)?;
                        open -= 1;
                    }
                    Turn::Again => self.again.push(index),
                    Turn::Wait(interest, until) => self.watch(&*flows[index], index, interest, until)?,
                    Turn::Sleep(until) => self.timers.set(index, until),
                }
            }
            self.ready = ready;
            if signals.aborting() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            std::mem::swap(&mut self.ready, &mut self.again);
            if open > 0 {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn watch(&mut self, flow: &dyn Flow, index: usize, interest: Interest, until: u64) -> io::Result<()> {
        if self.registered[index] != Some(interest) {
            let Some(fd) = flow.poll_fd() else { return Err(io::ErrorKind::Unsupported.into()) };
            let flags = match interest {
                Interest::Read => epoll::EventFlags::IN,
                Interest::Write => epoll::EventFlags::OUT,
                Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            };
            let data = epoll::EventData::new_u64(index as u64);
            match self.registered[index] {
                None => epoll::add(&self.set, fd, data, flags)?,
                Some(_) => epoll::modify(&self.set, fd, data, flags)?,
            }
            self.registered[index] = Some(interest);
        }
        self.waits[index] = true;
        if until != u64::MAX {
            self.timers.set(index, until);
        }
        Ok(())
    }

    fn forget(&mut self, flow: &dyn Flow, index: usize) -> io::Result<()> {
        if self.registered[index].take().is_some()
            && let Some(fd) = flow.poll_fd()
        {
            epoll::delete(&self.set, fd)?;
        }
        self.waits[index] = false;
        self.timers.clear(index);
        Ok(())
    }

    /// Adds the flows that can go on to those that are ready; sleeps for them where none is.
    fn wait(&mut self) -> io::Result<()> {
        let pause = pause(&self.timers, !self.ready.is_empty());
        let limit = Timespec { tv_sec: 0, tv_nsec: pause as i64 };
        self.events.clear();
        match epoll::wait(&self.set, rustix::buffer::spare_capacity(&mut self.events), Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            let index = event.data.u64() as usize;
            if std::mem::take(&mut self.waits[index]) {
                self.ready.push(index);
                self.timers.clear(index);
            }
        }
        if self.timers.first().is_some() {
            let now = now_ns();
            while let Some(index) = self.timers.due(now) {
                self.waits[index] = false;
                self.ready.push(index);
            }
        }
        Ok(())
    }
}

/// How long a thread may sleep, ns: not at all while it is `busy`, else until shortly before the first deadline, and never so
/// long that it does not see the stop flag.
pub(super) fn pause(timers: &Timers, busy: bool) -> u64 {
    match timers.first() {
        _ if busy => 0,
        None => LOOK_NS,
        Some((_, until)) => until.saturating_sub(now_ns() + AWAKE_NS).min(LOOK_NS),
    }
}

//! A thread that serves many flows by readiness: those that can work do, the others wait in an epoll set or for their
//! time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;

use super::rounds::{Rounds, Waits};
use super::sys;
use crate::core::{Interest, now_ns};
use crate::transport::Flow;

/// Maximum events per call: enough that the call costs little compared with the work that they cause.
const EVENTS: usize = 512;

/// An epoll set and the flows' deadlines.
pub(super) struct Readiness {
    set: OwnedFd,
    /// The readiness that each flow is registered for, if any.
    registered: Vec<Option<Interest>>,
    /// Flows that wait for their channel; events of other flows are ignored.
    waits: Vec<bool>,
    events: Vec<epoll::Event>,
    rounds: Rounds,
}

impl Readiness {
    pub(super) fn new(flows: usize) -> io::Result<Self> {
        Ok(Self {
            set: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            registered: vec![None; flows],
            waits: vec![false; flows],
            events: Vec::with_capacity(EVENTS),
            rounds: Rounds::new(flows),
        })
    }
}

impl Waits for Readiness {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, flows: usize) {
        self.rounds.ready.extend(0..flows);
    }

    fn watch(&mut self, flow: &mut dyn Flow, index: usize, interest: Interest, until: u64) -> io::Result<()> {
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
            self.rounds.timers.set(index, until);
        }
        Ok(())
    }

    fn forget(&mut self, flow: &mut dyn Flow, index: usize) -> io::Result<()> {
        if self.registered[index].take().is_some()
            && let Some(fd) = flow.poll_fd()
        {
            epoll::delete(&self.set, fd)?;
        }
        self.waits[index] = false;
        self.rounds.timers.clear(index);
        Ok(())
    }

    fn wait(&mut self, _: &mut [Box<dyn Flow>]) -> io::Result<()> {
        let Rounds { ready, again, .. } = &mut self.rounds;
        std::mem::swap(ready, again);
        let pause = self.rounds.pause(!self.rounds.ready.is_empty());
        self.events.clear();
        sys::epoll::wait(self.set.as_fd(), &mut self.events, Duration::from_nanos(pause))?;
        for event in &self.events {
            let index = event.data.u64() as usize;
            if std::mem::take(&mut self.waits[index]) {
                self.rounds.ready.push(index);
                self.rounds.timers.clear(index);
            }
        }
        if self.rounds.timers.first().is_some() {
            let now = now_ns();
            while let Some(index) = self.rounds.timers.due(now) {
                self.waits[index] = false;
                self.rounds.ready.push(index);
            }
        }
        Ok(())
    }
}

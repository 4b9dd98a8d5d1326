//! When a requesting end reads the clock, and which round trips it times together.

use super::super::machine::Env;
use crate::core::{clock_cost_ns, now_ns};

/// A single round trip shorter than this many clock reads is not timed alone (2 % of it would be the clock's).
const CLOCK_READS: f64 = 50.0;
/// Round trips after which it decides whether to batch. Each is timed individually.
const TRIAL_RUN: u64 = 64;

/// When to read the clock, and what to record.
pub(super) struct Stopwatch {
    pub(super) batch: u64,
    in_batch: u64,
    pub(super) started_ns: u64,
    /// When the trial run began; `None` once it is over.
    trial_ns: Option<u64>,
    begun_ns: u64,
    /// Round trips at the start that are not timed.
    opening: u64,
}

impl Stopwatch {
    /// The first `opening` round trips are not timed.
    pub(super) fn new(opening: u64) -> Self {
        Self { batch: 1, in_batch: 0, started_ns: 0, trial_ns: Some(0), begun_ns: 0, opening }
    }

    /// Times each round trip by itself.
    pub(super) fn singly(mut self, singly: bool) -> Self {
        self.trial_ns = self.trial_ns.filter(|_| !singly);
        self
    }

    pub(super) fn start(&mut self, now_ns: u64) {
        (self.started_ns, self.begun_ns) = (now_ns, now_ns);
        self.trial_ns = self.trial_ns.map(|_| now_ns);
    }

    /// The leg is over. If it was too short for the trial run and its round trips were too short to be timed
    /// individually, they are one batch.
    pub(super) fn end(&mut self, env: &mut Env<'_>, now_ns: u64, done: u64) {
        let timed = done.saturating_sub(self.opening);
        if env.rtt.count() == 0 && timed > 0 {
            let mean = (now_ns - self.begun_ns) as f64 / timed as f64;
            env.rtt.record_n(mean.round() as u64, timed);
            self.batch = timed;
        }
    }

    /// A round trip ended, the `done`th. Only one that counts is recorded; if some do not, each must be timed
    /// [by itself](Self::singly).
    #[inline]
    pub(super) fn lap(&mut self, env: &mut Env<'_>, done: u64, counts: bool) {
        if done <= self.opening {
            self.start(now_ns());
            return;
        }
        let timed = done - self.opening;
        self.in_batch += 1;
        if self.in_batch < self.batch {
            return;
        }
        let now = now_ns();
        let mean = (now - self.started_ns) as f64 / self.in_batch as f64;
        // A round trip of the trial run that is too short to be timed individually is left out; a batch covers it.
        if counts && (self.trial_ns.is_none() || mean >= CLOCK_READS * clock_cost_ns()) {
            env.rtt.record_n(mean.round() as u64, self.in_batch);
        }
        if let Some(begun) = self.trial_ns
            && timed >= TRIAL_RUN
        {
            let mean = (now - begun) as f64 / timed as f64;
            self.batch = (CLOCK_READS * clock_cost_ns() / mean.max(0.1)).ceil().clamp(1.0, 1e6) as u64;
            self.trial_ns = None;
        }
        self.started_ns = now;
        self.in_batch = 0;
    }
}

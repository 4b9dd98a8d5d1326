//! When the next block or request is due, where a rate is asked for.

use crate::now_ns;
use crate::runner::{Counters, RttRecorder};

/// A rate, as one flow keeps it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// Time between the starts of two blocks, ns.
    pub(crate) gap_ns: f64,
    /// How much of the time that a delay cost is made up for by sending faster afterwards, ns.
    pub(crate) catch_up_ns: f64,
    /// Time between the starts of two blocks at least, while that is made up for, ns; 0 for all that is due at once.
    pub(crate) min_gap_ns: f64,
}

/// Spaces blocks evenly and keeps account of how evenly they went out.
pub(super) struct Pacer {
    pace: Option<Pace>,
    next_ns: f64,
    /// When the block before went, how late that was, and when the next one may go at the earliest.
    sent_ns: f64,
    late_ns: f64,
    soonest_ns: f64,
}

/// A call of several datagrams carries at most what is due in this time, so that bursts stay short.
const CALL_NS: f64 = 50_000.0;

impl Pacer {
    pub(super) fn new(pace: Option<Pace>) -> Self {
        Self { pace, next_ns: f64::NAN, sent_ns: 0.0, late_ns: 0.0, soonest_ns: 0.0 }
    }

    /// A pacer that forgives no delay: what was due while nothing could be sent is still due, from its own time on.
    pub(super) fn open_loop(pace: Option<Pace>) -> Self {
        Self::new(pace.map(|pace| Pace { catch_up_ns: f64::INFINITY, min_gap_ns: 0.0, ..pace }))
    }

    /// When to send the next block, if not now. If now, `errors` is told by how much the time since the block before
    /// differs from what was asked.
    #[inline]
    pub(super) fn hold(&mut self, errors: &mut RttRecorder) -> Option<u64> {
        self.pace.and_then(|pace| self.hold_at(pace, now_ns(), errors))
    }

    #[inline]
    fn hold_at(&mut self, pace: Pace, now_ns: u64, errors: &mut RttRecorder) -> Option<u64> {
        // What is not made up for moves the schedule; the error is against the schedule as the block before left it.
        let scheduled_ns = self.next_ns;
        match self.due(pace, now_ns as f64) {
            Err(until) => Some(until),
            Ok(late) => {
                if !scheduled_ns.is_nan() {
                    errors.record((now_ns as f64 - scheduled_ns - self.late_ns).abs() as u64);
                }
                self.late_ns = late;
                None
            }
        }
    }

    /// The same for a reader, whose evenness is the sender's and the path's as much as its own.
    #[inline]
    pub(super) fn hold_reads(&mut self) -> Option<u64> {
        self.pace.and_then(|pace| self.due(pace, now_ns() as f64).err())
    }

    /// By how much the next block is late at `now`, ns, by the schedule with what is not made up for, or when it is due.
    #[inline]
    fn due(&mut self, pace: Pace, now: f64) -> Result<f64, u64> {
        // The first block goes at once and starts the clock.
        let first = self.next_ns.is_nan();
        self.next_ns = if first { now } else { self.next_ns.max(now - pace.catch_up_ns) };
        let due = self.next_ns.max(self.soonest_ns);
        if due > now {
            return Err(due as u64);
        }
        self.sent_ns = now;
        Ok(now - self.next_ns)
    }

    /// When the block that [`hold`](Self::hold) let pass was due, ns.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.pace.map(|_| self.next_ns as u64)
    }

    /// Nothing more is sent: says when the last block, of which `bytes` went, was begun.
    pub(super) fn end(&self, counters: &Counters, bytes: usize) {
        if self.pace.is_some() && self.sent_ns > 0.0 {
            counters.begun_last(self.sent_ns as u64, bytes);
        }
    }

    /// How many blocks to send in one go, of `most` that a call can take: where they are paced, what is due in a call's time.
    pub(super) fn burst(&self, most: usize) -> usize {
        self.pace.map_or(most, |pace| ((CALL_NS / pace.gap_ns) as usize).clamp(1, most.max(1)))
    }

    /// `share` nominal blocks went out.
    #[inline]
    pub(super) fn sent(&mut self, share: f64) {
        if let Some(pace) = self.pace {
            self.next_ns += pace.gap_ns * share;
            self.soonest_ns = self.sent_ns + pace.min_gap_ns * share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send_all_due(pacer: &mut Pacer, errors: &mut RttRecorder) -> u32 {
        let mut sent = 0;
        while pacer.hold(errors).is_none() {
            pacer.sent(1.0);
            sent += 1;
        }
        sent
    }

    #[test]
    fn after_a_stall_no_more_than_requested_is_made_up_for() {
        // A block an hour, of which three may be made up for: whatever the machine does meanwhile, nothing more is due.
        let hour = 3.6e12;
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::new(Some(Pace { gap_ns: hour, catch_up_ns: 3.0 * hour, min_gap_ns: 0.0 }));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * hour;
        assert_eq!(send_all_due(&mut pacer, &mut errors), 4);
    }

    #[test]
    fn what_is_made_up_for_may_be_spread() {
        // The same, at most a block in half an hour: one goes at once, the next is due half an hour after it, late as it is.
        let hour = 3.6e12;
        let mut errors = RttRecorder::new();
        let pace = Pace { gap_ns: hour, catch_up_ns: 3.0 * hour, min_gap_ns: 0.5 * hour };
        let mut pacer = Pacer::new(Some(pace));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        (pacer.next_ns, pacer.soonest_ns) = (pacer.next_ns - 100.0 * hour, 0.0);
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        let until = pacer.hold(&mut errors).unwrap() as f64;
        assert_eq!(until, (pacer.sent_ns + 0.5 * hour) as u64 as f64);
        assert!(pacer.next_ns < until);

        // An open loop owes everything at its own time.
        let mut pacer = Pacer::open_loop(Some(pace));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * hour;
        assert_eq!(send_all_due(&mut pacer, &mut errors), 100);
    }

    #[test]
    fn an_open_loop_owes_everything() {
        let hour = 3.6e12;
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::open_loop(Some(Pace { gap_ns: hour, catch_up_ns: 0.0, min_gap_ns: 0.0 }));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * hour;
        let due = pacer.due_ns();
        assert_eq!(send_all_due(&mut pacer, &mut errors), 100);
        assert!(pacer.due_ns() > due);
    }

    /// Sends in virtual time from `from_ns`, a look each `step_ns`, until `count` blocks went; when that was.
    fn send(pacer: &mut Pacer, errors: &mut RttRecorder, from_ns: u64, step_ns: u64, count: u32) -> u64 {
        let pace = pacer.pace.unwrap();
        let mut now = from_ns;
        for _ in 0..count {
            while pacer.hold_at(pace, now, errors).is_some() {
                now += step_ns;
            }
            pacer.sent(1.0);
        }
        now
    }

    #[test]
    fn a_stall_is_recorded_in_full_though_little_of_it_is_made_up_for() {
        let ms = 1_000_000;
        let pace = Pace { gap_ns: 100_000.0, catch_up_ns: 1e6, min_gap_ns: 80_000.0 };
        let (mut pacer, mut errors) = (Pacer::new(Some(pace)), RttRecorder::new());
        let stopped = send(&mut pacer, &mut errors, 1_000 * ms, 1_000, 100);
        let undisturbed = errors.take();
        assert_eq!((undisturbed.count(), undisturbed.max()), (99, Some(1)), "evenly as asked");
        send(&mut pacer, &mut errors, stopped + 10 * ms, 1_000, 1_000);
        let shaken = errors.take();
        let worst = shaken.max().unwrap();
        assert!((9 * ms..=10 * ms).contains(&worst), "a stall of 10 ms, less the gap that was due: {worst}");
        // What is made up for goes a fifth sooner, block for block; after that the beat is as it was.
        assert!(shaken.quantile(0.99).unwrap() <= 20_100 && shaken.quantile(0.5) == Some(1), "{shaken:?}");
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::new(None);
        assert_eq!((pacer.hold(&mut errors), pacer.burst(64), errors.count()), (None, 64, 0));
        let slow = Pacer::new(Some(Pace { gap_ns: 1e6, catch_up_ns: 0.0, min_gap_ns: 0.0 }));
        let fast = Pacer::new(Some(Pace { gap_ns: 2_500.0, catch_up_ns: 0.0, min_gap_ns: 0.0 }));
        assert_eq!((slow.burst(64), fast.burst(64)), (1, 20));
    }
}

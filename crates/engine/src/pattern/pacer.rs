//! When the next block or request is due at a requested rate.

use crate::core::{Counters, RttRecorder, now_ns};

/// A rate, as one flow keeps it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// Time between the starts of two blocks, ns.
    pub(crate) gap_ns: f64,
    /// How much of a delay's backlog may be made up by sending faster afterwards, ns.
    pub(crate) catch_up_ns: f64,
    /// Minimum time between the starts of two blocks while a backlog is made up, ns; 0 sends all that is due at once.
    pub(crate) min_gap_ns: f64,
}

/// Spaces blocks evenly and records how evenly they were sent.
pub(super) struct Pacer {
    pace: Option<Pace>,
    next_ns: f64,
    /// When the previous block was sent, how late that was, and when the next one may be sent at the earliest.
    sent_ns: f64,
    late_ns: f64,
    soonest_ns: f64,
}

/// A call of several datagrams carries at most what is due in this time, to keep bursts short.
const CALL_NS: f64 = 50_000.0;

impl Pacer {
    pub(super) fn new(pace: Option<Pace>) -> Self {
        Self { pace, next_ns: f64::NAN, sent_ns: 0.0, late_ns: 0.0, soonest_ns: 0.0 }
    }

    /// A pacer that forgives no delay: what was due while nothing could be sent stays due at its own time.
    pub(super) fn open_loop(pace: Option<Pace>) -> Self {
        Self::new(pace.map(|pace| Pace { catch_up_ns: f64::INFINITY, min_gap_ns: 0.0, ..pace }))
    }

    /// When to send the next block, if not now. If now, records in `errors` how much the time since the previous block
    /// differs from the requested one.
    #[inline]
    pub(super) fn hold(&mut self, errors: &mut RttRecorder) -> Option<u64> {
        self.pace.and_then(|pace| self.hold_at(pace, now_ns(), errors))
    }

    #[inline]
    fn hold_at(&mut self, pace: Pace, now_ns: u64, errors: &mut RttRecorder) -> Option<u64> {
        // A delay that is not made up shifts the schedule; the error is relative to the schedule as the previous block
        // left it.
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

    /// The same for a reader, whose evenness depends on the sender and the path as well.
    #[inline]
    pub(super) fn hold_reads(&mut self) -> Option<u64> {
        self.pace.and_then(|pace| self.due(pace, now_ns() as f64).err())
    }

    /// How late the next block is at `now`, ns, by the shifted schedule, or when it is due.
    #[inline]
    fn due(&mut self, pace: Pace, now: f64) -> Result<f64, u64> {
        // The first block goes at once and starts the schedule.
        let first = self.next_ns.is_nan();
        self.next_ns = if first { now } else { self.next_ns.max(now - pace.catch_up_ns) };
        let due = self.next_ns.max(self.soonest_ns);
        if due > now {
            return Err(due as u64);
        }
        self.sent_ns = now;
        Ok(now - self.next_ns)
    }

    /// When the block that [`hold`](Self::hold) released was due, ns.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.pace.map(|_| self.next_ns as u64)
    }

    /// Nothing more is sent: records when the last block was begun, of which `bytes` were sent.
    pub(super) fn end(&self, counters: &Counters, bytes: usize) {
        if self.pace.is_some() && self.sent_ns > 0.0 {
            counters.begun_last(self.sent_ns as u64, bytes);
        }
    }

    /// How many blocks to send at once, up to the `most` of a call: for paced blocks, what is due within a call's
    /// time.
    pub(super) fn burst(&self, most: usize) -> usize {
        self.pace.map_or(most, |pace| ((CALL_NS / pace.gap_ns) as usize).clamp(1, most.max(1)))
    }

    /// `share` nominal blocks were sent.
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
        // A block per hour, three of which may be made up: however late the machine is, no more is due.
        let hour = 3.6e12;
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::new(Some(Pace { gap_ns: hour, catch_up_ns: 3.0 * hour, min_gap_ns: 0.0 }));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * hour;
        assert_eq!(send_all_due(&mut pacer, &mut errors), 4);
    }

    #[test]
    fn a_backlog_may_be_spread() {
        // The same, at most a block per half hour: one is sent at once, the next is due half an hour later.
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

        // An open loop keeps every block due at its own time.
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

    /// Sends in virtual time from `from_ns`, checking every `step_ns`, until `count` blocks are sent; returns that
    /// time.
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
        assert_eq!((undisturbed.count(), undisturbed.max()), (99, Some(1)), "evenly as requested");
        send(&mut pacer, &mut errors, stopped + 10 * ms, 1_000, 1_000);
        let shaken = errors.take();
        let worst = shaken.max().unwrap();
        assert!((9 * ms..=10 * ms).contains(&worst), "a stall of 10 ms, less the gap that was due: {worst}");
        // The backlog is sent a fifth sooner, block by block; after that the schedule is as before.
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

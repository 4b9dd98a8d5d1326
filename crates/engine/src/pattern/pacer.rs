//! When the next block or request is due at a requested rate.

use crate::core::{Counters, RttRecorder, now_ns, voluntary_switches};

/// A rate, as one flow keeps it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// Time between the starts of two blocks, ns.
    pub(crate) gap_ns: f64,
    /// How much of a delay's backlog may be made up by sending faster afterwards, ns. More is given up.
    pub(crate) catch_up_ns: f64,
    /// The same for a delay in which the transport took nothing: what waits for a slow path is not sent faster than it
    /// could be taken.
    pub(crate) blocked_ns: f64,
    /// Over about which time a backlog is made up, ns: a sender that is behind by this much sends twice as fast. 0 sends
    /// all that is due at once.
    pub(crate) spread_ns: f64,
    /// The blocks that are due in this time go out at once, at its start, ns. 0 spaces them evenly.
    pub(crate) burst_ns: f64,
}

/// A backlog is made up at no more than this many times the rate, unless it goes out at once.
const FASTEST: f64 = 11.0;

impl Pace {
    /// Minimum time for what is due in `due_ns`, for a sender that is `late_ns` behind, ns.
    fn time_if_late(&self, due_ns: f64, late_ns: f64) -> f64 {
        if self.spread_ns > 0.0 { due_ns / (1.0 + late_ns / self.spread_ns).min(FASTEST) } else { 0.0 }
    }
}

/// Spaces blocks evenly and records how evenly they were sent.
pub(super) struct Pacer {
    pace: Option<Pace>,
    next_ns: f64,
    /// When the previous block was sent, how late that was, and when the next one may be sent at the earliest.
    sent_ns: f64,
    late_ns: f64,
    soonest_ns: f64,
    /// What of the current burst has been sent, ns.
    begun_ns: f64,
    /// Whether the next block was found to be not due yet: if it is late after that, the thread did not run in time.
    waited: bool,
    /// How often the thread had slept when the previous block was begun: without a wait of its own, a call made it sleep.
    slept: u64,
    slept_so_far: fn() -> u64,
    /// What was given up and is not counted yet, ns, and whether because the transport took nothing.
    given_up: (f64, bool),
}

/// A call of several datagrams carries at most what is due in this time, to keep bursts short.
const CALL_NS: f64 = 50_000.0;

impl Pacer {
    pub(super) fn new(pace: Option<Pace>) -> Self {
        Self {
            pace,
            next_ns: f64::NAN,
            sent_ns: 0.0,
            late_ns: 0.0,
            soonest_ns: 0.0,
            begun_ns: 0.0,
            waited: false,
            slept: 0,
            slept_so_far: voluntary_switches,
            given_up: (0.0, false),
        }
    }

    /// A pacer that forgives no delay: what was due while nothing could be sent stays due at its own time.
    pub(super) fn open_loop(pace: Option<Pace>) -> Self {
        Self::new(pace.map(|pace| Pace {
            catch_up_ns: f64::INFINITY,
            blocked_ns: f64::INFINITY,
            spread_ns: 0.0,
            burst_ns: 0.0,
            ..pace
        }))
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
        if first {
            self.next_ns = now;
        } else if now - self.next_ns > pace.blocked_ns.min(pace.catch_up_ns) {
            // Late without having waited: a call took so long, unless the thread lost its core in it.
            let blocked = !self.waited && (self.slept_so_far)() > self.slept;
            let most = if blocked { pace.blocked_ns } else { pace.catch_up_ns };
            let excess = now - self.next_ns - most;
            if excess > 0.0 {
                self.given_up = (self.given_up.0 + excess, blocked);
                self.next_ns += excess;
            }
        }
        let due = self.next_ns.max(self.soonest_ns);
        if due > now {
            self.waited = true;
            return Err(due as u64);
        }
        self.sent_ns = now;
        Ok(now - self.next_ns)
    }

    /// The block that [`hold`](Self::hold) released is about to be sent.
    #[inline]
    pub(super) fn begin(&mut self, counters: &Counters) {
        if self.pace.is_some() {
            counters.begin_block(self.sent_ns as u64);
            if self.given_up.0 > 0.0 {
                counters.give_up(self.given_up.0 as u64, self.given_up.1);
                self.given_up.0 = 0.0;
            }
            self.waited = false;
            self.slept = (self.slept_so_far)();
        }
    }

    /// When the block that [`hold`](Self::hold) released was due, ns.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.pace.map(|_| self.next_ns as u64)
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
            self.begun_ns += pace.gap_ns * share;
            // The gaps of a burst add up to it but for their rounding.
            if self.begun_ns + 0.5 >= pace.burst_ns {
                self.next_ns += self.begun_ns;
                self.soonest_ns = self.sent_ns + pace.time_if_late(self.begun_ns, self.late_ns);
                self.begun_ns = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block per hour: however late the machine is, no more is due than a test says.
    const HOUR: f64 = 3.6e12;
    const MS: u64 = 1_000_000;

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
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::new(Some(Pace {
            gap_ns: HOUR,
            catch_up_ns: 3.0 * HOUR,
            blocked_ns: 3.0 * HOUR,
            spread_ns: 0.0,
            burst_ns: 0.0,
        }));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * HOUR;
        assert_eq!(send_all_due(&mut pacer, &mut errors), 4);
    }

    #[test]
    fn a_backlog_may_be_spread() {
        // The same; three hours behind it sends twice as fast.
        let mut errors = RttRecorder::new();
        let pace = Pace {
            gap_ns: HOUR,
            catch_up_ns: 3.0 * HOUR,
            blocked_ns: 3.0 * HOUR,
            spread_ns: 3.0 * HOUR,
            burst_ns: 0.0,
        };
        let mut pacer = Pacer::new(Some(pace));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        (pacer.next_ns, pacer.soonest_ns) = (pacer.next_ns - 100.0 * HOUR, 0.0);
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        let until = pacer.hold(&mut errors).unwrap() as f64;
        assert_eq!(until, (pacer.sent_ns + 0.5 * HOUR) as u64 as f64);
        assert!(pacer.next_ns < until);

        // An open loop keeps every block due at its own time.
        let mut pacer = Pacer::open_loop(Some(pace));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * HOUR;
        assert_eq!(send_all_due(&mut pacer, &mut errors), 100);
    }

    #[test]
    fn an_open_loop_owes_everything() {
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::open_loop(Some(Pace {
            gap_ns: HOUR,
            catch_up_ns: 0.0,
            blocked_ns: 0.0,
            spread_ns: 0.0,
            burst_ns: 0.0,
        }));
        assert_eq!(send_all_due(&mut pacer, &mut errors), 1);
        pacer.next_ns -= 100.0 * HOUR;
        let due = pacer.due_ns();
        assert_eq!(send_all_due(&mut pacer, &mut errors), 100);
        assert!(pacer.due_ns() > due);
    }

    /// 100 µs between blocks, and what is made up as by default.
    const PACE: Pace = Pace { gap_ns: 100_000.0, catch_up_ns: 100e6, blocked_ns: 2e6, spread_ns: 10e6, burst_ns: 0.0 };

    /// A sender in virtual time.
    struct Sender {
        pacer: Pacer,
        errors: RttRecorder,
        counters: Counters,
        now_ns: u64,
    }

    impl Sender {
        fn new(pace: Pace) -> Self {
            let (pacer, errors) = (Pacer::new(Some(pace)), RttRecorder::new());
            Self { pacer, errors, counters: Counters::default(), now_ns: 1_000 * MS }
        }

        /// Runs for `ns`, looking every microsecond; returns how many blocks it sent.
        fn run(&mut self, ns: u64) -> u64 {
            let (pace, until) = (self.pacer.pace.unwrap(), self.now_ns + ns);
            let mut sent = 0;
            while self.now_ns < until {
                if self.pacer.hold_at(pace, self.now_ns, &mut self.errors).is_none() {
                    self.pacer.begin(&self.counters);
                    self.pacer.sent(1.0);
                    sent += 1;
                } else {
                    self.now_ns += 1_000;
                }
            }
            sent
        }

        fn given_up_ms(&self) -> (u64, u64) {
            let (asleep, blocked) = self.counters.snapshot().given_up_ns;
            (asleep / MS, blocked / MS)
        }
    }

    #[test]
    fn a_stall_is_recorded_in_full_and_made_up_for_gently() {
        let mut sender = Sender::new(PACE);
        assert_eq!(sender.run(10 * MS), 100);
        let undisturbed = sender.errors.take();
        assert_eq!((undisturbed.count(), undisturbed.max()), (99, Some(1)), "evenly as requested");
        sender.now_ns += 10 * MS;
        let sent = sender.run(90 * MS);
        assert!((998..=1000).contains(&sent), "those of the stall and those of the time since: {sent}");
        let shaken = sender.errors.take();
        let worst = shaken.max().unwrap();
        assert!((9 * MS..=10 * MS + 10_000).contains(&worst), "a stall of 10 ms, less the gap that was due: {worst}");
        // Ten milliseconds behind it sends twice as fast; ever less as it makes up.
        assert!(shaken.quantile(0.99).unwrap() <= 52_000 && shaken.quantile(0.5).unwrap() < 5_000, "{shaken:?}");
        assert_eq!(sender.given_up_ms(), (0, 0));
    }

    #[test]
    fn what_is_given_up_has_its_cause() {
        // The thread did not run: it had found that nothing was due.
        let mut sender = Sender::new(PACE);
        sender.run(10 * MS);
        sender.now_ns += 350 * MS;
        sender.run(100 * MS);
        assert!(matches!(sender.given_up_ms(), (249..=250, 0)));
        // A call took that long, and slept: what the transport did not take is not made up for.
        let late_in_a_call = |slept: fn() -> u64| {
            let mut sender = Sender::new(PACE);
            sender.pacer.slept_so_far = || 0;
            sender.run(10 * MS);
            while sender.pacer.hold_at(PACE, sender.now_ns, &mut sender.errors).is_some() {
                sender.now_ns += 1_000;
            }
            sender.pacer.begin(&sender.counters);
            sender.pacer.slept_so_far = slept;
            sender.now_ns += 50 * MS;
            sender.pacer.sent(1.0);
            sender.run(100 * MS);
            sender.given_up_ms()
        };
        assert!(matches!(late_in_a_call(|| 1), (0, 47..=48)));
        // It did not sleep: its thread lost its core, and 50 ms are made up.
        assert_eq!(late_in_a_call(|| 0), (0, 0));
    }

    proptest! {
        /// A thread that gets its core for a part of the time only, in slices, still keeps its mean rate.
        #[test]
        fn a_busy_host_does_not_lower_the_rate(on_us in 2_000u64..30_000, off_share in 0.0..0.8f64, gap_ns in 5_000.0..2e6f64) {
            let off_us = (on_us as f64 * off_share / (1.0 - off_share)) as u64;
            prop_assume!(off_us < 60_000);
            let mut sender = Sender::new(Pace { gap_ns, ..PACE });
            let from = sender.now_ns;
            let mut sent = 0;
            while sender.now_ns - from < 2_000 * MS {
                sent += sender.run(on_us * 1_000);
                sender.now_ns += off_us * 1_000;
            }
            let due = (sender.now_ns - from) as f64 / gap_ns;
            // What is due at the end may be outstanding.
            let outstanding = 100e6 / gap_ns + 1.0;
            prop_assert!(sent as f64 <= due + 1.0 && sent as f64 >= due - outstanding, "{sent} of {due}");
            prop_assert_eq!(sender.given_up_ms(), (0, 0));
        }
    }

    #[test]
    fn a_backlog_never_goes_out_faster_than_documented() {
        let mut sender = Sender::new(Pace { catch_up_ns: f64::INFINITY, blocked_ns: f64::INFINITY, ..PACE });
        sender.run(MS);
        sender.now_ns += 10_000 * MS;
        let sent = sender.run(10 * MS);
        assert!(sent <= (FASTEST * 100.0) as u64 + 2, "{sent}");
    }

    #[test]
    fn a_burst_leaves_at_once_and_what_a_stall_held_up_follows() {
        let pace = Pace { catch_up_ns: f64::INFINITY, blocked_ns: f64::INFINITY, burst_ns: 800_000.0, ..PACE };
        let mut sender = Sender::new(pace);
        let per_tenth: Vec<u64> = (0..16).map(|_| sender.run(MS / 10)).collect();
        assert_eq!(per_tenth, [8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sender.run(80 * MS), 800);
        // Much longer than a burst.
        sender.now_ns += 20 * MS;
        let sent = sender.run(180 * MS);
        assert!((1_976..=2_008).contains(&sent), "{sent}");
        assert_eq!(sender.given_up_ms(), (0, 0));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut errors = RttRecorder::new();
        let mut pacer = Pacer::new(None);
        assert_eq!((pacer.hold(&mut errors), pacer.burst(64), errors.count()), (None, 64, 0));
        let slow =
            Pacer::new(Some(Pace { gap_ns: 1e6, catch_up_ns: 0.0, blocked_ns: 0.0, spread_ns: 0.0, burst_ns: 0.0 }));
        let fast = Pacer::new(Some(Pace {
            gap_ns: 2_500.0,
            catch_up_ns: 0.0,
            blocked_ns: 0.0,
            spread_ns: 0.0,
            burst_ns: 0.0,
        }));
        assert_eq!((slow.burst(64), fast.burst(64)), (1, 20));
    }
}

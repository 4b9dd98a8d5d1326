//! A link of a fixed rate behind a drop-tail queue of so many bytes.

use super::{Passage, Stage};
use crate::emulator::counts::Place;

const BIT_NS: u128 = 8_000_000_000;

/// Where the queue would stand if it were one: it holds no packets, only the time at which the link will be free.
///
/// Exact: what a byte takes beyond whole nanoseconds is carried over to the next, so that no rate drifts while the link is
/// busy.
#[derive(Debug)]
pub(super) struct Queue {
    rate_bps: u64,
    limit_bytes: u64,
    free_ns: u64,
    /// What the link needs beyond `free_ns`, in units of 1/rate ns.
    rest: u128,
}

impl Queue {
    pub(super) fn new(rate_bps: u64, limit_bytes: u64) -> Self {
        Self { rate_bps: rate_bps.max(1), limit_bytes, free_ns: 0, rest: 0 }
    }

    /// Bytes that have not left at a time, rounded up: those that wait, and what is left of the one being sent.
    fn backlog_bytes(&self, now_ns: u64) -> u64 {
        let busy = u128::from(self.free_ns.saturating_sub(now_ns));
        let left = if self.free_ns >= now_ns { busy * u128::from(self.rate_bps) + self.rest } else { 0 };
        left.div_ceil(BIT_NS) as u64
    }
}

impl Stage for Queue {
    fn pass(&mut self, segment: &mut Passage) -> Result<(), Place> {
        if self.backlog_bytes(segment.at_ns) + segment.wire_bytes > self.limit_bytes {
            return Err(Place::Queue);
        }
        if self.free_ns < segment.at_ns {
            (self.free_ns, self.rest) = (segment.at_ns, 0);
        }
        let work = u128::from(segment.wire_bytes) * BIT_NS + self.rest;
        self.free_ns += (work / u128::from(self.rate_bps)) as u64;
        self.rest = work % u128::from(self.rate_bps);
        segment.at_ns = self.free_ns;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A link that never idles has sent so many bits at the time that its rate says, to the nanosecond.
        #[test]
        fn a_busy_link_keeps_its_rate(rate in 1_000_u64..100_000_000_000, sizes in prop::collection::vec(60_u64..9_100, 1..200)) {
            let mut queue = Queue::new(rate, u64::MAX / 2);
            let mut sent = 0;
            for wire_bytes in sizes {
                sent += wire_bytes;
                let mut segment = Passage { at_ns: 0, wire_bytes };
                prop_assert_eq!(queue.pass(&mut segment), Ok(()));
                prop_assert_eq!(u128::from(segment.at_ns), u128::from(sent) * BIT_NS / u128::from(rate));
            }
        }

        /// Nothing waits longer than the full queue takes, nothing overtakes, and what is refused did not fit.
        #[test]
        fn the_queue_is_as_long_as_it_says(arrivals in prop::collection::vec((0_u64..20_000, 60_u64..9_100), 1..300)) {
            let (rate, limit) = (1_000_000_000, 30_000);
            let mut queue = Queue::new(rate, limit);
            let (mut now, mut last) = (0, 0);
            // The same queue with packets in it: when each has left.
            let mut inside: Vec<(u64, u64)> = Vec::new();
            for (gap, wire_bytes) in arrivals {
                now += gap;
                let mut segment = Passage { at_ns: now, wire_bytes };
                let waiting: f64 = inside.iter().map(|(left, bytes)| {
                    let tx = bytes * 8;
                    (left.saturating_sub(now)).min(tx) as f64 / 8.0
                }).sum();
                match queue.pass(&mut segment) {
                    Ok(()) => {
                        prop_assert!(segment.at_ns >= last && segment.at_ns - now <= limit * 8);
                        prop_assert!(waiting + wire_bytes as f64 <= limit as f64 + 1.0);
                        last = segment.at_ns;
                        inside.push((segment.at_ns, wire_bytes));
                    }
                    Err(place) => {
                        prop_assert_eq!(place, Place::Queue);
                        prop_assert!(waiting + wire_bytes as f64 > limit as f64 - 1.0);
                    }
                }
            }
        }
    }
}

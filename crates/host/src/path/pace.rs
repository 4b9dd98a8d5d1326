//! How fast a probe may send, and how long it waits: the answers to its first packets show the times of the path.
//!
//! A probe must not fill the queue that it measures. Its packets are so far apart that the slowest link takes each of them in half of
//! that time. How long the link needs for a packet follows from the answers to a small and a large one; before the large one is
//! answered, all of the small one's time might be the link's.

use std::time::{Duration, Instant};

/// Bytes of the small packet, IP header included: an echo as the ping programs send it.
pub(super) const SMALL: usize = 84;
/// Time limit of a probe on a short path, from its start; round trips are added on a long one.
const LIMIT: Duration = Duration::from_millis(1_000);
const TRIPS: u32 = 8;
/// How long to wait for one answer on a short path.
const PATIENCE: Duration = Duration::from_millis(150);
/// The same as long as nothing has answered.
const FIRST_PATIENCE: Duration = Duration::from_millis(300);
/// Longest wait for what the link may need for a packet.
const MOST_LINK: Duration = Duration::from_secs(4);

/// The times of a path as a probe has seen them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    begun: Instant,
    /// A round trip that another connection has seen; zero if none.
    expected: Duration,
    /// The round trip of the small packet.
    small: Option<Duration>,
    /// Time of the links for a byte there and back, and the whole round trip, by the answer to a large packet.
    large: Option<(Duration, f64)>,
}

impl Pace {
    pub(super) fn new(begun: Instant, expected: Duration) -> Self {
        Self { begun, expected, small: None, large: None }
    }

    /// The small packet was answered after this time.
    pub(super) fn small(&mut self, round_trip: Duration) {
        self.small = Some(self.small.map_or(round_trip, |seen| seen.min(round_trip)));
    }

    /// A packet of `bytes` was answered after this time.
    pub(super) fn large(&mut self, bytes: usize, round_trip: Duration) {
        if let Some(small) = self.small.filter(|_| bytes > SMALL) {
            let link = round_trip.saturating_sub(small).as_secs_f64() / (bytes - SMALL) as f64;
            self.large = Some((round_trip, link));
        }
    }

    /// A round trip of a small packet.
    pub(super) fn round_trip(&self) -> Duration {
        self.small.unwrap_or(self.expected)
    }

    /// How long the links may need for a packet of `bytes` and an answer of that size.
    fn link(&self, bytes: usize) -> Duration {
        let per_byte = match self.large {
            Some((_, per_byte)) => per_byte,
            None => self.round_trip().as_secs_f64() / SMALL as f64,
        };
        Duration::try_from_secs_f64(per_byte * bytes as f64).unwrap_or(MOST_LINK).min(MOST_LINK)
    }

    /// Between two packets of `bytes`.
    pub(super) fn gap(&self, bytes: usize) -> Duration {
        2 * self.link(bytes)
    }

    /// For the answer to a packet of `bytes`.
    pub(super) fn patience(&self, bytes: usize) -> Duration {
        let least = if self.small.is_none() { FIRST_PATIENCE + 2 * self.expected } else { PATIENCE };
        least + 2 * self.round_trip() + self.link(bytes)
    }

    /// When the probe ends, but for what is on its way then.
    pub(super) fn until(&self) -> Instant {
        self.begun + LIMIT + TRIPS * self.round_trip() + self.large.map_or(Duration::ZERO, |(trip, _)| 2 * trip)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(small: Duration, large: Option<Duration>) -> Pace {
        let mut pace = Pace::new(Instant::now(), Duration::ZERO);
        pace.small(small);
        if let Some(large) = large {
            pace.large(1_500, large);
        }
        pace
    }

    proptest! {
        /// A path of one link each way: whatever its rate and length, what is sent at the pace leaves at least half of the link free.
        #[test]
        fn no_queue_is_filled(bps in 1_000.0..10e9f64, delay_ms in 0.0..2_000.0f64, seen in any::<bool>()) {
            let trip = |bytes: usize| Duration::from_secs_f64(2.0 * (bytes as f64 * 8.0 / bps + delay_ms / 1e3));
            let pace = of(trip(SMALL), seen.then(|| trip(1_500)));
            for bytes in [60, SMALL] {
                // Times have whole nanoseconds.
                let on_link = bytes as f64 * 8.0 / bps;
                let free = pace.gap(bytes).as_secs_f64() + 1e-8 >= 2.0 * on_link.min(2.0);
                prop_assert!(free, "{bytes} bytes take {on_link} s, one each {:?}", pace.gap(bytes));
            }
            if bps > 9_600.0 {
                prop_assert!(pace.patience(1_500) >= trip(1_500), "{:?} for {:?}", pace.patience(1_500), trip(1_500));
            }
        }
    }

    #[test]
    fn a_fast_path_is_probed_fast_and_a_slow_one_slowly() {
        let near = of(Duration::from_micros(200), Some(Duration::from_micros(220)));
        assert!(90 * near.gap(60) < Duration::from_millis(1), "{:?}", near.gap(60));
        // 100 ms away, at 10 Mbit/s; known only after the large packet.
        let (unknown, far) =
            (of(Duration::from_millis(200), None), of(Duration::from_millis(200), Some(Duration::from_millis(203))));
        assert!(unknown.gap(60) > Duration::from_millis(200) && far.gap(60) < Duration::from_millis(1));
        // 9,600 bit/s.
        let slow = of(Duration::from_millis(240), Some(Duration::from_millis(2_600)));
        assert!((150..250).contains(&slow.gap(60).as_millis()), "{:?}", slow.gap(60));
        assert!(slow.until() - slow.begun > Duration::from_secs(8));
    }
}

//! Delivery delays caused by the emulator.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::counter::add;

/// Times are counted in buckets: 16 per power of two, so that a quantile is at most 1/16 too high.
const SUB: u32 = 4;
const BUCKETS: usize = (64 - SUB as usize + 1) << SUB;

#[derive(Debug)]
pub(crate) struct LateCounters {
    buckets: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

impl Default for LateCounters {
    fn default() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), sum_ns: AtomicU64::new(0) }
    }
}

impl LateCounters {
    /// Counts a packet delivered this many ns after it was due.
    pub(crate) fn record(&self, ns: u64) {
        add(&self.buckets[bucket(ns)], 1);
        add(&self.sum_ns, ns);
    }

    pub(crate) fn read(&self) -> Lateness {
        let buckets = self.buckets.iter().map(|count| count.load(Relaxed)).collect();
        Lateness { buckets, sum_ns: self.sum_ns.load(Relaxed) }
    }
}

fn bucket(ns: u64) -> usize {
    let power = (ns >> SUB).checked_ilog2().map_or(0, |power| power + 1);
    // Below 2^SUB each value has its own bucket; above, a bucket is numbered by the leading bits after the first.
    if power == 0 { ns as usize } else { ((power as usize) << SUB) + ((ns >> (power - 1)) as usize - (1 << SUB)) }
}

/// The largest value of a bucket, ns.
fn edge(bucket: usize) -> u64 {
    let (power, offset) = (bucket >> SUB, (bucket & ((1 << SUB) - 1)) as u64);
    if power == 0 { offset } else { ((offset + (1 << SUB) + 1) << (power - 1)).wrapping_sub(1) }
}

/// How late packets were delivered. A packet of several segments is due when its last one is.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Lateness {
    buckets: Vec<u64>,
    sum_ns: u64,
}

impl Lateness {
    /// Packets delivered.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Mean in ns; `None` without a packet.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// The value at quantile `q` (0 to 1) in ns, at most 1/16 too high; `None` without a packet.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        self.buckets
            .iter()
            .position(|n| {
                below += n;
                below >= rank
            })
            .map(edge)
    }

    /// The largest in ns, at most 1/16 too high; `None` without a packet.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        self.quantile_ns(1.0)
    }

    /// The sum of both.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let length = self.buckets.len().max(other.buckets.len());
        let at = |buckets: &[u64], index| buckets.get(index).copied().unwrap_or(0);
        let buckets = (0..length).map(|index| at(&self.buckets, index) + at(&other.buckets, index)).collect();
        Self { buckets, sum_ns: self.sum_ns + other.sum_ns }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |index: usize| earlier.buckets.get(index).copied().unwrap_or(0);
        let buckets = self.buckets.iter().enumerate().map(|(index, count)| count - before(index)).collect();
        Self { buckets, sum_ns: self.sum_ns - earlier.sum_ns }
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|q| self.quantile_ns(q));
        write!(f, "Lateness({} packets, p50 {p50:?}, p99 {p99:?}, max {max:?} ns)", self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(ns: u64) {
            let own = edge(bucket(ns));
            prop_assert!(own >= ns && own - ns <= ns / 16, "{} for {}", own, ns);
            prop_assert!(bucket(ns) == 0 || edge(bucket(ns) - 1) < ns);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_new_records() {
        let counters = LateCounters::default();
        counters.record(5_000_000);
        let before = counters.read();
        assert_eq!(before.since(&before).max_ns(), None);
        (1..=100).for_each(|us| counters.record(us * 1_000));
        let late = counters.read().since(&before);
        assert_eq!((late.count(), late.mean_ns()), (100, Some(50_500.0)));
        for (q, exact) in [(0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let read = late.quantile_ns(q).unwrap();
            assert!((exact..=exact + exact / 16).contains(&read), "{q}: {read}");
        }
        let both = late.merged(&before);
        assert_eq!((both.count(), both.quantile_ns(0.99)), (101, late.quantile_ns(1.0)));
    }
}

//! What became of every segment, and how late the emulator was.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where a segment ended that did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The queue before the link was full.
    Queue,
    /// Lost on its way.
    Loss,
}

/// What one direction has done. One writer, the emulator's thread, by plain loads and stores.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) arrived: AtomicU64,
    pub(crate) arrived_bytes: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) delivered_bytes: AtomicU64,
    pub(crate) queue: AtomicU64,
    pub(crate) loss: AtomicU64,
    pub(crate) ring: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) late: LateCounters,
}

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Counters {
    /// Counts a drop.
    pub(crate) fn drop_at(&self, place: Place) {
        add(
            match place {
                Place::Queue => &self.queue,
                Place::Loss => &self.loss,
            },
            1,
        );
    }

    /// The counts of now. While traffic runs a segment may be in one count and not yet in the next.
    pub(crate) fn read(&self) -> PathCounts {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        PathCounts {
            arrived: of(&self.arrived),
            arrived_bytes: of(&self.arrived_bytes),
            delivered: of(&self.delivered),
            delivered_bytes: of(&self.delivered_bytes),
            dropped_queue: of(&self.queue),
            dropped_loss: of(&self.loss),
            dropped_ring: of(&self.ring),
            refused: of(&self.refused),
            late: self.late.read(),
        }
    }
}

/// What one direction of a path has done so far. Segments are packets as on a wire: one that came in a TSO or USO packet of
/// many counts by itself. Bytes are those on the wire, framing included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathCounts {
    /// Segments that the sending host gave to the path.
    pub arrived: u64,
    /// Their bytes on the wire.
    pub arrived_bytes: u64,
    /// Segments that the receiving host has been given.
    pub delivered: u64,
    /// Their bytes on the wire.
    pub delivered_bytes: u64,
    /// Segments for which the queue had no room.
    pub dropped_queue: u64,
    /// Segments lost at random.
    pub dropped_loss: u64,
    /// Segments for which the emulator itself had no memory; 0 unless the path holds more than 1 GiB.
    pub dropped_ring: u64,
    /// Segments that the receiving host would not take, such as with its interface down.
    pub refused: u64,
    /// How late the emulator was.
    pub late: Lateness,
}

impl PathCounts {
    /// Segments that did not arrive and will not.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_queue + self.dropped_loss + self.dropped_ring + self.refused
    }

    /// Segments that are on their way: with the drops and the delivered ones they make up those that arrived.
    #[must_use]
    pub fn travelling(&self) -> u64 {
        self.arrived.saturating_sub(self.delivered + self.dropped())
    }

    /// What was counted since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            arrived: self.arrived - earlier.arrived,
            arrived_bytes: self.arrived_bytes - earlier.arrived_bytes,
            delivered: self.delivered - earlier.delivered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            dropped_queue: self.dropped_queue - earlier.dropped_queue,
            dropped_loss: self.dropped_loss - earlier.dropped_loss,
            dropped_ring: self.dropped_ring - earlier.dropped_ring,
            refused: self.refused - earlier.refused,
            late: self.late.since(&earlier.late),
        }
    }
}

/// Times are counted in buckets: 16 to each power of two, so that a quantile is at most 1/16 too high.
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
    /// Counts a packet that was handed over so many ns after it was due.
    pub(crate) fn record(&self, ns: u64) {
        add(&self.buckets[bucket(ns)], 1);
        add(&self.sum_ns, ns);
    }

    fn read(&self) -> Lateness {
        let buckets = self.buckets.iter().map(|count| count.load(Relaxed)).collect();
        Lateness { buckets, sum_ns: self.sum_ns.load(Relaxed) }
    }
}

fn bucket(ns: u64) -> usize {
    let power = (ns >> SUB).checked_ilog2().map_or(0, |power| power + 1);
    // Below 2^SUB each value has its own bucket; above, the leading bits after the first number it.
    if power == 0 { ns as usize } else { ((power as usize) << SUB) + ((ns >> (power - 1)) as usize - (1 << SUB)) }
}

/// The largest value of a bucket, ns.
fn edge(bucket: usize) -> u64 {
    let (power, place) = (bucket >> SUB, (bucket & ((1 << SUB) - 1)) as u64);
    if power == 0 { place } else { ((place + (1 << SUB) + 1) << (power - 1)).wrapping_sub(1) }
}

/// How long after their time packets were handed over. A packet of several segments is due when its last one is.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Lateness {
    buckets: Vec<u64>,
    sum_ns: u64,
}

impl Lateness {
    /// Packets handed over.
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

    /// Both together.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let length = self.buckets.len().max(other.buckets.len());
        let at = |buckets: &[u64], index| buckets.get(index).copied().unwrap_or(0);
        let buckets = (0..length).map(|index| at(&self.buckets, index) + at(&other.buckets, index)).collect();
        Self { buckets, sum_ns: self.sum_ns + other.sum_ns }
    }

    fn since(&self, earlier: &Self) -> Self {
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
    fn quantiles_are_those_of_what_was_recorded_since() {
        let counters = Counters::default();
        counters.late.record(5_000_000);
        let before = counters.read();
        assert_eq!(before.since(&before).late.max_ns(), None);
        (1..=100).for_each(|us| counters.late.record(us * 1_000));
        let late = counters.read().since(&before).late;
        assert_eq!((late.count(), late.mean_ns()), (100, Some(50_500.0)));
        for (q, exact) in [(0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let read = late.quantile_ns(q).unwrap();
            assert!((exact..=exact + exact / 16).contains(&read), "{q}: {read}");
        }
        let both = late.merged(&before.late);
        assert_eq!((both.count(), both.quantile_ns(0.99)), (101, late.quantile_ns(1.0)));
    }

    #[test]
    fn what_is_neither_delivered_nor_dropped_travels() {
        let counters = Counters::default();
        add(&counters.arrived, 10);
        add(&counters.delivered, 4);
        counters.drop_at(Place::Queue);
        counters.drop_at(Place::Loss);
        counters.drop_at(Place::Loss);
        let counts = counters.read();
        assert_eq!((counts.dropped_queue, counts.dropped_loss, counts.dropped(), counts.travelling()), (1, 2, 3, 3));
    }
}

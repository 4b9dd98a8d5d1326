//! The one clock of the measuring path, and the wall clock that the kernel stamps packets with.

use std::sync::OnceLock;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC. Only differences between readings on one host have a meaning.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot and is never negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of CLOCK_REALTIME since the Unix epoch, which the kernel's time stamps are of. It may be set at any time.
#[inline]
#[must_use]
pub fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    // A clock before 1970 gives times that no stamp fits to.
    now.tv_sec.max(0) as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The range in which CLOCK_REALTIME less CLOCK_MONOTONIC was, ns. Both run at the same rate (adjtime(3) slews both), so that
/// it changes only if the wall clock is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WallOffset {
    low: i64,
    high: i64,
}

impl WallOffset {
    /// Reads both clocks.
    #[inline]
    pub(crate) fn read() -> Self {
        let (before, wall, after) = (now_ns(), unix_ns(), now_ns());
        let less = |ns: u64| wall.cast_signed() - ns.cast_signed();
        Self { low: less(after), high: less(before) }
    }

    /// Whether the wall clock was certainly set between the two readings.
    pub(crate) fn differs(self, later: Self) -> bool {
        self.low > later.high || later.low > self.high
    }
}

/// The cost of one clock read on this host in ns, measured once.
pub(crate) fn clock_cost_ns() -> f64 {
    static COST: OnceLock<f64> = OnceLock::new();
    *COST.get_or_init(|| {
        const READS: u32 = 2_000;
        let batch = |_| {
            let start = now_ns();
            for _ in 0..READS {
                std::hint::black_box(now_ns());
            }
            (now_ns() - start) as f64 / f64::from(READS)
        };
        // The smallest of a few batches: anything above it is other load.
        (0..9).map(batch).fold(f64::MAX, f64::min)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_was_set_differs() {
        let at = |low, high| WallOffset { low, high };
        assert!(!at(100, 150).differs(at(150, 170)) && !at(100, 150).differs(at(90, 500)), "the reads took their time");
        assert!(at(100, 150).differs(at(151, 170)) && at(100, 150).differs(at(-7, 99)));
        assert!(!WallOffset::read().differs(WallOffset::read()));
    }
}

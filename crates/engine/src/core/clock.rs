//! The one clock of the measuring path.

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

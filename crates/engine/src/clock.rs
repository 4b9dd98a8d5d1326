//! The one clock of the measuring path.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC. Only differences between readings on one host have a meaning.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot and is never negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

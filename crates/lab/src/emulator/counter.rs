//! Counters with one writer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

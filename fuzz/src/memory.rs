//! A bound on what a decoder allocates.

use std::sync::atomic::Ordering;

use crate::sys::{MOST, NOW};

/// Runs `decode`.
///
/// # Panics
/// If it had more than `fixed` bytes, and `factor` more for each byte of the input, allocated at one time.
pub fn bounded<T>(input: &[u8], fixed: usize, factor: usize, decode: impl FnOnce() -> T) -> T {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let decoded = decode();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most <= fixed + factor * input.len(), "{most} bytes of memory for {} bytes of input", input.len());
    decoded
}

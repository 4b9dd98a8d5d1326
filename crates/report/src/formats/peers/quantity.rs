//! Numbers in the formats of C programs.

pub(super) use model::printf::{bits_per_second, bytes, two_digits};

/// Seconds of `ns`.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// bit/s of `bytes` in `ns`; 0 if there was no time, as in all of these programs.
pub(super) fn rate(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}

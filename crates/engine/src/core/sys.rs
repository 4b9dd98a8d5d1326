//! The kernel's error bound of the wall clock, and how often a thread slept.
#![allow(unsafe_code, reason = "each block states why it is sound")]

/// Maximum error of the wall clock, as its synchronisation daemon reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallError {
    /// At most, ns (adjtimex(2), `maxerror`).
    pub max_ns: u64,
}

/// Maximum error of CLOCK_REALTIME against UTC; `None` if it is not synchronised.
#[must_use]
pub fn wall_error() -> Option<WallError> {
    // SAFETY: the structure is of integers alone, for which zeros are values.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: without modes the call only writes to the structure, which is ours.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    let kept = state >= 0 && timex.status & libc::STA_UNSYNC == 0;
    kept.then(|| WallError { max_ns: u64::try_from(timex.maxerror).unwrap_or(0).saturating_mul(1_000) })
}

/// How often this thread has given up its core by itself, to wait for something (getrusage(2), `ru_nvcsw`).
pub(crate) fn voluntary_switches() -> u64 {
    // SAFETY: the structure is of integers alone, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call only writes to the structure, which is ours.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nvcsw).unwrap_or(0)
}

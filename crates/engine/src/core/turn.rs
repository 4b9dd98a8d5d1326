//! How a flow goes on: now, at a time, when its channel is ready, or not at all.

use std::io;

use super::LegHeader;

/// What a machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing: it let other flows run.
    Again,
    /// Its channel, at most until the given time (ns of the monotonic clock; `u64::MAX` for no limit).
    Wait(Interest, u64),
    /// A point in time.
    Sleep(u64),
    /// The leg is over, and the first message of the next one arrived with it (datagram transports).
    Next(LegHeader),
    /// Its leg is over.
    Done,
}

/// Which readiness of a channel a machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    Both,
}

/// Whether a failed call should be repeated later.
#[inline]
pub(crate) fn not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

//! This host's wall clock as STAMP writes it.

use std::time::{SystemTime, UNIX_EPOCH};

use engine::WallError;
use speak::stamp::{ErrorEstimate, Timestamp};

/// How far a clock is said to be off where the kernel knows no source for it: it may be anything.
const UNKNOWN_NS: u64 = 3_600_000_000_000;

/// The time of day.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::of_unix_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// How far it may be off, as the kernel has it from whoever sets the clock.
pub(super) fn error() -> ErrorEstimate {
    match engine::wall_error() {
        Some(WallError { max_ns }) => ErrorEstimate::covering(max_ns, true),
        None => ErrorEstimate::covering(UNKNOWN_NS, false),
    }
}

//! This host's wall clock as STAMP writes it.

use engine::WallError;
use peer_wire::stamp::{ErrorEstimate, Timestamp};

use super::trips::Moment;

/// Error estimate of a clock without a time source.
const UNKNOWN_NS: u64 = 3_600_000_000_000;

/// Longest time that a datagram may have waited to be read, ns.
const LONGEST_WAIT_NS: u64 = 2_000_000_000;

/// Readings of two clocks within this time count as simultaneous, ns.
const NEAR_NS: u64 = 5_000;
/// Attempts.
const TRIES: u32 = 4;

/// The time of day.
pub(super) fn now() -> Timestamp {
    Timestamp::of_unix_ns(engine::unix_ns())
}

/// Now, by both clocks; read again if the thread was preempted between the readings.
pub(super) fn moment() -> Moment {
    for _ in 0..TRIES {
        let (before, wall, after) = (engine::now_ns(), now(), engine::now_ns());
        if after - before < NEAR_NS {
            return Moment { ns: before, wall };
        }
    }
    Moment { ns: engine::now_ns(), wall: now() }
}

/// The kernel's receive time, `unix_ns` by the wall clock, by both clocks.
pub(super) fn moment_of(unix_ns: u64) -> Moment {
    let (read, wall) = (moment(), Timestamp::of_unix_ns(unix_ns));
    // If the clock was set since then, the waiting time is unknown.
    let waited_ns = u64::try_from(read.wall.ns_since(wall)).ok().filter(|ns| *ns <= LONGEST_WAIT_NS).unwrap_or(0);
    Moment { ns: read.ns.saturating_sub(waited_ns), wall }
}

/// The kernel's error estimate of the clock.
pub(super) fn error() -> ErrorEstimate {
    match engine::wall_error() {
        Some(WallError { max_ns }) => ErrorEstimate::covering(max_ns, true),
        None => ErrorEstimate::covering(UNKNOWN_NS, false),
    }
}

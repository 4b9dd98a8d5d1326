//! When the next probe arrives: a reflector that is awake by then adds no wake-up of its own to a short round trip.

use super::super::machine::Part;
use crate::core::{Interest, Turn};

/// The bit of a probe's number that marks short round trips. A prober sets it once it has seen one.
pub(super) const SHORT: u64 = 1 << 63;
/// How long before the next arrival a reflector is awake, and how long it stays awake after it. Timers of virtual
/// machines are late by about 50 µs, at either end.
const EARLY_NS: u64 = 150_000;
const LINGER_NS: u64 = 250_000;

/// Minimum gap between two probes for which either end stays awake: the time awake must be a small part of it.
pub(super) const AWAKE_GAP_NS: u64 = 2_000_000;

/// The arrivals of probes at a steady rate.
pub(super) struct Arrivals {
    /// Time between two arrivals, ns; 0 if the reflector sleeps until each arrives.
    gap_ns: u64,
    /// When the last probe of short round trips arrived; 0 before the first.
    last_ns: u64,
}

impl Arrivals {
    /// For the probes of `part`, which arrive at its rate; the time awake must be a small part of the gap.
    pub(super) fn of(part: &Part, probes: bool) -> Self {
        let gap_ns = part.pace.filter(|_| probes).map_or(0, |pace| pace.gap_ns as u64);
        Self { gap_ns: if gap_ns >= AWAKE_GAP_NS { gap_ns } else { 0 }, last_ns: 0 }
    }

    /// A probe came at `now_ns`: its first eight bytes.
    pub(super) fn came(&mut self, now_ns: impl FnOnce() -> u64, request: &[u8]) {
        if self.gap_ns > 0 {
            let number = request.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            self.last_ns = if number & SHORT == 0 { 0 } else { now_ns() };
        }
    }

    /// How to wait for the next one.
    pub(super) fn wait(&self, now_ns: impl FnOnce() -> u64) -> Turn {
        if self.last_ns == 0 {
            return Turn::Wait(Interest::Read, u64::MAX);
        }
        let now = now_ns();
        // After the window of one arrival, the next one is the target.
        let missed = (now.saturating_sub(self.last_ns + LINGER_NS)) / self.gap_ns;
        let next = self.last_ns + (missed + 1) * self.gap_ns;
        if now + EARLY_NS >= next { Turn::Again } else { Turn::Wait(Interest::Read, next - EARLY_NS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 10_000_000;

    fn waits(last_ns: u64, now: u64) -> Option<u64> {
        match (Arrivals { gap_ns: GAP, last_ns }).wait(|| now) {
            Turn::Again => None,
            Turn::Wait(Interest::Read, until) => Some(until),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_awake_around_the_next_arrival_only() {
        let last = 5 * GAP;
        assert_eq!(waits(last, last + 20_000), Some(last + GAP - EARLY_NS));
        assert_eq!(waits(last, last + GAP - EARLY_NS), None);
        assert_eq!(waits(last, last + GAP + LINGER_NS - 1), None);
        assert_eq!(waits(last, last + GAP + LINGER_NS), Some(last + 2 * GAP - EARLY_NS));
        assert_eq!(waits(last, last + 7 * GAP), None);
        assert_eq!(waits(0, last), Some(u64::MAX), "nothing is known");
    }

    #[test]
    fn only_short_round_trips_are_waited_for() {
        let mut arrivals = Arrivals { gap_ns: GAP, last_ns: 0 };
        arrivals.came(|| 7, &(3 | SHORT).to_le_bytes());
        assert_eq!(arrivals.last_ns, 7);
        arrivals.came(|| 8, &4u64.to_le_bytes());
        assert_eq!(arrivals.last_ns, 0);
    }
}

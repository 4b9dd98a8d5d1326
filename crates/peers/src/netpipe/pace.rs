//! How a curve keeps to its time.

use std::time::Instant;

use peer_wire::netpipe::Passage;

/// Round trips of a size: three trials with a mark and three exchanges each, and the passage before it.
const ROUND_TRIPS: f64 = 13.0;
/// Messages of a size in those.
const MESSAGES: f64 = 9.0;

/// When a curve ends, and what it knows about the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// When the last size should end.
    pub(super) due: Instant,
    /// When the curve ends with what it has.
    pub(super) deadline: Option<Instant>,
    /// NetPIPE's time of the smallest size.
    pub(super) first_s: Option<f64>,
    /// The last size in bytes, and its time.
    pub(super) last: (u64, f64),
}

impl Pace {
    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// A size was measured.
    pub(super) fn note(&mut self, bytes: u64, seconds: f64) {
        self.first_s.get_or_insert(seconds);
        self.last = (bytes, seconds);
    }

    /// Whether a passage and the size after it would take longer than there is time.
    pub(super) fn is_too_long(&self, passage: &Passage) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let left = deadline.saturating_duration_since(Instant::now());
        self.cost_s(passage.bytes()) > left.as_secs_f64()
    }

    /// Seconds for so many bytes in each direction, and the size after them, which is about twice the last one.
    fn cost_s(&self, passed: u64) -> f64 {
        let (Some(first_s), (bytes @ 1.., last_s)) = (self.first_s, self.last) else { return 0.0 };
        // What a larger block takes longer is the time of its bytes, there and back.
        let each_s = 2.0 * (last_s - first_s).max(0.0) / bytes as f64;
        let next = 2.0 * bytes as f64;
        (passed as f64 + MESSAGES * next) * each_s + ROUND_TRIPS * 2.0 * first_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cost_what_a_larger_block_takes_longer() {
        let mut pace = Pace { due: Instant::now(), deadline: None, first_s: None, last: (0, 0.0) };
        assert_eq!(pace.cost_s(1_000), 0.0, "nothing is known");
        pace.note(1, 0.01);
        assert!((pace.cost_s(1_000) - 0.26).abs() < 1e-9, "13 round trips of 20 ms");
        // A byte takes a microsecond there and as long back.
        pace.note(10_000, 0.02);
        assert!((pace.cost_s(100_000) - (0.26 + 0.56)).abs() < 1e-9, "{}", pace.cost_s(100_000));
    }
}

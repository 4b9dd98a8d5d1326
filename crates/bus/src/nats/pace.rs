//! How long an answer takes, and how much may be under way: what a sender learns from its round trips, without I/O and clock.

use std::time::Duration;

use super::packet::MOST;

/// Most bytes that the other end's reader has not taken.
pub(super) const WINDOW: usize = 256 << 10;
/// Fewest bytes under way.
const LEAST_WINDOW: usize = 16 << 10;
/// Bytes under way before anything is known of the path.
const FIRST_WINDOW: usize = 64 << 10;
/// Time that a message may wait in queues before fewer bytes are sent.
const QUEUE_LIMIT: Duration = Duration::from_millis(500);
/// Longest round trip of a path whose queues are empty.
const LONGEST_PATH: Duration = Duration::from_secs(1);

/// Time for an answer before any has come (RFC 6298).
const FIRST_LIMIT: Duration = Duration::from_secs(1);
/// Bounds of the time for an answer. Nothing but a question is repeated after it.
const LEAST_LIMIT: Duration = Duration::from_millis(500);
const MOST_LIMIT: Duration = Duration::from_secs(4);
/// Least time for an answer beyond the mean.
const GRANULARITY: Duration = Duration::from_millis(10);

/// What is known of the path to the other end and back.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The mean of the round trips and their mean deviation.
    round_trip: Option<(Duration, Duration)>,
    least: Option<Duration>,
    window: Option<usize>,
}

impl Pace {
    /// Takes the time that an answer took. `was_full`: the window was used meanwhile.
    pub(super) fn sample(&mut self, took: Duration, was_full: bool) {
        self.round_trip = Some(match self.round_trip {
            None => (took, took / 2),
            Some((mean, deviation)) => (mean * 7 / 8 + took / 8, deviation * 3 / 4 + mean.abs_diff(took) / 4),
        });
        let least = *self.least.insert(self.least.map_or(took, |least| least.min(took)));
        if took > least.min(LONGEST_PATH) + QUEUE_LIMIT {
            self.window = Some((self.window() / 2).max(LEAST_WINDOW));
        } else if was_full {
            self.window = Some((self.window() + MOST).min(WINDOW));
        }
    }

    /// Something was lost: the path may be another one.
    pub(super) fn lost(&mut self) {
        self.window = Some(LEAST_WINDOW);
    }

    /// Most bytes under way.
    pub(super) fn window(&self) -> usize {
        self.window.unwrap_or(FIRST_WINDOW)
    }

    /// Time for an answer, after so many questions since the last progress.
    pub(super) fn limit(&self, asked: u32) -> Duration {
        let first = self.round_trip.map_or(FIRST_LIMIT, |(mean, deviation)| mean + (deviation * 4).max(GRANULARITY));
        first.max(LEAST_LIMIT).saturating_mul(1 << asked.min(8)).min(MOST_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_time_for_an_answer_follows_rfc_6298() {
        let mut pace = Pace::default();
        assert_eq!([0, 1, 2, 9].map(|asked| pace.limit(asked)), [FIRST_LIMIT, 2 * FIRST_LIMIT, MOST_LIMIT, MOST_LIMIT]);
        pace.sample(400 * MS, false);
        // SRTT = R, RTTVAR = R / 2, RTO = SRTT + 4 RTTVAR
        assert_eq!(pace.limit(0), 1200 * MS);
        pace.sample(800 * MS, false);
        // RTTVAR = 3/4 200 + 1/4 400 = 250, SRTT = 7/8 400 + 1/8 800 = 450
        assert_eq!(pace.limit(0), 1450 * MS);
        assert_eq!(pace.limit(1), 2900 * MS);
        let mut near = Pace::default();
        (0..50).for_each(|_| near.sample(MS, false));
        assert_eq!(near.limit(0), LEAST_LIMIT);
    }

    #[test]
    fn a_queue_halves_what_is_under_way_and_an_empty_one_lets_it_grow() {
        let mut pace = Pace::default();
        (0..20).for_each(|_| pace.sample(20 * MS, true));
        assert_eq!(pace.window(), WINDOW);
        // What is not used does not grow, and a path of 300 ms more is no queue.
        pace.sample(320 * MS, false);
        assert_eq!(pace.window(), WINDOW);
        pace.sample(600 * MS, true);
        assert_eq!(pace.window(), WINDOW / 2);
        (0..20).for_each(|_| pace.sample(3000 * MS, true));
        assert_eq!(pace.window(), LEAST_WINDOW);
        pace.sample(400 * MS, true);
        assert_eq!(pace.window(), LEAST_WINDOW + MOST);
        // Whoever finds a full queue at the start does not take it for the path.
        let mut late = Pace::default();
        (0..20).for_each(|_| late.sample(3000 * MS, true));
        assert_eq!(late.window(), LEAST_WINDOW);
        pace.lost();
        assert_eq!(pace.window(), LEAST_WINDOW);
    }
}

//! The propagation delay of the path, and its variation.

use super::{Passage, Stage};
use crate::emulator::counts::DropLocation;
use crate::emulator::random::Random;
use crate::emulator::spec::{DirectionSpec, Distribution, Jitter};

/// A delay with jitter. Unless segments may overtake, none arrives before one that left earlier, even if the delay has
/// decreased in between.
#[derive(Debug)]
pub(super) struct Delay {
    delay_ns: u64,
    jitter: Jitter,
    random: Random,
    /// The last drawn difference, ns, and the time until which it holds.
    drawn_ns: f64,
    until_ns: u64,
    latest_ns: u64,
}

impl Delay {
    pub(super) fn new(random: Random) -> Self {
        Self { delay_ns: 0, jitter: Jitter::default(), random, drawn_ns: 0.0, until_ns: 0, latest_ns: 0 }
    }

    /// The delay of a segment that left the link at a time, ns.
    fn of(&mut self, left_ns: u64) -> u64 {
        if self.jitter.spread.is_zero() {
            return self.delay_ns;
        }
        if left_ns >= self.until_ns {
            let spread = self.jitter.spread.as_nanos() as f64;
            self.drawn_ns = spread
                * match self.jitter.distribution {
                    Distribution::Uniform => 2.0 * self.random.unit() - 1.0,
                    Distribution::Normal => self.random.normal(),
                    Distribution::Exponential => self.random.exponential(),
                };
            self.until_ns = left_ns + self.jitter.every.as_nanos() as u64;
        }
        (self.delay_ns as f64 + self.drawn_ns).max(0.0) as u64
    }
}

impl Stage for Delay {
    fn set(&mut self, direction: &DirectionSpec) -> bool {
        self.delay_ns = direction.delay.as_nanos() as u64;
        if self.jitter != direction.jitter {
            self.until_ns = 0;
        }
        self.jitter = direction.jitter;
        // A path that had a delay before must keep the order even without one.
        self.delay_ns > 0 || !self.jitter.spread.is_zero() || self.latest_ns > 0
    }

    fn pass(&mut self, segment: &mut Passage) -> Result<(), DropLocation> {
        segment.at_ns += self.of(segment.at_ns);
        if !self.jitter.overtake {
            segment.at_ns = segment.at_ns.max(self.latest_ns);
        }
        self.latest_ns = self.latest_ns.max(segment.at_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn stage(direction: &DirectionSpec) -> Delay {
        let mut stage = Delay::new(Random::new(1));
        assert!(stage.set(direction));
        stage
    }

    fn jittery(distribution: Distribution, overtake: bool, every: u64) -> DirectionSpec {
        let (spread, every) = (Duration::from_millis(2), Duration::from_nanos(every));
        DirectionSpec {
            delay: Duration::from_millis(10),
            jitter: Jitter { spread, distribution, every, overtake },
            ..DirectionSpec::default()
        }
    }

    /// Delays in ms of segments that leave at these times.
    fn delays(stage: &mut Delay, times: impl Iterator<Item = u64>) -> Vec<f64> {
        let delay = |at_ns| {
            let mut segment = Passage { at_ns, ..Passage::default() };
            assert_eq!(stage.pass(&mut segment), Ok(()));
            (segment.at_ns - at_ns) as f64 / MS as f64
        };
        times.map(delay).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt())
    }

    #[test]
    fn the_jitter_has_the_requested_distribution() {
        for (distribution, mean, deviation, range) in [
            (Distribution::Uniform, 10.0, 2.0 / 3.0_f64.sqrt(), 8.0..12.0),
            (Distribution::Normal, 10.0, 2.0, 0.0..20.0),
            (Distribution::Exponential, 12.0, 2.0, 10.0..60.0),
        ] {
            let mut stage = stage(&jittery(distribution, true, 0));
            let found = delays(&mut stage, (0..100_000).map(|n| n * 1_000));
            let (found_mean, found_deviation) = moments(&found);
            assert!((found_mean - mean).abs() < 0.05, "{distribution:?}: mean {found_mean}");
            assert!((found_deviation - deviation).abs() < 0.05, "{distribution:?}: deviation {found_deviation}");
            assert!(found.iter().all(|delay| range.contains(delay)), "{distribution:?}");
        }
    }

    #[test]
    fn nothing_overtakes_unless_it_may() {
        for overtake in [false, true] {
            let mut stage = stage(&jittery(Distribution::Uniform, overtake, 0));
            let delays = delays(&mut stage, (0..1_000).map(|n| n * MS / 10));
            let arrivals: Vec<f64> = delays.iter().enumerate().map(|(n, delay)| n as f64 / 10.0 + delay).collect();
            let overtaken = arrivals.windows(2).filter(|pair| pair[1] < pair[0] - 1e-9).count();
            assert_eq!(overtaken > 0, overtake);
        }
    }

    #[test]
    fn a_difference_holds_for_its_time() {
        let mut stage = stage(&jittery(Distribution::Uniform, true, 10 * MS));
        let mut delays = delays(&mut stage, (0..100).map(|n| n * MS));
        delays.dedup();
        assert_eq!(delays.len(), 10);
    }

    #[test]
    fn a_path_that_becomes_shorter_keeps_the_order() {
        let mut stage = stage(&DirectionSpec { delay: Duration::from_millis(10), ..DirectionSpec::default() });
        assert_eq!(delays(&mut stage, [0].into_iter()), [10.0]);
        assert!(stage.set(&DirectionSpec::default()));
        assert_eq!(delays(&mut stage, [MS, 9 * MS, 11 * MS].into_iter()), [9.0, 1.0, 0.0]);
    }
}

//! Random loss: each segment is lost with the same probability, independent of all others.
//!
//! It comes after the queue: a lost segment has used the link.

use super::{Passage, Stage};
use crate::emulator::counts::DropLocation;
use crate::emulator::random::Random;
use crate::emulator::spec::DirectionSpec;

/// Independent random loss.
#[derive(Debug)]
pub(super) struct Loss {
    probability: f64,
    random: Random,
}

impl Loss {
    pub(super) fn new(random: Random) -> Self {
        Self { probability: 0.0, random }
    }
}

impl Stage for Loss {
    fn set(&mut self, direction: &DirectionSpec) -> bool {
        self.probability = direction.loss;
        direction.loss > 0.0
    }

    fn pass(&mut self, _: &mut Passage) -> Result<(), DropLocation> {
        if self.random.chance(self.probability) { Err(DropLocation::Loss) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_is_lost_is_the_probability() {
        for (probability, seed) in [(1e-3, 1), (0.01, 2), (0.5, 3), (1.0, 4)] {
            let mut loss = Loss::new(Random::new(seed));
            assert!(loss.set(&DirectionSpec { loss: probability, ..DirectionSpec::default() }));
            let n = 1_000_000;
            let count = (0..n).filter(|_| loss.pass(&mut Passage::default()).is_err()).count() as f64;
            let (mean, deviation) =
                (f64::from(n) * probability, (f64::from(n) * probability * (1.0 - probability)).sqrt());
            assert!((count - mean).abs() <= 4.0 * deviation, "{count} of {n} at {probability}");
        }
    }
}

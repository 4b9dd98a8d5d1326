//! Segments that arrive twice, each with the same probability. The copy follows at once and is not duplicated again.

use super::{Passage, Stage};
use crate::emulator::counts::DropLocation;
use crate::emulator::random::Random;
use crate::emulator::spec::DirectionSpec;

/// Independent duplication.
#[derive(Debug)]
pub(super) struct Duplicate {
    probability: f64,
    random: Random,
}

impl Duplicate {
    pub(super) fn new(random: Random) -> Self {
        Self { probability: 0.0, random }
    }
}

impl Stage for Duplicate {
    fn set(&mut self, direction: &DirectionSpec) -> bool {
        self.probability = direction.duplicate;
        direction.duplicate > 0.0
    }

    fn pass(&mut self, segment: &mut Passage) -> Result<(), DropLocation> {
        segment.twice = self.random.chance(self.probability);
        Ok(())
    }
}

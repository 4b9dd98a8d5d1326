//! Corruption: at most one flipped bit per segment, each segment with the same probability.

use super::{Passage, Stage};
use crate::emulator::counts::DropLocation;
use crate::emulator::random::Random;
use crate::emulator::spec::DirectionSpec;

/// Independent corruption.
#[derive(Debug)]
pub(super) struct Corrupt {
    probability: f64,
    random: Random,
}

impl Corrupt {
    pub(super) fn new(random: Random) -> Self {
        Self { probability: 0.0, random }
    }
}

impl Stage for Corrupt {
    fn set(&mut self, direction: &DirectionSpec) -> bool {
        self.probability = direction.corrupt;
        direction.corrupt > 0.0
    }

    fn pass(&mut self, segment: &mut Passage) -> Result<(), DropLocation> {
        if self.random.chance(self.probability) {
            segment.flip = Some(self.random.bits());
        }
        Ok(())
    }
}

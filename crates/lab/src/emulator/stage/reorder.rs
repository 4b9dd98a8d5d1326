//! Segments that are delayed longer than the path, so that those after them arrive before them.

use super::{Passage, Stage};
use crate::emulator::counts::DropLocation;
use crate::emulator::random::Random;
use crate::emulator::spec::{DirectionSpec, Reorder};

/// Delays segments at random, independently of each other.
#[derive(Debug)]
pub(super) struct KeepBack {
    reorder: Reorder,
    random: Random,
}

impl KeepBack {
    pub(super) fn new(random: Random) -> Self {
        Self { reorder: Reorder::default(), random }
    }
}

impl Stage for KeepBack {
    fn set(&mut self, direction: &DirectionSpec) -> bool {
        self.reorder = direction.reorder;
        direction.reorder.probability > 0.0
    }

    fn pass(&mut self, segment: &mut Passage) -> Result<(), DropLocation> {
        if self.random.chance(self.reorder.probability) {
            segment.kept_back = true;
            segment.at_ns += self.reorder.by.as_nanos() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn some_segments_travel_longer() {
        let mut stage = KeepBack::new(Random::new(1));
        let reorder = Reorder { probability: 0.25, by: Duration::from_millis(2) };
        assert!(stage.set(&DirectionSpec { reorder, ..DirectionSpec::default() }));
        let mut kept = 0;
        for at_ns in 0..1_000 {
            let mut segment = Passage { at_ns, ..Passage::default() };
            assert_eq!(stage.pass(&mut segment), Ok(()));
            assert_eq!(segment.at_ns, at_ns + if segment.kept_back { 2_000_000 } else { 0 });
            kept += u32::from(segment.kept_back);
        }
        assert!((200..300).contains(&kept), "{kept}");
    }
}

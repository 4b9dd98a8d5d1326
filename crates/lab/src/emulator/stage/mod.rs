//! The stages that a segment passes after the link: noise and delay.
//!
//! A stage receives the time; it reads no clock. A new one is a file here with a type that implements [`Stage`], and a
//! line in [`Stages::new`], which fixes the order.

mod bursts;
mod corrupt;
mod delay;
mod duplicate;
mod loss;
mod reorder;

use super::counts::DropLocation;
use super::random::Random;
use super::spec::DirectionSpec;

/// A segment on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Passage {
    /// When it reaches the next stage, ns of the emulator's clock.
    pub(crate) at_ns: u64,
    /// The bit of its IP payload that is flipped, modulo the payload's length.
    pub(crate) flip: Option<u64>,
    /// It arrives twice.
    pub(crate) twice: bool,
    /// It was delayed so that others overtake it.
    pub(crate) kept_back: bool,
}

/// A part of the path in one direction.
pub(crate) trait Stage: Send {
    /// Changes the stage from now on. Returns whether the stage is active then.
    fn set(&mut self, direction: &DirectionSpec) -> bool;

    /// Processes a segment, in the link's sending order: sets when it leaves, or returns where it was dropped.
    fn pass(&mut self, segment: &mut Passage) -> Result<(), DropLocation>;
}

/// The stages of one direction.
pub(crate) struct Stages {
    /// In order, each with whether it is active.
    stages: Vec<(bool, Box<dyn Stage>)>,
}

impl Stages {
    /// `seed` makes the random choices repeatable: those of one stage do not depend on the others.
    pub(crate) fn new(direction: &DirectionSpec, seed: u64) -> Self {
        let random = |series| Random::split(seed, series);
        let stages: [Box<dyn Stage>; 6] = [
            Box::new(bursts::BurstLoss::new(random(1))),
            Box::new(loss::Loss::new(random(2))),
            Box::new(corrupt::Corrupt::new(random(3))),
            Box::new(duplicate::Duplicate::new(random(4))),
            Box::new(delay::Delay::new(random(5))),
            Box::new(reorder::KeepBack::new(random(6))),
        ];
        let mut stages = Self { stages: stages.into_iter().map(|stage| (false, stage)).collect() };
        stages.set(direction);
        stages
    }

    /// Changes the path from now on.
    pub(crate) fn set(&mut self, direction: &DirectionSpec) {
        for (busy, stage) in &mut self.stages {
            *busy = stage.set(direction);
        }
    }

    /// Passes a segment that the link sent at a time through all stages.
    pub(crate) fn pass(&mut self, at_ns: u64) -> Result<Passage, DropLocation> {
        let mut segment = Passage { at_ns, ..Passage::default() };
        for (busy, stage) in &mut self.stages {
            if *busy {
                stage.pass(&mut segment)?;
            }
        }
        Ok(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_path_without_impairments_changes_nothing() {
        let mut stages = Stages::new(&DirectionSpec::default(), 1);
        assert_eq!(stages.pass(7), Ok(Passage { at_ns: 7, ..Passage::default() }));
    }

    #[test]
    fn a_stage_draws_independently_of_the_others() {
        let quiet = DirectionSpec { loss: 0.1, ..DirectionSpec::default() };
        let noisy = DirectionSpec { corrupt: 0.3, duplicate: 0.3, delay: Duration::from_millis(1), ..quiet.clone() };
        let lost = |direction: &DirectionSpec, seed| {
            let mut stages = Stages::new(direction, seed);
            (0..1_000).map(|at| stages.pass(at).is_err()).collect::<Vec<_>>()
        };
        assert_eq!(lost(&quiet, 7), lost(&noisy, 7));
        assert_ne!(lost(&quiet, 7), lost(&quiet, 8));
    }

    #[test]
    fn a_lost_segment_has_no_other_fate() {
        let mut stages =
            Stages::new(&DirectionSpec { loss: 1.0, corrupt: 1.0, duplicate: 1.0, ..DirectionSpec::default() }, 1);
        assert_eq!(stages.pass(7), Err(DropLocation::Loss));
    }
}

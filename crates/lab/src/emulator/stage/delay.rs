//! The length of the path: every segment arrives so much later.

use std::time::Duration;

use super::{Passage, Stage};
use crate::emulator::counts::Place;

/// A fixed delay.
#[derive(Debug)]
pub(super) struct Delay {
    ns: u64,
}

impl Delay {
    pub(super) fn new(delay: Duration) -> Self {
        Self { ns: delay.as_nanos() as u64 }
    }
}

impl Stage for Delay {
    fn pass(&mut self, segment: &mut Passage) -> Result<(), Place> {
        segment.at_ns += self.ns;
        Ok(())
    }
}

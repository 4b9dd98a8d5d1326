//! Noise on the path: each segment is lost with the same probability, independent of all others.
//!
//! It stands after the queue: what is lost has used the link.

use super::{Passage, Stage};
use crate::emulator::counts::Place;

/// Independent random loss from a seed.
#[derive(Debug)]
pub(super) struct Loss {
    /// A draw below this is a loss.
    threshold: u64,
    state: u64,
}

impl Loss {
    /// `probability` from 0 to 1, to 2^-53.
    pub(super) fn new(probability: f64, seed: u64) -> Self {
        Self { threshold: (probability * (1_u64 << 53) as f64) as u64, state: seed }
    }

    /// 53 random bits: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 11
    }
}

impl Stage for Loss {
    fn pass(&mut self, _: &mut Passage) -> Result<(), Place> {
        if self.draw() < self.threshold { Err(Place::Loss) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(probability: f64, seed: u64, segments: usize) -> Vec<bool> {
        let mut loss = Loss::new(probability, seed);
        (0..segments).map(|_| loss.pass(&mut Passage { at_ns: 0, wire_bytes: 1 }).is_err()).collect()
    }

    #[test]
    fn the_share_that_is_lost_is_the_probability() {
        for (probability, seed) in [(1e-3, 1), (0.01, 2), (0.5, 3)] {
            let n = 1_000_000;
            let count = lost(probability, seed, n).iter().filter(|lost| **lost).count() as f64;
            let (mean, deviation) = (n as f64 * probability, (n as f64 * probability * (1.0 - probability)).sqrt());
            assert!((count - mean).abs() < 4.0 * deviation, "{count} of {n} at {probability}");
        }
    }

    #[test]
    fn a_seed_loses_the_same_segments_again_and_another_seed_others() {
        assert_eq!(lost(0.1, 7, 1_000), lost(0.1, 7, 1_000));
        assert_ne!(lost(0.1, 7, 1_000), lost(0.1, 8, 1_000));
        assert!(lost(1.0, 7, 100).iter().all(|lost| *lost));
    }
}

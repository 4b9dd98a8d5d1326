//! Random draws.

use model::SplitMix64;

/// A source of draws.
#[derive(Debug, Clone)]
pub struct Chance(SplitMix64);

impl Chance {
    /// Of a seed and the number of a path.
    pub fn new(seed: u64, index: u32) -> Self {
        let mut mixed = SplitMix64::new(seed ^ u64::from(index + 1).wrapping_mul(SplitMix64::STEP));
        Self(SplitMix64::new(mixed.next_u64()))
    }

    /// Evenly in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.uniform()
    }

    /// Evenly on the logarithmic scale in [low, high).
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.0.uniform() < probability
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len())]
    }

    /// In random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

//! Seeded random numbers: the same seed gives the same sequence on every machine. No other code has a generator of its own.

/// Steele, Lea and Flood's SplitMix64 generator (2014, "Fast splittable pseudorandom number generators"): 64 bits of state,
/// good enough for shuffling and resampling, not for secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
    /// The unused second value of a Box-Muller pair.
    spare: Option<f64>,
}

impl SplitMix64 {
    /// The odd number next to 2^64 over the golden ratio: the step of its state. It also spreads small numbers over the seeds.
    pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// A generator that starts at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number in [0, 1), evenly distributed.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An index below `bound`; 0 for a bound of 0. The bias of the multiply-and-shift is below 2^-32 for lists that fit in
    /// memory.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A standard normal value (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // 1 - uniform lies in (0, 1], so its logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_outputs_match_the_published_generator() {
        // Reference values of SplitMix64 with seed 1234567, as printed by the authors' C code.
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn normal_values_have_mean_0_and_variance_1() {
        let mut random = SplitMix64::new(3);
        let values: Vec<f64> = (0..40_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 40_000.0;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "mean {mean}, variance {variance}");
    }

    proptest! {
        #[test]
        fn shuffling_loses_nothing(seed: u64, length in 0usize..50) {
            let mut items: Vec<usize> = (0..length).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items.sort_unstable();
            prop_assert_eq!(items, (0..length).collect::<Vec<_>>());
        }

        #[test]
        fn below_stays_below(seed: u64, bound in 1usize..1000) {
            prop_assert!(SplitMix64::new(seed).below(bound) < bound);
        }
    }
}

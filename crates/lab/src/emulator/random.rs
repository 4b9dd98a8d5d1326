//! Random choices from a seed, so that a path can be repeated.

use std::f64::consts::TAU;

use model::SplitMix64;

/// The program's generator, with what paths need. Each kind of choice takes the same number of draws whatever its result.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The start of another, independent series from the same seed.
    pub(crate) fn split(seed: u64, series: u64) -> Self {
        Self::new(Self::new(seed ^ series.wrapping_mul(0xd134_2543_de82_ef95)).bits())
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in [0, 1), in steps of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.uniform()
    }

    /// True with this probability, to 2^-53; always one draw.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Standard normal (G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (TAU * self.unit()).cos()
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of 100,000 draws.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let draws: Vec<f64> = (0..100_000).map(|_| draw()).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        (mean, draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn the_distributions_have_their_moments() {
        let mut random = Random::new(1);
        for (name, (mean, variance), expected) in [
            ("uniform", moments(|| random.unit()), (0.5, 1.0 / 12.0)),
            ("normal", moments(|| random.normal()), (0.0, 1.0)),
            ("exponential", moments(|| random.exponential()), (1.0, 1.0)),
        ] {
            // The bounds are five standard deviations of the mean of this many draws, and of their variance.
            assert!((mean - expected.0).abs() < 0.02, "{name}: mean {mean}");
            assert!((variance - expected.1).abs() < 0.05, "{name}: variance {variance}");
        }
    }

    #[test]
    fn series_of_one_seed_differ_and_repeat() {
        let draws = |series| {
            let mut random = Random::split(7, series);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert!((0..1_000).all(|seed| Random::new(seed).chance(1.0) && !Random::new(seed).chance(0.0)));
    }
}

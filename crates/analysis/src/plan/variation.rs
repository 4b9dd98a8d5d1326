//! Pairs whose rounds vary: a lossy or flapping path is fast in one test and a hundred times slower in the next one.
//!
//! Such a pair cannot be tested by its mean, since its own variance hides it. A round counts as slow if it is beyond what the fit and the
//! trials of all pairs make expect: four standard deviations of one test, and [`LEAST`]. A pair is unstable if it has so many slow
//! tests as chance gives a pair hardly ever, by how often tests of other pairs are slow.

use model::median;

use super::logs::LEAST;
use super::matrix::Matrix;
use crate::stats::sample_sd;

/// Standard deviations of one test beyond which it is slow.
const BEYOND: f64 = 4.0;

/// How the tests of a matrix vary.
pub(super) struct Variation {
    /// The standard deviation of one test around the fit, as a logarithm.
    pub(super) scale: f64,
    rounds: Vec<Rounds>,
    /// Slow tests, and all, of pairs of which at most half are slow.
    slow: usize,
    all: usize,
}

/// The rounds of a pair, as logarithms of their ratio to what is expected of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rounds {
    /// How many are slow, and how many there are.
    pub(super) slow: usize,
    pub(super) all: usize,
    /// In how many nothing arrived.
    pub(super) nothing: usize,
    /// From the least slow one to the slowest one.
    pub(super) range: [f64; 2],
    /// They differ from each other by more than one test does from what is expected.
    pub(super) vary: bool,
}

impl Rounds {
    /// Whether most of them say nothing on how often tests of others are slow.
    fn is_rarely_slow(&self) -> bool {
        2 * self.slow <= self.all
    }
}

impl Variation {
    pub(super) fn of(matrix: &Matrix) -> Self {
        let own_sd = |rounds: &[Option<f64>]| {
            let known: Vec<f64> = rounds.iter().flatten().copied().collect();
            Some(sample_sd(&known)? / of_median_sd(known.len() as f64 - 1.0))
        };
        let spreads: Vec<f64> = matrix.pairs.behind.iter().filter_map(|behind| own_sd(&behind.rounds)).collect();
        let trials = median(&spreads).unwrap_or(0.0);
        let scale = matrix.fit.scale().hypot(trials);
        let sign = matrix.pairs.slow();
        let rounds: Vec<Rounds> = matrix
            .pairs
            .behind
            .iter()
            .enumerate()
            .map(|(place, behind)| {
                let limit = limit(matrix.scale(place).hypot(trials));
                let expected = matrix.expected(place);
                let mut ratios: Vec<f64> = behind.rounds.iter().flatten().map(|log| log - expected).collect();
                ratios.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
                let nothing = behind.rounds.len() - ratios.len();
                let slow = nothing + ratios.iter().filter(|ratio| **ratio * sign > limit).count();
                let range = [ratios.first().copied().unwrap_or(0.0), ratios.last().copied().unwrap_or(0.0)];
                let vary = (range[1] - range[0]).abs() > limit || (nothing > 0 && !ratios.is_empty());
                Rounds { slow, all: behind.rounds.len(), nothing, range, vary }
            })
            .collect();
        let rarely = || rounds.iter().filter(|own| own.is_rarely_slow());
        let (slow, all) = (rarely().map(|own| own.slow).sum(), rarely().map(|own| own.all).sum());
        Self { scale, rounds, slow, all }
    }

    /// The rounds of a pair.
    pub(super) fn rounds(&self, place: usize) -> &Rounds {
        &self.rounds[place]
    }

    /// Whether one test with this logarithm of its ratio to what is expected is slow; `slow` is the sign of that.
    pub(super) fn is_slow(&self, ratio: f64, slow: f64) -> bool {
        ratio * slow > limit(self.scale)
    }

    /// The probability that as many of this many tests of a pair are slow, if they are slow as often as those of other pairs, and as
    /// the share of `others`.
    pub(super) fn chance(&self, place: usize, slow: usize, all: usize, others: f64) -> f64 {
        let own = &self.rounds[place];
        let (own_slow, own_all) = if own.is_rarely_slow() { (own.slow, own.all) } else { (0, 0) };
        let share = (1 + self.slow - own_slow) as f64 / (1 + self.all - own_all) as f64;
        binomial_tail(slow, all, share.max(others))
    }
}

fn limit(scale: f64) -> f64 {
    LEAST.ln().max(BEYOND * scale)
}

/// The median of a sample's standard deviation, in those of the normal distribution (Wilson and Hilferty, 1931).
fn of_median_sd(df: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * df)).powf(1.5)
}

/// The probability of `least` or more successes in `all` trials with this `share`.
fn binomial_tail(least: usize, all: usize, share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    let mut coefficient = 1.0;
    let mut below = 0.0;
    for count in 0..least.min(all + 1) {
        below += coefficient * share.powi(count as i32) * (1.0 - share).powi((all - count) as i32);
        coefficient *= (all - count) as f64 / (count + 1) as f64;
    }
    // The difference loses what is below the precision, which no level is.
    (1.0 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_slow_tests_is_the_binomial_tail() {
        assert_eq!(binomial_tail(0, 10, 0.1), 1.0);
        // 1 - 0.9^10, and 1 - 0.9^10 - 10 * 0.1 * 0.9^9.
        assert!((binomial_tail(1, 10, 0.1) - 0.651_321_559_9).abs() < 1e-9);
        assert!((binomial_tail(2, 10, 0.1) - 0.263_901_070_9).abs() < 1e-9);
        assert!((binomial_tail(3, 3, 0.5) - 0.125).abs() < 1e-12);
    }

    #[test]
    fn the_median_of_standard_deviations_is_corrected() {
        // The square root of the median of chi-squared with 2 degrees of freedom, over 2: sqrt(ln 2).
        assert!((of_median_sd(2.0) - 2f64.ln().sqrt()).abs() < 0.01);
        assert!((of_median_sd(1.0) - 0.6745).abs() < 0.02);
    }
}

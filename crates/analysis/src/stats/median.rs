//! The median of a series, with an interval between two of its order statistics.
//!
//! Half of the values lie below the median, so their number is binomial whatever the distribution: an interval between two order
//! statistics covers the median with a known probability (David and Nagaraja, 2003, "Order Statistics", 7.1). One disturbed value in
//! ten moves neither the median nor the interval by much, and heavy tails and two modes need no assumption.
//!
//! Correlation between successive values widens the interval. It is estimated from the normal scores of the ranks, so outliers do not
//! hide it. A short series says little about its correlation; an upper bound is used. The factor and the bounds were set by simulation
//! with the stop rule (tests/all/coverage.rs, docs/manual/statistics.md).

use statrs::distribution::{ContinuousCDF, Normal};
use std::f64::consts::FRAC_2_PI;

use super::batch::lag1;
use super::interval::ConfidenceInterval;
use super::summary::quantile_of_sorted;

/// Fewest values with an interval.
pub const MIN_VALUES: usize = 10;
/// Distance of the bound of a correlation from its estimate, in standard errors.
const BOUND: f64 = 1.6;
/// Smallest correlation that is assumed at [`MIN_VALUES`] values; it falls with the square root of their number.
const FLOOR: f64 = 0.3;
/// Largest correlation that is assumed.
const MOST: f64 = 0.95;

/// The median of a series and its precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianEstimate {
    /// Median of all values.
    pub median: f64,
    /// Interval of the median at the requested confidence.
    pub interval: ConfidenceInterval,
    /// Number of independent values with the same precision.
    pub effective_n: f64,
    /// The lag-1 correlation that the interval allows for.
    pub correlation: f64,
}

/// The median of a series of possibly correlated values, with its interval at `confidence`. A series so correlated that no two order
/// statistics suffice is bounded by its range. `None` for fewer than [`MIN_VALUES`] values or a confidence outside 0 to 1.
#[must_use]
pub fn median_estimate(values: &[f64], confidence: f64) -> Option<MedianEstimate> {
    median_with(values, confidence, correlation_bound(values)?)
}

/// As [`median_estimate`], with a known lag-1 correlation between successive values (0 for independent ones).
#[must_use]
pub fn median_with(values: &[f64], confidence: f64, correlation: f64) -> Option<MedianEstimate> {
    if values.len() < MIN_VALUES || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let inflation = inflation(correlation, sorted.len());
    let position = (n - 1.0) / 2.0 - standard_normal(0.5 + confidence / 2.0) * (n * inflation).sqrt() / 2.0;
    let share = position.max(0.0) / (n - 1.0);
    Some(MedianEstimate {
        median: quantile_of_sorted(&sorted, 0.5)?,
        interval: ConfidenceInterval {
            low: quantile_of_sorted(&sorted, share)?,
            high: quantile_of_sorted(&sorted, 1.0 - share)?,
        },
        effective_n: n / inflation,
        correlation,
    })
}

/// An upper bound of the lag-1 correlation of a series, from the normal scores of its ranks; never below a floor that falls with the
/// number of values. `None` for fewer than [`MIN_VALUES`] values.
#[must_use]
pub fn correlation_bound(values: &[f64]) -> Option<f64> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let n = values.len() as f64;
    let found = lag1(&normal_scores(values))?;
    let bound = found + BOUND * ((1.0 - found * found).max(0.0) / n).sqrt();
    Some(bound.clamp(FLOOR * (MIN_VALUES as f64 / n).sqrt(), MOST))
}

/// The normal scores of the values' ranks (Blom, 1958); equal values share the mean of their ranks.
pub(super) fn normal_scores(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut scores = vec![0.0; values.len()];
    let mut begin = 0;
    for equal in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let rank = begin as f64 + (equal.len() as f64 + 1.0) / 2.0;
        let score = standard_normal((rank - 0.375) / (values.len() as f64 + 0.25));
        equal.iter().for_each(|at| scores[*at] = score);
        begin += equal.len();
    }
    scores
}

/// The factor by which a first-order autoregression with coefficient `r` between the normal scores increases the variance of the share
/// of values below the median: two normal values with correlation c lie on the same side of it with probability 1/2 + asin(c)/pi
/// (Sheppard, 1899).
fn inflation(r: f64, n: usize) -> f64 {
    let mut power = 1.0;
    let mut sum = 1.0;
    for lag in 1..n {
        power *= r;
        if power.abs() < 1e-9 {
            break;
        }
        sum += 2.0 * (1.0 - lag as f64 / n as f64) * FRAC_2_PI * power.asin();
    }
    sum
}

/// Quantile of the standard normal distribution; `p` lies between 0 and 1.
fn standard_normal(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    /// A first-order autoregression with standard deviation 1.
    fn correlated(r: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut value = random.normal();
        (0..n)
            .map(|_| {
                value = r * value + (1.0 - r * r).sqrt() * random.normal();
                value
            })
            .collect()
    }

    #[test]
    fn the_ranks_of_independent_values_match_the_binomial() {
        // Between the 6th and the 15th of 20 values lie 95.86 % (binomial tails); 95 % is slightly inside.
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let found = median_with(&values, 0.95, 0.0).unwrap();
        assert!((found.median - 10.5).abs() < 1e-12);
        assert!((6.0..7.0).contains(&found.interval.low) && (14.0..15.0).contains(&found.interval.high), "{found:?}");
        assert!((found.effective_n - 20.0).abs() < 1e-9);
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(median_estimate(&[1.0; 9], 0.95), None);
        assert_eq!(median_estimate(&[1.0; 10], 1.0), None);
        assert!(median_estimate(&[1.0; 10], 0.95).is_some_and(|found| found.interval.half_width() == 0.0));
    }

    #[test]
    fn correlation_widens_and_outliers_do_not() {
        let independent = correlated(0.0, 400, 1);
        let dependent = correlated(0.8, 400, 1);
        let of = |values: &[f64]| median_estimate(values, 0.95).unwrap();
        assert!(of(&dependent).effective_n * 4.0 < of(&independent).effective_n);
        assert!((0.75..0.9).contains(&of(&dependent).correlation), "{:?}", of(&dependent));
        let mut disturbed = independent.clone();
        disturbed.iter_mut().step_by(10).for_each(|value| *value += 1e6);
        assert!(of(&disturbed).interval.half_width() < 1.5 * of(&independent).interval.half_width());
    }

    #[test]
    fn equal_values_share_their_rank() {
        let scores = normal_scores(&[3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!((scores[0], scores[0]), (scores[2], scores[4]));
        assert!(scores[1] < scores[3] && scores[3] < scores[0]);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_scales(
            values in prop::collection::vec(0.1f64..1e3, 10..80), factor in 0.001f64..1000.0
        ) {
            let found = median_estimate(&values, 0.95).unwrap();
            prop_assert!(found.interval.contains(found.median));
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            let scaled = median_estimate(&scaled, 0.95).unwrap();
            prop_assert!((scaled.median / found.median / factor - 1.0).abs() < 1e-9);
            prop_assert!((scaled.effective_n - found.effective_n).abs() < 1e-6);
        }
    }
}

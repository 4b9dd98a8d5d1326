//! The mean of an autocorrelated series.
//!
//! Two corrections, one after the other:
//! 1. A long series is divided into a fixed number of batches and represented by their means. Schmeiser (1982, "Batch size effects
//!    in the analysis of simulation output") shows that 10 to 30 batches lose little and that larger batches are the safer side.
//!    A fixed number also captures slow waves hidden under white noise, which a search for "the smallest batch without significant
//!    correlation" misses.
//! 2. The lag-1 correlation that remains between the batch means widens the interval as for a first-order autoregression
//!    (Anderson, 1971, "The Statistical Analysis of Time Series"), with fewer degrees of freedom.

use super::interval::{ConfidenceInterval, t_critical};
use super::summary::{mean, sample_sd};

/// Number of batches of a long series; a series of fewer than twice as many values is not divided.
pub const BATCHES: usize = 40;
/// Number of batches of the samples within a trial. tests/all/coverage.rs checks it and [`MIN_SAMPLES`].
const SAMPLE_BATCHES: usize = 20;
/// Fewest samples within a trial that give an interval.
pub const MIN_SAMPLES: usize = 40;
/// Fewest values from which a correlation is estimated.
const MIN_FOR_CORRELATION: usize = 10;
/// Lower limit of the effective number of values, which keeps the interval of a short series finite.
const MIN_EFFECTIVE: f64 = 3.0;

/// The mean of a series and its precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesEstimate {
    /// Mean of all values.
    pub mean: f64,
    /// Interval of the mean at the requested confidence.
    pub interval: ConfidenceInterval,
    /// Standard error of the mean, correlation included.
    pub standard_error: f64,
    /// Number of independent values with the same precision.
    pub effective_n: f64,
    /// Values per batch; 1 if the series was not divided.
    pub batch: usize,
    /// Lag-1 correlation between the batch means; 0 if it is negative or cannot be estimated.
    pub lag1: f64,
}

/// Lag-1 autocorrelation, corrected for the downward bias of short series (Marriott and Pope, 1954: about -(1 + 4r)/n).
/// Within -0.99 to 0.99; 0 for a constant series; `None` for fewer than six values.
#[must_use]
pub fn lag1(values: &[f64]) -> Option<f64> {
    if values.len() < 6 {
        return None;
    }
    let n = values.len() as f64;
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    if squares == 0.0 {
        return Some(0.0);
    }
    let products: f64 = values.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
    Some(((n * products / squares + 1.0) / (n - 4.0)).clamp(-0.99, 0.99))
}

/// Means of consecutive batches of `batch` values (at least 1). Values that do not fill a batch are dropped at the front, where a
/// series is least stable.
#[must_use]
pub fn batch_means(values: &[f64], batch: usize) -> Vec<f64> {
    let batch = batch.max(1);
    let skipped = values.len() % batch;
    values[skipped..].chunks_exact(batch).map(|chunk| chunk.iter().sum::<f64>() / batch as f64).collect()
}

/// Interval for the mean of a stationary, possibly correlated series, by the two steps above.
/// `None` for fewer than two values or a confidence outside 0 to 1. For a short series without positive correlation this is
/// Student's interval.
#[must_use]
pub fn series_interval(values: &[f64], confidence: f64) -> Option<SeriesEstimate> {
    batched_interval(values, BATCHES, confidence)
}

/// Interval for the mean of samples within one trial, which are more correlated than trials: fewer batches are the safer side.
/// `None` for fewer than [`MIN_SAMPLES`].
#[must_use]
pub fn samples_interval(samples: &[f64], confidence: f64) -> Option<SeriesEstimate> {
    if samples.len() < MIN_SAMPLES { None } else { batched_interval(samples, SAMPLE_BATCHES, confidence) }
}

fn batched_interval(values: &[f64], batches: usize, confidence: f64) -> Option<SeriesEstimate> {
    let batch = (values.len() / batches).max(1);
    let means = batch_means(values, batch);
    let sd = sample_sd(&means)?;
    let n = means.len() as f64;
    let lag1 = if means.len() < MIN_FOR_CORRELATION { 0.0 } else { lag1(&means)?.max(0.0) };
    let sum = correlation_sum(lag1, means.len()).min((n / MIN_EFFECTIVE).max(1.0));
    // Var(mean) is variance * sum / n, and the sample variance itself estimates variance * (n - sum) / (n - 1).
    let inflation = sum * (n - 1.0) / (n - sum);
    let effective_n = n / sum;
    let standard_error = sd * (inflation / n).sqrt();
    let centre = mean(values)?;
    let half = t_critical(confidence, effective_n - 1.0)? * standard_error;
    Some(SeriesEstimate {
        mean: centre,
        interval: ConfidenceInterval::around(centre, half),
        standard_error,
        effective_n,
        batch,
        lag1,
    })
}

/// `1 + 2 * sum of (1 - k/n) r^k` for k from 1 to n - 1: the factor by which a first-order autoregression with coefficient `r`
/// increases the variance of a mean of n values.
fn correlation_sum(r: f64, n: usize) -> f64 {
    let mut power = 1.0;
    let mut sum = 1.0;
    for lag in 1..n {
        power *= r;
        if power < 1e-9 {
            break;
        }
        sum += 2.0 * (1.0 - lag as f64 / n as f64) * power;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::interval::t_interval;
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    /// A stationary first-order autoregression with variance 1.
    fn autoregression(phi: f64, length: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut state = random.normal();
        let mut step = || {
            state = phi * state + (1.0 - phi * phi).sqrt() * random.normal();
            state
        };
        (0..length).map(|_| step()).collect()
    }

    #[test]
    fn lag1_finds_the_coefficient_it_was_given() {
        for phi in [0.0, 0.3, 0.5, 0.8] {
            let found = lag1(&autoregression(phi, 20_000, 5)).unwrap();
            assert!((found - phi).abs() < 0.02, "{found} for {phi}");
        }
        assert_eq!(lag1(&[1.0; 5]), None);
        assert_eq!(lag1(&[1.0; 20]), Some(0.0));
    }

    #[test]
    fn the_bias_of_short_series_is_corrected() {
        let mean_of = |length: usize| {
            (0..4000).map(|seed| lag1(&autoregression(0.3, length, seed)).unwrap()).sum::<f64>() / 4000.0
        };
        let found = mean_of(25);
        assert!((found - 0.3).abs() < 0.03, "{found}");
    }

    #[test]
    fn correlation_sum_agrees_with_the_direct_double_sum() {
        let (r, n) = (0.6f64, 17usize);
        let direct: f64 =
            (0..n).flat_map(|i| (0..n).map(move |j| r.powi(i.abs_diff(j) as i32))).sum::<f64>() / n as f64;
        assert!((correlation_sum(r, n) - direct).abs() < 1e-6);
        assert!((correlation_sum(0.0, 9) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_correlated_series_has_fewer_effective_values() {
        let estimate = series_interval(&autoregression(0.8, 8000, 9), 0.95).unwrap();
        assert_eq!(estimate.batch, 200);
        // 8000 values at 0.8 have 8000 * 0.2 / 1.8 = 889 effective ones, represented by 40 batch means.
        assert!(estimate.effective_n <= 40.0);
        let expected = (9.0f64 / 8000.0).sqrt();
        assert!((estimate.standard_error / expected - 1.0).abs() < 0.35, "{}", estimate.standard_error);
    }

    #[test]
    fn short_or_alternating_series_get_students_interval() {
        for values in [vec![1.0, 2.0, 4.0], (0..20).map(|i| f64::from(i % 2)).collect()] {
            let series = series_interval(&values, 0.95).unwrap().interval;
            let student = t_interval(&values, 0.95).unwrap();
            assert!((series.low - student.low).abs() < 1e-9 && (series.high - student.high).abs() < 1e-9);
        }
    }

    proptest! {
        #[test]
        fn batches_keep_the_mean_of_what_they_hold(values in prop::collection::vec(-1e3f64..1e3, 1..200), batch in 1usize..20) {
            let means = batch_means(&values, batch);
            prop_assert_eq!(means.len(), values.len() / batch);
            if !means.is_empty() {
                let tail = &values[values.len() % batch..];
                prop_assert!((mean(&means).unwrap() - mean(tail).unwrap()).abs() < 1e-6);
            }
        }

        #[test]
        fn never_narrower_than_students_on_undivided_series(values in prop::collection::vec(0.0f64..1e3, 2..79)) {
            let series = series_interval(&values, 0.95).unwrap().interval.half_width();
            let student = t_interval(&values, 0.95).unwrap().half_width();
            prop_assert!(series.is_finite() && series >= student * (1.0 - 1e-9));
        }
    }
}

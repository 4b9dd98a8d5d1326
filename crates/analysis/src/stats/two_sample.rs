//! Comparison of two independent samples, and correction for many tests.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::interval::{ConfidenceInterval, t_critical};
use super::summary::{mean, sample_sd};

/// The difference of two samples' means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanDifference {
    /// Mean of the second less mean of the first, in the values' unit.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Degrees of freedom (Welch and Satterthwaite).
    pub df: f64,
}

impl MeanDifference {
    /// Welch's test (1947, "The generalization of Student's problem when several different population variances are involved").
    /// `None` if a sample has fewer than two values.
    #[must_use]
    pub fn new(first: &[f64], second: &[f64]) -> Option<Self> {
        Self::with_least_variances(first, second, [0.0; 2])
    }

    /// The same for means whose variances are at least `least`, the first sample's first: values that depend on each other spread less
    /// than their mean is uncertain.
    #[must_use]
    pub fn with_least_variances(first: &[f64], second: &[f64], least: [f64; 2]) -> Option<Self> {
        let part = |values: &[f64], least: f64| {
            Some(((sample_sd(values)?.powi(2) / values.len() as f64).max(least), values.len() as f64 - 1.0))
        };
        let ((one, one_df), (two, two_df)) = (part(first, least[0])?, part(second, least[1])?);
        let variance = one + two;
        let df = if variance > 0.0 {
            variance.powi(2) / (one.powi(2) / one_df + two.powi(2) / two_df)
        } else {
            one_df + two_df
        };
        Some(Self { value: mean(second)? - mean(first)?, standard_error: variance.sqrt(), df })
    }

    /// The two-sided interval at `confidence`; `None` for one outside 0 to 1.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Option<ConfidenceInterval> {
        Some(ConfidenceInterval::around(self.value, t_critical(confidence, self.df)? * self.standard_error))
    }

    /// One-sided p-value of the hypothesis that the true difference is `bound` or more: small if it is significantly less.
    #[must_use]
    pub fn p_below(&self, bound: f64) -> f64 {
        let distance = self.value - bound;
        if self.standard_error == 0.0 {
            return if distance < 0.0 { 0.0 } else { 1.0 };
        }
        StudentsT::new(0.0, 1.0, self.df).map_or(1.0, |t| t.cdf(distance / self.standard_error))
    }

    /// One-sided p-value of the hypothesis that the true difference is `bound` or less: small if it is significantly more.
    #[must_use]
    pub fn p_above(&self, bound: f64) -> f64 {
        Self { value: -self.value, ..*self }.p_below(-bound)
    }
}

/// p-values corrected for their number, in the order given (Holm, 1979, "A simple sequentially rejective multiple test
/// procedure"): rejecting those at or below the level keeps the probability of any false rejection within it, also for dependent
/// tests.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((p_values[at] * (p_values.len() - rank) as f64).min(1.0));
        corrected[at] = least;
    }
    corrected
}

/// The error at which [`holm`] tests each of these p-values, in the order given, if all tests together may err with `error`: those that
/// are rejected each at their own step, all others at the step that ended the procedure. So an interval with this error excludes the
/// tested value exactly if the corrected p-value is at most `error`.
#[must_use]
pub fn holm_errors(p_values: &[f64], error: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let step = |rank: usize| error / (p_values.len() - rank) as f64;
    let rejected = order.iter().enumerate().take_while(|(rank, at)| p_values[**at] <= step(*rank)).count();
    let mut errors = vec![error; p_values.len()];
    for (rank, at) in order.into_iter().enumerate() {
        errors[at] = step(rank.min(rejected));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    #[test]
    fn a_worked_example() {
        // Means 3 and 6, variances 2.5 and 10 over 5 values: standard error sqrt(2.5), df = 2.5^2 / (0.5^2 / 4 + 2^2 / 4).
        let difference = MeanDifference::new(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]).unwrap();
        assert!((difference.value - 3.0).abs() < 1e-12 && (difference.standard_error - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((difference.df - 6.25 / 1.0625).abs() < 1e-9);
        // t = 1.897 at 5.88 degrees of freedom.
        assert!((difference.p_above(0.0) - 0.0536).abs() < 1e-3, "{}", difference.p_above(0.0));
        assert!((difference.p_above(0.0) + difference.p_below(0.0) - 1.0).abs() < 1e-9);
        assert_eq!(MeanDifference::new(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn samples_without_variance_are_certain() {
        let difference = MeanDifference::new(&[1.0, 1.0], &[2.0, 2.0]).unwrap();
        assert_eq!((difference.p_above(0.5), difference.p_below(0.5)), (0.0, 1.0));
        assert_eq!(difference.interval(0.95), Some(ConfidenceInterval { low: 1.0, high: 1.0 }));
    }

    #[test]
    fn a_worked_holm_correction() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(corrected.iter().zip(expected).all(|(is, should)| (is - should).abs() < 1e-12), "{corrected:?}");
        assert_eq!(holm(&[]), [0.0; 0]);
        assert_eq!(holm(&[0.7, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn the_interval_covers_unequal_samples() {
        let mut random = SplitMix64::new(17);
        let mut draw = |count: usize, sd: f64| -> Vec<f64> { (0..count).map(|_| sd * random.normal()).collect() };
        let covered = (0..2_000)
            .filter(|_| {
                let difference = MeanDifference::new(&draw(6, 1.0), &draw(20, 3.0)).unwrap();
                difference.interval(0.95).unwrap().contains(0.0)
            })
            .count();
        assert!((1_860..=1_940).contains(&covered), "{covered} of 2000");
    }

    #[test]
    fn each_p_value_is_tested_at_its_step() {
        let errors = holm_errors(&[0.04, 0.001, 0.2, 0.01], 0.06);
        let expected = [0.03, 0.015, 0.03, 0.02];
        assert!(errors.iter().zip(expected).all(|(is, should)| (is - should).abs() < 1e-12), "{errors:?}");
        assert_eq!(holm_errors(&[], 0.05), [0.0; 0]);
        assert_eq!(holm_errors(&[0.9], 0.05), [0.05]);
    }

    proptest! {
        #[test]
        fn an_interval_at_holms_error_excludes_what_holm_rejects(
            differences in prop::collection::vec((-4.0f64..4.0, 0.1f64..1.0, 2.0f64..20.0), 1..12),
        ) {
            let all: Vec<MeanDifference> = differences
                .iter()
                .map(|(value, standard_error, df)| MeanDifference { value: *value, standard_error: *standard_error, df: *df })
                .collect();
            let p: Vec<f64> = all.iter().map(|one| 2.0 * one.p_above(0.0).min(one.p_below(0.0))).collect();
            for ((one, corrected), error) in all.iter().zip(holm(&p)).zip(holm_errors(&p, 0.05)) {
                prop_assume!((corrected - 0.05).abs() > 1e-6);
                prop_assert_eq!(!one.interval(1.0 - error).unwrap().contains(0.0), corrected <= 0.05);
            }
        }

        #[test]
        fn holm_never_lowers_and_keeps_the_order(p in prop::collection::vec(0.0f64..1.0, 1..20)) {
            let corrected = holm(&p);
            for (i, one) in p.iter().enumerate() {
                prop_assert!(corrected[i] >= *one && corrected[i] <= 1.0);
                prop_assert!(p.iter().zip(&corrected).all(|(other, c)| other >= one || *c <= corrected[i]));
            }
        }
    }
}

//! The stop rule: measure until the interval has converged, with interim analyses that keep its coverage.
//!
//! A run ends at the first analysis whose interval is narrow enough. That favours runs whose variation happens to look small, so a
//! plain 95 % interval would cover about 92 %. Two measures restore 95 %: analyses are few, at geometric distances, and alpha spending: an
//! early analysis uses only part of the error (its interval has a higher confidence), the last one all of it. The share was set by simulation; tests/all/coverage.rs checks it, and
//! docs/manual/statistics.md has the table.

use model::Stopping;

use super::batch::{SeriesEstimate, series_interval};
use super::interim::schedule;
use super::interval::ConfidenceInterval;

/// Fewest trials before the first analysis.
pub const FIRST_ANALYSIS: usize = 3;
/// Fewest trials with an interval.
pub const MIN_TRIALS: usize = 3;
/// Each analysis comes at about this many times the trials of the one before.
const DISTANCE: f64 = 1.6;
/// Share of the error that an analysis at [`FIRST_ANALYSIS`] trials does not spend; it shrinks with the cube root of the trials.
const UNSPENT: f64 = 0.5;

/// What to do after a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Take more trials.
    Continue,
    /// The interval is as narrow as requested: stop, and report it.
    Converged(ConfidenceInterval),
    /// No trials are left; this is their interval (`None` for fewer than three values).
    Exhausted(Option<ConfidenceInterval>),
}

/// A stop rule: when to analyse, and how to decide.
///
/// It keeps no state between calls; the same values always give the same answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequential {
    target: f64,
    confidence: f64,
    analyses: Vec<usize>,
}

impl Sequential {
    /// Schedules the analyses between the rule's smallest and largest number of trials.
    #[must_use]
    pub fn new(rule: &Stopping) -> Self {
        let last = (rule.max_trials as usize).max(1);
        let first = (rule.min_trials as usize).max(FIRST_ANALYSIS);
        let analyses = schedule(first, last, DISTANCE);
        debug_assert!(!analyses.is_empty() && analyses.is_sorted(), "there is a last analysis");
        Self { target: rule.target, confidence: rule.confidence, analyses }
    }

    /// The numbers of trials after which there is an analysis, ascending; the last is the largest number of trials.
    #[must_use]
    pub fn analyses(&self) -> &[usize] {
        &self.analyses
    }

    /// Whether there is an analysis after `trials` trials.
    #[must_use]
    pub fn is_interim_analysis(&self, trials: usize) -> bool {
        self.analyses.binary_search(&trials).is_ok() || trials >= self.last()
    }

    /// Decides by the trials' values, in the order in which they were taken and in any one unit.
    #[must_use]
    pub fn decide(&self, values: &[f64]) -> Decision {
        let trials = values.len();
        if !self.is_interim_analysis(trials) {
            return Decision::Continue;
        }
        let estimate = self.estimate(values, self.confidence_at(trials));
        match estimate {
            Some(estimate) if self.narrow(&estimate) => Decision::Converged(estimate.interval),
            estimate if trials >= self.last() => Decision::Exhausted(estimate.map(|estimate| estimate.interval)),
            _ => Decision::Continue,
        }
    }

    /// Whether these values have converged.
    #[must_use]
    pub fn is_converged(&self, values: &[f64]) -> bool {
        matches!(self.decide(values), Decision::Converged(_))
    }

    /// The estimate to report for a measurement that ended with these values for any reason: that of the analysis if its interval is
    /// narrow enough, else one at the rule's confidence. `None` for fewer than three values.
    #[must_use]
    pub fn final_estimate(&self, values: &[f64]) -> Option<SeriesEstimate> {
        if self.is_interim_analysis(values.len()) {
            let analysed = self.estimate(values, self.confidence_at(values.len()))?;
            if self.narrow(&analysed) {
                return Some(analysed);
            }
        }
        self.estimate(values, self.confidence)
    }

    /// Confidence of the interval of an analysis at `trials` trials: above the rule's before the last one, equal to it there.
    #[must_use]
    pub fn confidence_at(&self, trials: usize) -> f64 {
        if trials >= self.last() {
            return self.confidence;
        }
        let share = 1.0 - UNSPENT * (FIRST_ANALYSIS as f64 / trials.max(FIRST_ANALYSIS) as f64).cbrt();
        1.0 - (1.0 - self.confidence) * share
    }

    /// Half width, relative to the value, at which a measurement has converged.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    fn last(&self) -> usize {
        self.analyses.last().copied().unwrap_or(1)
    }

    fn narrow(&self, estimate: &SeriesEstimate) -> bool {
        estimate.interval.relative_half_width(estimate.mean) <= self.target
    }

    fn estimate(&self, values: &[f64], confidence: f64) -> Option<SeriesEstimate> {
        if values.len() < MIN_TRIALS { None } else { series_interval(values, confidence) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::t_interval;
    use super::*;
    use proptest::prelude::*;

    fn rule(min_trials: u32, max_trials: u32) -> Stopping {
        Stopping { min_trials, max_trials, ..Stopping::default() }
    }

    #[test]
    fn the_default_schedule() {
        let sequential = Sequential::new(&Stopping::default());
        assert_eq!(sequential.analyses(), [3, 5, 8, 12, 20, 31, 50, 64]);
        assert!(
            !sequential.is_interim_analysis(2)
                && sequential.is_interim_analysis(3)
                && !sequential.is_interim_analysis(4)
                && sequential.is_interim_analysis(70)
        );
    }

    #[test]
    fn no_analysis_comes_before_three_trials() {
        assert_eq!(Sequential::new(&rule(1, 64)).analyses()[0], 3);
        assert_eq!(Sequential::new(&rule(6, 3)).analyses(), [3]);
        assert_eq!(Sequential::new(&rule(6, 0)).analyses(), [1]);
        assert_eq!(Sequential::new(&rule(20, 20)).analyses(), [20]);
    }

    #[test]
    fn early_analyses_spend_part_of_the_error_and_the_last_all_of_it() {
        let sequential = Sequential::new(&Stopping::default());
        let spent: Vec<f64> = sequential.analyses().iter().map(|n| 1.0 - sequential.confidence_at(*n)).collect();
        assert!((spent[0] - 0.025).abs() < 1e-12);
        assert!(spent.is_sorted() && (spent[7] - 0.05).abs() < 1e-12, "{spent:?}");
    }

    #[test]
    fn steady_values_converge_at_the_first_analysis_and_noisy_ones_never() {
        let sequential = Sequential::new(&Stopping::default());
        let steady: Vec<f64> = (0..64).map(|i| 1000.0 + f64::from(i % 3)).collect();
        assert_eq!(sequential.decide(&steady[..2]), Decision::Continue);
        assert!(matches!(sequential.decide(&steady[..3]), Decision::Converged(interval) if interval.contains(1001.0)));
        let wild: Vec<f64> = (0..64).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
        assert!((3..64).all(|n| sequential.decide(&wild[..n]) == Decision::Continue));
        assert!(matches!(sequential.decide(&wild), Decision::Exhausted(Some(_))));
    }

    #[test]
    fn two_trials_get_no_interval() {
        let sequential = Sequential::new(&rule(6, 2));
        assert_eq!(sequential.decide(&[1.0, 1.0]), Decision::Exhausted(None));
        assert_eq!(sequential.final_estimate(&[1.0, 1.0]), None);
        // Three trials that were requested in advance get Student's interval at the full confidence.
        let three = Sequential::new(&rule(6, 3));
        let student = t_interval(&[1.0, 2.0, 4.0], 0.95).unwrap();
        let given = three.final_estimate(&[1.0, 2.0, 4.0]).unwrap().interval;
        assert!((given.low - student.low).abs() < 1e-9 && (given.high - student.high).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_reported_interval_is_the_decided_one(values in prop::collection::vec(50.0f64..51.0, 3..65), min in 1u32..20, max in 1u32..80) {
            let sequential = Sequential::new(&rule(min, max));
            let reported = sequential.final_estimate(&values).map(|estimate| estimate.interval);
            match sequential.decide(&values) {
                Decision::Converged(interval) => prop_assert_eq!(reported, Some(interval)),
                Decision::Exhausted(interval) => prop_assert_eq!(reported, interval),
                Decision::Continue => prop_assert!(values.len() < max as usize),
            }
        }

        #[test]
        fn analyses_ascend_and_end_at_the_largest_number(min in 0u32..200, max in 0u32..5000) {
            let analyses = Sequential::new(&rule(min, max)).analyses().to_vec();
            prop_assert!(analyses.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(analyses.last().copied(), Some(max.max(1) as usize));
        }

        #[test]
        fn the_unit_does_not_matter(values in prop::collection::vec(10.0f64..12.0, 6..40), power in -3i32..9) {
            let sequential = Sequential::new(&Stopping::default());
            let scaled: Vec<f64> = values.iter().map(|value| value * 2.0f64.powi(power * 3)).collect();
            let kind = |values: &[f64]| std::mem::discriminant(&sequential.decide(values));
            prop_assert_eq!(kind(&values), kind(&scaled));
        }
    }
}

//! The stop rule: measure until the answer is sure enough, and let the interval say so honestly although it was looked at on
//! the way.
//!
//! A run ends at the first look whose interval is narrow enough. That picks the runs whose spread happens to look small, so
//! that a plain 95 % interval would cover about 92 %. Three things bring it back to 95 %: the first look comes at 6 trials or
//! later; looks are few, on a geometric ladder; and an early look spends only part of the error (its interval is made at a
//! slightly higher confidence), growing to all of it at the last. The share was set by simulation; tests/coverage.rs holds
//! the result, and docs/manual/statistics.md has the table.

use model::Stopping;

use super::batch::{SeriesEstimate, series_interval};
use super::interval::Interval;
use super::looks::ladder;
use super::summary::mean;

/// First look at the earliest, in trials.
pub const FIRST_LOOK: usize = 6;
/// Fewest trials that an interval is given for.
pub const LEAST_TRIALS: usize = 3;
/// Each look comes at about so many times the trials of the one before.
const LADDER: f64 = 1.6;
/// Part of the error that a look at [`FIRST_LOOK`] trials holds back; it shrinks with the cube root of the trials.
const HELD_BACK: f64 = 0.2;

/// What to do after a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Take more trials.
    Continue,
    /// The interval is as narrow as asked: stop, and report it.
    Converged(Interval),
    /// The trials have run out; this is the interval that they give (`None` for fewer than three values).
    Exhausted(Option<Interval>),
}

/// A stop rule made ready: when to look, and how to judge.
///
/// It keeps no state between calls; the same values always give the same answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequential {
    target: f64,
    confidence: f64,
    looks: Vec<usize>,
}

impl Sequential {
    /// Makes the ladder of looks from the rule's smallest and largest number of trials.
    #[must_use]
    pub fn new(rule: &Stopping) -> Self {
        let last = (rule.max_trials as usize).max(1);
        let first = (rule.min_trials as usize).max(FIRST_LOOK);
        let looks = ladder(first, last, LADDER);
        Self { target: rule.target, confidence: rule.confidence, looks }
    }

    /// The numbers of trials after which there is a look, ascending; the last is the largest number of trials.
    #[must_use]
    pub fn looks(&self) -> &[usize] {
        &self.looks
    }

    /// Whether there is a look after `trials` trials.
    #[must_use]
    pub fn is_interim_analysis(&self, trials: usize) -> bool {
        self.looks.binary_search(&trials).is_ok() || trials >= self.last()
    }

    /// Judges the trials' values, in the order they were taken and in any one unit.
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

    /// Whether these values are sure. Of a point of a curve so must those be that are left without the effects of their passes
    /// (`own`), and the interval of these must lie within the target around the mean too: a point whose passes were slower or
    /// faster than those since is not.
    #[must_use]
    pub fn is_converged(&self, values: &[f64], own: Option<&[f64]>) -> bool {
        let interval = |values: &[f64]| match self.decide(values) {
            Decision::Converged(interval) => Some(interval),
            _ => None,
        };
        let Some((_, centre)) = interval(values).zip(mean(values)) else { return false };
        own.is_none_or(|own| interval(own).is_some_and(|interval| interval.reach_from(centre) <= self.target))
    }

    /// The interval to report, and what it rests on, for a measurement that ended with these values, for whatever reason: the look's own where it
    /// ended because a look found it narrow enough, else one at the whole confidence. `None` for fewer than three values.
    #[must_use]
    pub fn final_estimate(&self, values: &[f64]) -> Option<SeriesEstimate> {
        if self.is_interim_analysis(values.len()) {
            let looked = self.estimate(values, self.confidence_at(values.len()))?;
            if self.narrow(&looked) {
                return Some(looked);
            }
        }
        self.estimate(values, self.confidence)
    }

    /// Confidence of the interval that a look at `trials` trials makes: above the rule's before the last look, equal to it
    /// there.
    #[must_use]
    pub fn confidence_at(&self, trials: usize) -> f64 {
        if trials >= self.last() {
            return self.confidence;
        }
        let share = 1.0 - HELD_BACK * (FIRST_LOOK as f64 / trials.max(FIRST_LOOK) as f64).cbrt();
        1.0 - (1.0 - self.confidence) * share
    }

    /// Half width relative to the value that counts as sure.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    fn last(&self) -> usize {
        self.looks.last().copied().unwrap_or(1)
    }

    fn narrow(&self, estimate: &SeriesEstimate) -> bool {
        estimate.interval.relative_half_width(estimate.mean) <= self.target
    }

    fn estimate(&self, values: &[f64], confidence: f64) -> Option<SeriesEstimate> {
        if values.len() < LEAST_TRIALS { None } else { series_interval(values, confidence) }
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
    fn the_default_ladder() {
        let sequential = Sequential::new(&Stopping::default());
        assert_eq!(sequential.looks(), [6, 10, 15, 25, 39, 64]);
        assert!(
            !sequential.is_interim_analysis(5)
                && sequential.is_interim_analysis(6)
                && !sequential.is_interim_analysis(7)
                && sequential.is_interim_analysis(70)
        );
    }

    #[test]
    fn no_look_comes_before_six_trials() {
        assert_eq!(Sequential::new(&rule(3, 64)).looks()[0], 6);
        assert_eq!(Sequential::new(&rule(6, 3)).looks(), [3]);
        assert_eq!(Sequential::new(&rule(6, 0)).looks(), [1]);
        assert_eq!(Sequential::new(&rule(20, 20)).looks(), [20]);
    }

    #[test]
    fn early_looks_hold_error_back_and_the_last_spends_it_all() {
        let sequential = Sequential::new(&Stopping::default());
        let spent: Vec<f64> = sequential.looks().iter().map(|n| 1.0 - sequential.confidence_at(*n)).collect();
        assert!((spent[0] - 0.04).abs() < 1e-12);
        assert!(spent.is_sorted() && (spent[5] - 0.05).abs() < 1e-12, "{spent:?}");
    }

    #[test]
    fn steady_values_are_sure_at_the_first_look_and_wild_ones_never() {
        let sequential = Sequential::new(&Stopping::default());
        let steady: Vec<f64> = (0..64).map(|i| 1000.0 + f64::from(i % 3)).collect();
        assert_eq!(sequential.decide(&steady[..5]), Decision::Continue);
        assert!(matches!(sequential.decide(&steady[..6]), Decision::Converged(interval) if interval.contains(1001.0)));
        let wild: Vec<f64> = (0..64).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
        assert!((6..64).all(|n| sequential.decide(&wild[..n]) == Decision::Continue));
        assert!(matches!(sequential.decide(&wild), Decision::Exhausted(Some(_))));
    }

    #[test]
    fn a_point_is_sure_when_its_value_is_and_its_place_in_the_curve_is_that_value() {
        let sequential = Sequential::new(&Stopping::default());
        let (steady, wild) = ([830.0, 832.0, 834.0, 831.0, 833.0, 832.0], [550.0, 552.0, 2200.0, 549.0, 551.0, 550.0]);
        assert!(sequential.is_converged(&steady, None) && sequential.is_converged(&steady, Some(&steady)));
        // Its passes' effects taken out it stands at 550: those passes were slower than the others.
        let place = steady.map(|value| value - 282.0);
        assert!(!sequential.is_converged(&steady, Some(&place)));
        // A slow pass makes the value wide, however narrow the rest.
        assert!(!sequential.is_converged(&wild, Some(&place)) && !sequential.is_converged(&place, Some(&wild)));
        assert!(!sequential.is_converged(&steady[..5], None), "no look yet");
    }

    #[test]
    fn two_trials_get_no_interval() {
        let sequential = Sequential::new(&rule(6, 2));
        assert_eq!(sequential.decide(&[1.0, 1.0]), Decision::Exhausted(None));
        assert_eq!(sequential.final_estimate(&[1.0, 1.0]), None);
        // Three that were asked for in advance get Student's, at the whole confidence.
        let three = Sequential::new(&rule(6, 3));
        let student = t_interval(&[1.0, 2.0, 4.0], 0.95).unwrap();
        let given = three.final_estimate(&[1.0, 2.0, 4.0]).unwrap().interval;
        assert!((given.low - student.low).abs() < 1e-9 && (given.high - student.high).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn what_is_reported_is_what_was_decided(values in prop::collection::vec(50.0f64..51.0, 6..65), min in 1u32..20, max in 1u32..80) {
            let sequential = Sequential::new(&rule(min, max));
            let reported = sequential.final_estimate(&values).map(|estimate| estimate.interval);
            match sequential.decide(&values) {
                Decision::Converged(interval) => prop_assert_eq!(reported, Some(interval)),
                Decision::Exhausted(interval) => prop_assert_eq!(reported, interval),
                Decision::Continue => prop_assert!(values.len() < max as usize),
            }
        }

        #[test]
        fn ladders_rise_and_end_at_the_largest(min in 0u32..200, max in 0u32..5000) {
            let looks = Sequential::new(&rule(min, max)).looks().to_vec();
            prop_assert!(looks.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(looks.last().copied(), Some(max.max(1) as usize));
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

//! The stop rule of a paired comparison: take rounds of four trials, ABBA or BAAB, until the interval of the ratio lies on one side
//! of each bound of the tolerance, or no rounds are left.
//!
//! The interval is that of the randomisation test ([`SubsetMeans`]), which is exact at one analysis that was fixed in advance. The
//! answer uses a wider one that accounts for the interim analyses: they are few, at geometric distances, and each spends a share of
//! the error ([`Paired::error_at`]), so all of them together stay within it. The shares were set by simulation; tests/all/paired.rs
//! checks them and docs/manual/statistics.md has the table.

use model::Stopping;

use super::interim::schedule;
use super::interval::ConfidenceInterval;
use super::randomisation::SubsetMeans;

/// Fewest rounds with an interval at 95 %.
pub const MIN_ROUNDS: usize = 6;
/// Each analysis comes at this many times the rounds of the one before.
const DISTANCE: f64 = 1.8;
/// Share of the error that each interim analysis spends. The first of the default schedule, at 8 rounds, can then just reject: at
/// 2 of its 256 arrangements.
const INTERIM: f64 = 0.16;
/// Share of the error that the last analysis spends.
const LAST: f64 = 0.6;
/// Separates the draw of subsets from the random order of the rounds, which uses the same seed.
const SUBSETS: u64 = 0x5EED_0F5B_5E75;

/// What to do after a round. The intervals are those that decide the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairedDecision {
    /// Take more rounds.
    Continue,
    /// The interval lies on one side of each bound.
    Settled(ConfidenceInterval),
    /// No rounds are left; this is their interval (`None` for fewer than six).
    Exhausted(Option<ConfidenceInterval>),
}

/// A paired stop rule. It keeps no state between calls; the same values always give the same answer. All differences and intervals
/// are natural logarithms of B over A.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    tolerance: f64,
    error: f64,
    analyses: Vec<usize>,
    seed: u64,
}

impl Paired {
    /// Schedules the analyses. `rule` counts trials of one cell, two per round; if its smallest and largest number are equal there is
    /// a single analysis. Its target is the tolerance, 0 or more and below 1: B is worse from `1 - tolerance` times A down.
    #[must_use]
    pub fn new(rule: &Stopping) -> Self {
        let last = (rule.max_trials as usize / 2).max(1);
        let first = (rule.min_trials as usize / 2).max(MIN_ROUNDS);
        let analyses = schedule(first, last, DISTANCE);
        debug_assert!(!analyses.is_empty() && analyses.is_sorted(), "there is a last analysis");
        Self { tolerance: rule.target, error: 1.0 - rule.confidence, analyses, seed: rule.seed ^ SUBSETS }
    }

    /// The numbers of rounds after which there is an analysis, ascending.
    #[must_use]
    pub fn analyses(&self) -> &[usize] {
        &self.analyses
    }

    /// The ratios, as logarithms, between which B is neither better nor worse: `1 - tolerance` and its inverse, so swapping A and B
    /// inverts the answer.
    #[must_use]
    pub fn bounds(&self) -> ConfidenceInterval {
        let bound = (1.0 - self.tolerance).ln();
        ConfidenceInterval { low: bound, high: -bound }
    }

    /// Decides by the rounds' log ratios, in the order in which they were taken.
    #[must_use]
    pub fn decide(&self, log_ratios: &[f64]) -> PairedDecision {
        let rounds = log_ratios.len();
        if rounds < self.last() && !self.is_interim_analysis(rounds) {
            return PairedDecision::Continue;
        }
        match self.judged_by(log_ratios) {
            Some(interval) if self.is_settled(&interval) => PairedDecision::Settled(interval),
            interval if rounds >= self.last() => PairedDecision::Exhausted(interval),
            _ => PairedDecision::Continue,
        }
    }

    /// The interval that decides the answer of a comparison that ended with these log ratios: at an analysis its own, between
    /// analyses that of the last one. `None` for too few rounds to reject anything.
    #[must_use]
    pub fn judged_by(&self, log_ratios: &[f64]) -> Option<ConfidenceInterval> {
        self.interval(log_ratios, self.error_at(log_ratios.len()))
    }

    /// The interval to report, at the rule's confidence. `None` for fewer than six rounds at 95 %.
    #[must_use]
    pub fn interval_of(&self, log_ratios: &[f64]) -> Option<ConfidenceInterval> {
        self.interval(log_ratios, self.error)
    }

    /// Two-sided p-value of the randomisation test that B makes no difference, for these rounds alone.
    #[must_use]
    pub fn p_value(&self, log_ratios: &[f64]) -> f64 {
        SubsetMeans::new(log_ratios, self.seed).p_value(0.0)
    }

    /// The error of the answer after `rounds` rounds: at an analysis its share, between analyses (a budget ended it) that of the last
    /// one. A single analysis spends all of it.
    #[must_use]
    pub fn error_at(&self, rounds: usize) -> f64 {
        match self.analyses.len() {
            1 => self.error,
            _ if rounds < self.last() && self.is_interim_analysis(rounds) => self.error * INTERIM,
            _ => self.error * LAST,
        }
    }

    fn interval(&self, log_ratios: &[f64], error: f64) -> Option<ConfidenceInterval> {
        SubsetMeans::new(log_ratios, self.seed).interval(1.0 - error)
    }

    fn is_interim_analysis(&self, rounds: usize) -> bool {
        self.analyses.binary_search(&rounds).is_ok()
    }

    /// Whether an interval crosses neither bound.
    fn is_settled(&self, interval: &ConfidenceInterval) -> bool {
        let bounds = self.bounds();
        let crosses = |bound| interval.low <= bound && bound <= interval.high;
        !crosses(bounds.low) && !crosses(bounds.high)
    }

    fn last(&self) -> usize {
        self.analyses.last().copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pairs: (u32, u32)) -> Paired {
        Paired::new(&Stopping { min_trials: pairs.0, max_trials: pairs.1, target: 0.01, ..Stopping::default() })
    }

    #[test]
    fn the_default_schedule_and_a_single_analysis() {
        let default = rule((16, 54));
        assert_eq!(default.analyses(), [8, 14, 27]);
        assert!(default.error_at(8) < default.error_at(27) && default.error_at(27) < 0.05);
        // Between analyses nothing is rejected that the last one would not reject.
        assert_eq!(default.error_at(20), default.error_at(27));
        let single = rule((24, 24));
        assert_eq!((single.analyses(), single.error_at(12) > 0.0499), (&[12][..], true));
        assert_eq!(rule((4, 54)).analyses()[0], MIN_ROUNDS);
    }

    #[test]
    fn quiet_rounds_settle_at_the_first_analysis_and_noisy_ones_never() {
        let paired = rule((16, 54));
        let quiet: Vec<f64> = (0..27).map(|i| -0.05 + 0.001 * f64::from(i % 3)).collect();
        assert_eq!(paired.decide(&quiet[..7]), PairedDecision::Continue);
        assert!(matches!(paired.decide(&quiet[..8]), PairedDecision::Settled(interval) if interval.high < -0.04));
        let loud: Vec<f64> = (0..27).map(|i| if i % 2 == 0 { 0.2 } else { -0.2 }).collect();
        assert!((1..27).all(|n| paired.decide(&loud[..n]) == PairedDecision::Continue));
        assert!(matches!(paired.decide(&loud), PairedDecision::Exhausted(Some(_))));
    }

    #[test]
    fn the_deciding_interval_is_wider_than_the_reported_one() {
        let paired = rule((16, 54));
        let rounds: Vec<f64> = (0..14).map(|i| 0.01 * f64::from(i % 5)).collect();
        let (judged, reported) = (paired.judged_by(&rounds).unwrap(), paired.interval_of(&rounds).unwrap());
        assert!(judged.low < reported.low && judged.high > reported.high, "{judged:?} {reported:?}");
    }

    #[test]
    fn the_bounds_are_symmetric() {
        let bounds = rule((16, 54)).bounds();
        assert!((bounds.low.exp() - 0.99).abs() < 1e-12 && (bounds.low + bounds.high).abs() < 1e-12);
    }
}

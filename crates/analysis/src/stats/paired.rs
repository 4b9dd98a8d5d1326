//! The stop rule of a paired comparison: take blocks of four trials, ABBA or BAAB, until the interval of the ratio lies on one
//! side of each bound of the tolerance, or the blocks run out.
//!
//! The interval is that of the randomisation test ([`SubsetMeans`]), which is exact at a look that was fixed in advance. The
//! answer is judged by a wider one that pays for the looks: they are few, on a geometric ladder, and each rejects at a part of
//! the error ([`Paired::error_at`]), so that all of them together stay within the whole. The parts were set by simulation;
//! tests/paired.rs holds the result and docs/manual/statistics.md has the table.

use model::Stopping;

use super::interval::Interval;
use super::looks::ladder;
use super::randomisation::SubsetMeans;

/// Fewest blocks that an interval at 95 % can be made of.
pub const LEAST_BLOCKS: usize = 6;
/// Each look comes at so many times the blocks of the one before.
const LADDER: f64 = 1.8;
/// Share of the error that each look on the way rejects at. The first of the default ladder, at 8 blocks, can then just
/// reject: at 2 of its 256 arrangements.
const EARLY: f64 = 0.16;
/// Share of the error of the last look of a ladder.
const LATE: f64 = 0.6;
/// Keeps the draw of subsets apart from the coin that ordered the blocks, which comes from the same seed.
const SUBSETS: u64 = 0x5EED_0F5B_5E75;

/// What to do after a block. The intervals are those that answers are judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairedDecision {
    /// Take more blocks.
    Continue,
    /// The interval lies on one side of each bound.
    Settled(Interval),
    /// The blocks have run out; this is the interval that they give (`None` for fewer than six).
    Exhausted(Option<Interval>),
}

/// A paired stop rule made ready. It keeps no state between calls; the same values always give the same answer. All
/// differences and intervals are natural logarithms of B over A.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    tolerance: f64,
    error: f64,
    looks: Vec<usize>,
    seed: u64,
}

impl Paired {
    /// Makes the ladder of looks. `rule` counts trials of one cell, two to a block; where its smallest and largest number are
    /// the same there is a single look. Its target is the tolerance, 0 or more and below 1: B is worse from `1 - tolerance`
    /// times A down.
    #[must_use]
    pub fn new(rule: &Stopping) -> Self {
        let last = (rule.max_trials as usize / 2).max(1);
        let first = (rule.min_trials as usize / 2).max(LEAST_BLOCKS);
        let looks = ladder(first, last, LADDER);
        Self { tolerance: rule.target, error: 1.0 - rule.confidence, looks, seed: rule.seed ^ SUBSETS }
    }

    /// The numbers of blocks after which there is a look, ascending.
    #[must_use]
    pub fn looks(&self) -> &[usize] {
        &self.looks
    }

    /// The ratios, as logarithms, between which B is neither better nor worse: `1 - tolerance` and one over it, so that A and
    /// B may change places.
    #[must_use]
    pub fn bounds(&self) -> Interval {
        let bound = (1.0 - self.tolerance).ln();
        Interval { low: bound, high: -bound }
    }

    /// Judges the blocks' log ratios, in the order they were taken.
    #[must_use]
    pub fn decide(&self, log_ratios: &[f64]) -> PairedDecision {
        let blocks = log_ratios.len();
        if blocks < self.last() && !self.is_interim_analysis(blocks) {
            return PairedDecision::Continue;
        }
        match self.judged_by(log_ratios) {
            Some(interval) if self.is_settled(&interval) => PairedDecision::Settled(interval),
            interval if blocks >= self.last() => PairedDecision::Exhausted(interval),
            _ => PairedDecision::Continue,
        }
    }

    /// The interval that the answer of a comparison which ended with these log ratios is judged by: at a look that look's own,
    /// for one that ended between looks the last one's. `None` for too few blocks to reject anything.
    #[must_use]
    pub fn judged_by(&self, log_ratios: &[f64]) -> Option<Interval> {
        self.interval(log_ratios, self.error_at(log_ratios.len()))
    }

    /// The interval to report, at the rule's confidence. `None` for fewer than six blocks at 95 %.
    #[must_use]
    pub fn interval_of(&self, log_ratios: &[f64]) -> Option<Interval> {
        self.interval(log_ratios, self.error)
    }

    /// Two-sided p-value of the randomisation test that B makes no difference, for these blocks alone.
    #[must_use]
    pub fn p_value(&self, log_ratios: &[f64]) -> f64 {
        SubsetMeans::new(log_ratios, self.seed).p_value(0.0)
    }

    /// The error that the answer after `blocks` blocks is judged at: at a look its part, between looks (a budget ended it)
    /// that of the last. A single look has it all.
    #[must_use]
    pub fn error_at(&self, blocks: usize) -> f64 {
        match self.looks.len() {
            1 => self.error,
            _ if blocks < self.last() && self.is_interim_analysis(blocks) => self.error * EARLY,
            _ => self.error * LATE,
        }
    }

    fn interval(&self, log_ratios: &[f64], error: f64) -> Option<Interval> {
        SubsetMeans::new(log_ratios, self.seed).interval(1.0 - error)
    }

    fn is_interim_analysis(&self, blocks: usize) -> bool {
        self.looks.binary_search(&blocks).is_ok()
    }

    /// Whether an interval crosses neither bound.
    fn is_settled(&self, interval: &Interval) -> bool {
        let bounds = self.bounds();
        let crosses = |bound| interval.low <= bound && bound <= interval.high;
        !crosses(bounds.low) && !crosses(bounds.high)
    }

    fn last(&self) -> usize {
        self.looks.last().copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pairs: (u32, u32)) -> Paired {
        Paired::new(&Stopping { min_trials: pairs.0, max_trials: pairs.1, target: 0.01, ..Stopping::default() })
    }

    #[test]
    fn the_default_ladder_and_a_single_look() {
        let default = rule((16, 54));
        assert_eq!(default.looks(), [8, 14, 27]);
        assert!(default.error_at(8) < default.error_at(27) && default.error_at(27) < 0.05);
        // Between looks nothing is rejected that the last look would not reject.
        assert_eq!(default.error_at(20), default.error_at(27));
        let single = rule((24, 24));
        assert_eq!((single.looks(), single.error_at(12) > 0.0499), (&[12][..], true));
        assert_eq!(rule((4, 54)).looks()[0], LEAST_BLOCKS);
    }

    #[test]
    fn quiet_blocks_settle_at_the_first_look_and_loud_ones_never() {
        let paired = rule((16, 54));
        let quiet: Vec<f64> = (0..27).map(|i| -0.05 + 0.001 * f64::from(i % 3)).collect();
        assert_eq!(paired.decide(&quiet[..7]), PairedDecision::Continue);
        assert!(matches!(paired.decide(&quiet[..8]), PairedDecision::Settled(interval) if interval.high < -0.04));
        let loud: Vec<f64> = (0..27).map(|i| if i % 2 == 0 { 0.2 } else { -0.2 }).collect();
        assert!((1..27).all(|n| paired.decide(&loud[..n]) == PairedDecision::Continue));
        assert!(matches!(paired.decide(&loud), PairedDecision::Exhausted(Some(_))));
    }

    #[test]
    fn the_answer_is_judged_more_strictly_than_the_interval_says() {
        let paired = rule((16, 54));
        let blocks: Vec<f64> = (0..14).map(|i| 0.01 * f64::from(i % 5)).collect();
        let (judged, reported) = (paired.judged_by(&blocks).unwrap(), paired.interval_of(&blocks).unwrap());
        assert!(judged.low < reported.low && judged.high > reported.high, "{judged:?} {reported:?}");
    }

    #[test]
    fn the_bounds_are_the_same_from_either_side() {
        let bounds = rule((16, 54)).bounds();
        assert!((bounds.low.exp() - 0.99).abs() < 1e-12 && (bounds.low + bounds.high).abs() < 1e-12);
    }
}

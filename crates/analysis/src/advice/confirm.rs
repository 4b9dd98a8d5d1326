//! The confirmation of a search's result on new pairs.
//!
//! It compares the start with the best combination, and the best combination with itself without each of its changes, in rounds of
//! four trials, ABBA or BAAB at random, by the randomisation test ([`SubsetMeans`]). Trials of the search do not count: it picked the
//! level that looked best among many, partly by chance. The p-values of all comparisons are corrected together (Holm), so the
//! probability of any false positive of a run is at most 5 %.

use crate::stats::{ConfidenceInterval, SubsetMeans, holm, holm_errors, mean};
use model::SplitMix64;

use super::search::{Levels, Search, SearchRule, TrialScore};

/// Confidence of the intervals, and one minus the probability of any false positive.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Largest number of rounds of a comparison.
const MAX_ROUNDS: u32 = 16;
/// Separate the random orders and the draws of subsets from the search's orders, which use the same seed.
const ORDERS: u64 = 0xC014_5EED;
const SUBSETS: u64 = 0x5EED_0F5B_5E75;

/// A round of one comparison: four trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRound {
    /// Index of the comparison.
    pub comparison: usize,
    /// The combinations, in the order in which they are to be taken.
    pub trials: [Levels; 4],
}

/// The result of one comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmed {
    /// The dimension whose change A lacks; `None` for all changes together, where A is the start.
    pub dimension: Option<usize>,
    /// Gain of the goal's statistic as a logarithm, higher is better; `None` without a complete round.
    pub gain: Option<f64>,
    /// Its 95 % interval, for this comparison alone.
    pub interval: Option<ConfidenceInterval>,
    /// Change of the goodput, if it must be kept, and its interval.
    pub goodput: Option<(f64, Option<ConfidenceInterval>)>,
    /// Two-sided p-value, corrected for the number of comparisons; `None` without a complete round.
    pub p_value: Option<f64>,
    /// Complete rounds.
    pub rounds: usize,
    /// Whether the gain is significant and more than the smallest effect, and enough goodput is kept.
    pub confirmed: bool,
}

/// A comparison in progress.
#[derive(Debug, Clone)]
struct Compared {
    dimension: Option<usize>,
    a: Levels,
    b: Levels,
    gains: Vec<f64>,
    goodput_changes: Vec<f64>,
}

/// A confirmation in progress.
#[derive(Debug, Clone)]
pub struct Confirmation {
    rule: SearchRule,
    compared: Vec<Compared>,
    random: SplitMix64,
    /// Comparisons whose next round has not been taken.
    queue: Vec<usize>,
    /// Rounds of every comparison that are left.
    rounds_left: u32,
    /// The comparison of the round in progress, and whether its A and B are swapped.
    current: Option<(usize, bool)>,
}

impl Confirmation {
    /// The confirmation of a finished search; `None` if it changed nothing. `trials` is the number of trials that can be taken. If they
    /// are too few to compare the changes separately, only all of them together are compared.
    #[must_use]
    pub fn new(search: &Search, trials: u32) -> Option<Self> {
        let best = search.best();
        let changed: Vec<usize> = (0..best.len()).filter(|dimension| best[*dimension] != 0).collect();
        if changed.is_empty() {
            return None;
        }
        let compared = |dimension: Option<usize>| {
            let mut a = if dimension.is_some() { best.to_vec() } else { vec![0; best.len()] };
            if let Some(dimension) = dimension {
                a[dimension] = 0;
            }
            Compared { dimension, a, b: best.to_vec(), gains: Vec::new(), goodput_changes: Vec::new() }
        };
        let mut all = vec![compared(None)];
        // A single change needs no separate comparison.
        if changed.len() > 1 {
            all.extend(changed.into_iter().map(|dimension| compared(Some(dimension))));
        }
        let rounds = |comparisons: usize| trials / 4 / comparisons.max(1) as u32;
        if rounds(all.len()) < min_rounds(all.len()) {
            all.truncate(1);
        }
        let rounds_left = rounds(all.len()).clamp(min_rounds(all.len()), MAX_ROUNDS);
        Some(Self {
            rule: *search.rule(),
            compared: all,
            random: SplitMix64::new(search.rule().seed ^ ORDERS),
            queue: Vec::new(),
            rounds_left,
            current: None,
        })
    }

    /// Fewest trials with which a confirmation of this many changes can be significant.
    #[must_use]
    pub fn trials_needed(changes: usize) -> u32 {
        let comparisons = if changes > 1 { changes + 1 } else { 1 };
        4 * comparisons as u32 * min_rounds(comparisons)
    }

    /// The next trials; `None` when all are taken. The scores of each round go to [`record`](Self::record).
    pub fn next_round(&mut self) -> Option<PairRound> {
        if self.queue.is_empty() {
            self.rounds_left = self.rounds_left.checked_sub(1)?;
            self.queue = (0..self.compared.len()).collect();
            self.random.shuffle(&mut self.queue);
        }
        let comparison = self.queue.pop()?;
        let swapped = self.random.next_u64() >> 63 == 1;
        self.current = Some((comparison, swapped));
        let Compared { a, b, .. } = &self.compared[comparison];
        let (first, second) = if swapped { (b, a) } else { (a, b) };
        let trials = [first, second, second, first].map(Clone::clone);
        Some(PairRound { comparison, trials })
    }

    /// Takes the scores of the last round's trials, in their order; a round without all scores does not count.
    pub fn record(&mut self, scores: [Option<TrialScore>; 4]) {
        let Some((comparison, swapped)) = self.current.take() else { return };
        let [Some(one), Some(two), Some(three), Some(four)] = scores else { return };
        let sign = if swapped { -1.0 } else { 1.0 };
        let difference = |[one, two, three, four]: [f64; 4]| sign * (two + three - one - four) / 2.0;
        let compared = &mut self.compared[comparison];
        compared.gains.push(difference([one, two, three, four].map(|score| score.score)));
        if let (Some(one), Some(two), Some(three), Some(four)) = (one.goodput, two.goodput, three.goodput, four.goodput)
        {
            compared.goodput_changes.push(difference([one, two, three, four]));
        }
    }

    /// Number of trials that are left.
    #[must_use]
    pub fn trials_left(&self) -> u32 {
        4 * (self.rounds_left * self.compared.len() as u32 + self.queue.len() as u32)
    }

    /// The results so far, that of all changes together first.
    #[must_use]
    pub fn judged(&self) -> Vec<Confirmed> {
        let means = |values: &[f64]| SubsetMeans::new(values, self.rule.seed ^ SUBSETS);
        let raw: Vec<f64> = self.compared.iter().map(|compared| means(&compared.gains).p_value(0.0)).collect();
        // Intervals and p-values alike are corrected for the number of comparisons.
        let errors = holm_errors(&raw, 1.0 - CONFIDENCE + 1e-12);
        let judge = |((compared, p), error): ((&Compared, f64), f64)| {
            let gain = mean(&compared.gains);
            let interval = means(&compared.gains).interval(1.0 - error);
            let changes = &compared.goodput_changes;
            let goodput = mean(changes).map(|change| (change, means(changes).interval(CONFIDENCE)));
            let keeps_goodput = self.rule.min_goodput.is_none_or(|min| {
                goodput.is_some_and(|(_, interval)| interval.is_some_and(|interval| interval.low >= min.ln()))
            });
            let gains = gain.is_some_and(|gain| gain > self.rule.min_log());
            let confirmed = gains && keeps_goodput && p <= 1.0 - CONFIDENCE + 1e-12;
            let p_value = gain.map(|_| p);
            let dimension = compared.dimension;
            Confirmed { dimension, gain, interval, goodput, p_value, rounds: compared.gains.len(), confirmed }
        };
        self.compared.iter().zip(holm(&raw)).zip(errors).map(judge).collect()
    }
}

/// Fewest rounds whose smallest p-value, 2 of 2^n arrangements, is significant after the correction for this many comparisons: 6 for
/// one.
fn min_rounds(comparisons: usize) -> u32 {
    let needed = (2.0 * comparisons as f64 / (1.0 - CONFIDENCE)).log2().ceil();
    (needed as u32).min(MAX_ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search of three dimensions that adopted the first two.
    fn searched() -> Search {
        let mut search = Search::new(&[2, 2, 2], SearchRule { min_effect: 0.01, min_goodput: None, seed: 3 });
        while let Some(round) = search.next_round() {
            search.record(&round.trials.iter().map(|at| Some(value(at))).collect::<Vec<_>>());
        }
        search
    }

    fn value(at: &[usize]) -> TrialScore {
        TrialScore { score: 0.2 * at[0] as f64 + 0.05 * at[1] as f64 - 0.1 * at[2] as f64, goodput: None }
    }

    #[test]
    fn all_changes_together_and_each_one_alone_are_confirmed() {
        let search = searched();
        assert_eq!(search.best(), [1, 1, 0]);
        let mut fresh = Confirmation::new(&search, 200).unwrap();
        let mut swaps = 0;
        while let Some(round) = fresh.next_round() {
            swaps += usize::from(round.trials[0] == [1, 1, 0]);
            fresh.record(round.trials.map(|at| Some(value(&at))));
        }
        let judged = fresh.judged();
        assert_eq!(judged.iter().map(|one| one.dimension).collect::<Vec<_>>(), [None, Some(0), Some(1)]);
        for (one, gain) in judged.iter().zip([0.25, 0.2, 0.05]) {
            assert!((one.gain.unwrap() - gain).abs() < 1e-9 && one.confirmed && one.rounds == 16, "{one:?}");
        }
        assert!(swaps > 5 && swaps < 43, "random order: {swaps}");
    }

    #[test]
    fn with_few_trials_only_all_changes_together_are_confirmed() {
        let search = searched();
        let fresh = Confirmation::new(&search, 60).unwrap();
        assert_eq!((fresh.compared.len(), fresh.trials_left()), (1, 60));
        assert_eq!((Confirmation::trials_needed(1), Confirmation::trials_needed(2)), (24, 84));
        // The fewest rounds can just reject.
        for comparisons in 1..9 {
            assert!(2.0 / f64::from(1u32 << min_rounds(comparisons)) * comparisons as f64 <= 0.05);
        }
    }

    #[test]
    fn a_round_without_a_score_does_not_count_and_no_change_needs_no_confirmation() {
        let search = searched();
        let mut fresh = Confirmation::new(&search, 32).unwrap();
        fresh.next_round();
        fresh.record([None; 4]);
        let judged = fresh.judged();
        assert_eq!((judged[0].gain, judged[0].p_value, judged[0].confirmed), (None, None, false));
        let idle = Search::new(&[1], SearchRule { min_effect: 0.01, min_goodput: None, seed: 3 });
        assert!(Confirmation::new(&idle, 100).is_none());
    }

    #[test]
    fn a_gain_with_too_little_goodput_is_not_confirmed() {
        let mut search = Search::new(&[2], SearchRule { min_effect: 0.01, min_goodput: Some(0.95), seed: 3 });
        let cheap =
            |at: &[usize], kept: f64| Some(TrialScore { score: at[0] as f64, goodput: Some(kept.ln() * at[0] as f64) });
        while let Some(round) = search.next_round() {
            search.record(&round.trials.iter().map(|at| cheap(at, 0.99)).collect::<Vec<_>>());
        }
        for (kept, confirmed) in [(0.99, true), (0.9, false)] {
            let mut fresh = Confirmation::new(&search, 32).unwrap();
            while let Some(round) = fresh.next_round() {
                fresh.record(round.trials.map(|at| cheap(&at, kept)));
            }
            assert_eq!(fresh.judged()[0].confirmed, confirmed, "{kept}");
        }
    }
}

//! The confirmation: what a search found, on fresh pairs.
//!
//! The start against the best combination, and the best combination against itself without each of its changes, in blocks of
//! four trials, ABBA or BAAB by a coin, judged by the randomisation test ([`SubsetMeans`]). No trial of the search counts here:
//! of many levels the best looking one was picked, and what made it look best does not come again. All comparisons' p-values are
//! corrected together (Holm), so that the chance of any false claim of a run stays within 5 %.

use crate::stats::{Interval, SplitMix64, SubsetMeans, holm, mean};

use super::search::{Levels, Reading, Search, SearchRule};

/// Confidence of the intervals, and one less the chance of any false claim.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Most blocks of a comparison.
const MAX_ROUNDS: u32 = 16;
/// Keep the coins and the draws of subsets apart from the search's orders, which come from the same seed.
const COINS: u64 = 0xC014_5EED;
const SUBSETS: u64 = 0x5EED_0F5B_5E75;

/// Four trials of one comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRound {
    /// Which comparison, from 0.
    pub comparison: usize,
    /// The combinations, in the order in which they are to be taken.
    pub trials: [Levels; 4],
}

/// What came of one comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmed {
    /// The dimension whose change is left out in A; `None` for the whole, where A is the start.
    pub dimension: Option<usize>,
    /// Gain of the goal's statistic as a logarithm, more is better; `None` where no block was whole.
    pub gain: Option<f64>,
    /// Its 95 % interval, for this comparison alone.
    pub interval: Option<Interval>,
    /// Change of the watched goodput and its interval.
    pub guard: Option<(f64, Option<Interval>)>,
    /// Two-sided p-value, corrected for the number of comparisons; `None` where there was nothing to test.
    pub p_value: Option<f64>,
    /// Whole blocks.
    pub blocks: usize,
    /// Whether it surely gains, by more than the least effect, and leaves enough goodput.
    pub confirmed: bool,
}

/// A comparison under way.
#[derive(Debug, Clone)]
struct Compared {
    dimension: Option<usize>,
    a: Levels,
    b: Levels,
    gains: Vec<f64>,
    guards: Vec<f64>,
}

/// A confirmation under way.
#[derive(Debug, Clone)]
pub struct Confirmation {
    rule: SearchRule,
    compared: Vec<Compared>,
    coin: SplitMix64,
    /// Comparisons that have yet to come in this round.
    queue: Vec<usize>,
    rounds_left: u32,
    /// The comparison that is out, and whether its A and B changed places.
    out: Option<(usize, bool)>,
}

impl Confirmation {
    /// What has to be confirmed of a search that is over; `None` where it changed nothing. `trials` is how many can be taken: where
    /// they are too few to tell the changes apart, only the whole is compared.
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
            Compared { dimension, a, b: best.to_vec(), gains: Vec::new(), guards: Vec::new() }
        };
        let mut all = vec![compared(None)];
        // With a single change the whole is that change.
        if changed.len() > 1 {
            all.extend(changed.into_iter().map(|dimension| compared(Some(dimension))));
        }
        let blocks = |comparisons: usize| trials / 4 / comparisons.max(1) as u32;
        if blocks(all.len()) < min_rounds(all.len()) {
            all.truncate(1);
        }
        let rounds_left = blocks(all.len()).clamp(min_rounds(all.len()), MAX_ROUNDS);
        Some(Self {
            rule: *search.rule(),
            compared: all,
            coin: SplitMix64::new(search.rule().seed ^ COINS),
            queue: Vec::new(),
            rounds_left,
            out: None,
        })
    }

    /// Trials that a confirmation of so many changes needs to be able to claim anything.
    #[must_use]
    pub fn trials_needed(changes: usize) -> u32 {
        let comparisons = if changes > 1 { changes + 1 } else { 1 };
        4 * comparisons as u32 * min_rounds(comparisons)
    }

    /// The trials that come next; `None` when all are taken. Each block is to be answered by [`record`](Self::record).
    pub fn next_round(&mut self) -> Option<PairRound> {
        if self.queue.is_empty() {
            self.rounds_left = self.rounds_left.checked_sub(1)?;
            self.queue = (0..self.compared.len()).collect();
            self.coin.shuffle(&mut self.queue);
        }
        let comparison = self.queue.pop()?;
        let turned = self.coin.next_u64() >> 63 == 1;
        self.out = Some((comparison, turned));
        let Compared { a, b, .. } = &self.compared[comparison];
        let (first, second) = if turned { (b, a) } else { (a, b) };
        let trials = [first, second, second, first].map(Clone::clone);
        Some(PairRound { comparison, trials })
    }

    /// Takes what the last block's trials said, in their order; a block that lacks a reading is left out as a whole.
    pub fn record(&mut self, readings: [Option<Reading>; 4]) {
        let Some((comparison, turned)) = self.out.take() else { return };
        let [Some(one), Some(two), Some(three), Some(four)] = readings else { return };
        let sign = if turned { -1.0 } else { 1.0 };
        let difference = |[one, two, three, four]: [f64; 4]| sign * (two + three - one - four) / 2.0;
        let compared = &mut self.compared[comparison];
        compared.gains.push(difference([one, two, three, four].map(|reading| reading.score)));
        if let (Some(one), Some(two), Some(three), Some(four)) = (one.guard, two.guard, three.guard, four.guard) {
            compared.guards.push(difference([one, two, three, four]));
        }
    }

    /// Trials that are still to come.
    #[must_use]
    pub fn trials_left(&self) -> u32 {
        4 * (self.rounds_left * self.compared.len() as u32 + self.queue.len() as u32)
    }

    /// What has come of it so far, the whole first.
    #[must_use]
    pub fn judged(&self) -> Vec<Confirmed> {
        let means = |values: &[f64]| SubsetMeans::new(values, self.rule.seed ^ SUBSETS);
        let raw: Vec<f64> = self.compared.iter().map(|compared| means(&compared.gains).p_value(0.0)).collect();
        let judge = |(compared, p): (&Compared, f64)| {
            let gain = mean(&compared.gains);
            let interval = means(&compared.gains).interval(CONFIDENCE);
            let guard = mean(&compared.guards).map(|change| (change, means(&compared.guards).interval(CONFIDENCE)));
            let carries = self.rule.guard.is_none_or(|least| {
                guard.is_some_and(|(_, interval)| interval.is_some_and(|interval| interval.low >= least.ln()))
            });
            let gains = gain.is_some_and(|gain| gain > self.rule.min_log());
            let confirmed = gains && carries && p <= 1.0 - CONFIDENCE + 1e-12;
            let p_value = gain.map(|_| p);
            let dimension = compared.dimension;
            Confirmed { dimension, gain, interval, guard, p_value, blocks: compared.gains.len(), confirmed }
        };
        self.compared.iter().zip(holm(&raw)).map(judge).collect()
    }
}

/// Fewest blocks whose smallest p-value, 2 of 2^n arrangements, survives the correction for so many comparisons: 6 for one.
fn min_rounds(comparisons: usize) -> u32 {
    let needed = (2.0 * comparisons as f64 / (1.0 - CONFIDENCE)).log2().ceil();
    (needed as u32).min(MAX_ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search of three dimensions that adopted the first two.
    fn searched() -> Search {
        let mut search = Search::new(&[2, 2, 2], SearchRule { min_effect: 0.01, guard: None, seed: 3 });
        while let Some(block) = search.next_round() {
            search.record(&block.trials.iter().map(|at| Some(value(at))).collect::<Vec<_>>());
        }
        search
    }

    fn value(at: &[usize]) -> Reading {
        Reading { score: 0.2 * at[0] as f64 + 0.05 * at[1] as f64 - 0.1 * at[2] as f64, guard: None }
    }

    #[test]
    fn the_whole_and_each_change_alone_are_confirmed() {
        let search = searched();
        assert_eq!(search.best(), [1, 1, 0]);
        let mut fresh = Confirmation::new(&search, 200).unwrap();
        let mut turns = 0;
        while let Some(block) = fresh.next_round() {
            turns += usize::from(block.trials[0] == [1, 1, 0]);
            fresh.record(block.trials.map(|at| Some(value(&at))));
        }
        let judged = fresh.judged();
        assert_eq!(judged.iter().map(|one| one.dimension).collect::<Vec<_>>(), [None, Some(0), Some(1)]);
        for (one, gain) in judged.iter().zip([0.25, 0.2, 0.05]) {
            assert!((one.gain.unwrap() - gain).abs() < 1e-9 && one.confirmed && one.blocks == 16, "{one:?}");
        }
        assert!(turns > 5 && turns < 43, "a coin: {turns}");
    }

    #[test]
    fn too_few_trials_confirm_the_whole_only() {
        let search = searched();
        let fresh = Confirmation::new(&search, 60).unwrap();
        assert_eq!((fresh.compared.len(), fresh.trials_left()), (1, 60));
        assert_eq!((Confirmation::trials_needed(1), Confirmation::trials_needed(2)), (24, 84));
        // The fewest blocks can just reject.
        for comparisons in 1..9 {
            assert!(2.0 / f64::from(1u32 << min_rounds(comparisons)) * comparisons as f64 <= 0.05);
        }
    }

    #[test]
    fn a_block_without_a_reading_is_left_out_and_nothing_is_claimed_of_nothing() {
        let search = searched();
        let mut fresh = Confirmation::new(&search, 32).unwrap();
        fresh.next_round();
        fresh.record([None; 4]);
        let judged = fresh.judged();
        assert_eq!((judged[0].gain, judged[0].p_value, judged[0].confirmed), (None, None, false));
        let idle = Search::new(&[1], SearchRule { min_effect: 0.01, guard: None, seed: 3 });
        assert!(Confirmation::new(&idle, 100).is_none());
    }

    #[test]
    fn goodput_that_is_lost_is_no_gain() {
        let mut search = Search::new(&[2], SearchRule { min_effect: 0.01, guard: Some(0.95), seed: 3 });
        let cheap =
            |at: &[usize], kept: f64| Some(Reading { score: at[0] as f64, guard: Some(kept.ln() * at[0] as f64) });
        while let Some(block) = search.next_round() {
            search.record(&block.trials.iter().map(|at| cheap(at, 0.99)).collect::<Vec<_>>());
        }
        for (kept, confirmed) in [(0.99, true), (0.9, false)] {
            let mut fresh = Confirmation::new(&search, 32).unwrap();
            while let Some(block) = fresh.next_round() {
                fresh.record(block.trials.map(|at| cheap(&at, kept)));
            }
            assert_eq!(fresh.judged()[0].confirmed, confirmed, "{kept}");
        }
    }
}

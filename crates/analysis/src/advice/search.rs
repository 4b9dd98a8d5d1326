//! The search: one dimension after another, with a race of its levels by successive halving.
//!
//! A race takes randomised rounds: each round has one trial of every level that is still in the race, in random order, so drift
//! affects all of them alike and levels are only compared within a round. After each stage the better half continues with twice the
//! rounds (Karnin, Koren and Somekh, 2013, "Almost optimal exploration in multi-armed bandits"). The current level always
//! continues, because the others are compared with it. Over the dimensions the search is greedy, and returns once to those it had
//! finished before another change. What it adopts is not yet significant: that is tested on new pairs ([`super::Confirmation`]).

use std::collections::{BTreeSet, VecDeque};

use crate::stats::{mean, t_interval};
use model::SplitMix64;

/// Rounds of the first stage of a race; each further stage has twice as many.
const FIRST_STAGE: u32 = 2;
/// Fewest rounds with both of the last two levels before a race is decided.
const MIN_ROUNDS: usize = 6;
/// A race is decided earlier if the interval of this confidence of the best level's gain lies above the smallest effect.
const CLEAR_AT: f64 = 0.95;
/// A level is adopted if the interval of this confidence of its gain lies above 0: a rule of thumb, not a test.
const ADOPTS_AT: f64 = 0.8;

/// The score of one trial, as natural logarithms: the goal's statistic, with the sign such that higher is better, and the goodput if
/// it must be kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialScore {
    /// The statistic.
    pub score: f64,
    /// The goodput, if it must be kept.
    pub goodput: Option<f64>,
}

/// The rule of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRule {
    /// The smallest gain that counts, as a fraction of the value.
    pub min_effect: f64,
    /// The smallest share of the start's goodput that must be kept; `None` without such a limit.
    pub min_goodput: Option<f64>,
    /// Seed of the orders.
    pub seed: u64,
}

impl SearchRule {
    /// The smallest gain as a logarithm.
    pub(super) fn min_log(&self) -> f64 {
        (1.0 + self.min_effect).ln()
    }
}

/// A combination: the index of a level for each dimension; 0 is the start's.
pub type Levels = Vec<usize>;

/// A round of a race: trials to be taken one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaceRound {
    /// The dimension of the race.
    pub dimension: usize,
    /// Number of levels that are still in the race.
    pub racing: usize,
    /// The combinations, in the order in which they are to be taken.
    pub trials: Vec<Levels>,
}

/// The result of a race.
#[derive(Debug, Clone, PartialEq)]
pub struct Race {
    /// The dimension.
    pub dimension: usize,
    /// The level at its start.
    pub from: usize,
    /// The other levels that had a trial.
    pub tried: Vec<usize>,
    /// The best of them.
    pub best: Option<usize>,
    /// The gain of the best one over the level at the start in each round that had both, in the order of time.
    pub gains: Vec<f64>,
    /// Whether the best one was adopted.
    pub adopted: bool,
    /// Whether the race was completed.
    pub complete: bool,
}

/// A search in progress. The same seed and the same scores give the same search.
#[derive(Debug, Clone)]
pub struct Search {
    rule: SearchRule,
    levels: Vec<usize>,
    random: SplitMix64,
    incumbent: Levels,
    /// Change of the goodput since the start, as a logarithm.
    goodput_change: f64,
    queue: VecDeque<usize>,
    revisited: BTreeSet<usize>,
    /// Levels without a score, by dimension; they are not tried again.
    failed: BTreeSet<(usize, usize)>,
    running: Option<Running>,
    races: Vec<Race>,
}

/// The race in progress.
#[derive(Debug, Clone)]
struct Running {
    dimension: usize,
    from: usize,
    /// The levels that are still in the race, without the current one.
    challengers: Vec<usize>,
    all: Vec<usize>,
    rounds: Vec<Vec<(usize, TrialScore)>>,
    /// Levels of the round in progress, in its order.
    order: Vec<usize>,
    stage: u32,
    /// Rounds left in the stage.
    left: u32,
    over: bool,
}

impl Search {
    /// A search from level 0 of all dimensions; `levels` has the number of levels of each, in the order in which they are tried.
    #[must_use]
    pub fn new(levels: &[usize], rule: SearchRule) -> Self {
        Self {
            rule,
            levels: levels.to_vec(),
            random: SplitMix64::new(rule.seed),
            incumbent: vec![0; levels.len()],
            goodput_change: 0.0,
            queue: (0..levels.len()).filter(|dimension| levels[*dimension] > 1).collect(),
            revisited: BTreeSet::new(),
            failed: BTreeSet::new(),
            running: None,
            races: Vec::new(),
        }
    }

    /// The next trials; `None` when the search is over. The scores of each round go to [`record`](Self::record).
    pub fn next_round(&mut self) -> Option<RaceRound> {
        loop {
            if self.running.as_ref().is_some_and(|running| running.over) {
                self.settle(true);
            }
            if self.running.is_none() {
                let dimension = self.queue.pop_front()?;
                self.running = self.race(dimension);
            }
            let Some(running) = &mut self.running else { continue };
            running.order = running.challengers.iter().copied().chain([running.from]).collect();
            self.random.shuffle(&mut running.order);
            let with = |level: &usize| {
                let mut levels = self.incumbent.clone();
                levels[running.dimension] = *level;
                levels
            };
            let trials = running.order.iter().map(with).collect();
            return Some(RaceRound { dimension: running.dimension, racing: running.order.len(), trials });
        }
    }

    fn race(&self, dimension: usize) -> Option<Running> {
        let from = self.incumbent[dimension];
        let fits = |level: &usize| *level != from && !self.failed.contains(&(dimension, *level));
        let challengers: Vec<usize> = (0..self.levels[dimension]).filter(fits).collect();
        let all = challengers.clone();
        let (rounds, order) = (Vec::new(), Vec::new());
        let running =
            Running { dimension, from, challengers, all, rounds, order, stage: 0, left: FIRST_STAGE, over: false };
        (!running.challengers.is_empty()).then_some(running)
    }

    /// Takes the scores of the last round's trials, in their order. A level without a score leaves the race; a round in which the
    /// current level has none does not count.
    pub fn record(&mut self, scores: &[Option<TrialScore>]) {
        let Some(running) = &mut self.running else { return };
        let dimension = running.dimension;
        let round: Vec<(usize, Option<TrialScore>)> =
            running.order.iter().copied().zip(scores.iter().copied().chain(std::iter::repeat(None))).collect();
        let counts = round.iter().any(|(level, score)| *level == running.from && score.is_some());
        if counts {
            let failed = round.iter().filter(|(_, score)| score.is_none()).map(|(level, _)| *level);
            self.failed.extend(failed.map(|level| (dimension, level)));
            running.challengers.retain(|level| !self.failed.contains(&(dimension, *level)));
            running.rounds.push(round.into_iter().filter_map(|(level, score)| Some((level, score?))).collect());
        }
        running.left -= 1;
        if running.left == 0 || running.challengers.is_empty() {
            running.end_stage(&self.rule, self.goodput_change);
        }
    }

    /// Ends the search early. A level that is better so far is adopted.
    pub fn stop(&mut self) {
        match self.running.take_if(|running| running.rounds.is_empty()) {
            Some(running) => self.queue.push_front(running.dimension),
            None => self.settle(false),
        }
    }

    /// Ends the race in progress.
    fn settle(&mut self, complete: bool) {
        let Some(running) = self.running.take() else { return };
        let best = running.best(&self.rule, self.goodput_change);
        let gains = best.map(|level| running.gains(level)).unwrap_or_default();
        let adopted = best.is_some() && self.is_gain(&gains);
        if let Some(level) = best.filter(|_| adopted) {
            self.goodput_change += mean(&running.goodput_changes(level)).unwrap_or(0.0);
            self.incumbent[running.dimension] = level;
            // The results of earlier races may differ now, so they are repeated once.
            let before: Vec<usize> = self.races.iter().map(|race| race.dimension).collect();
            for dimension in before {
                if dimension != running.dimension
                    && !self.queue.contains(&dimension)
                    && self.revisited.insert(dimension)
                {
                    self.queue.push_back(dimension);
                }
            }
        }
        let failed = |level: &usize| self.failed.contains(&(running.dimension, *level));
        self.races.push(Race {
            dimension: running.dimension,
            from: running.from,
            tried: running.all.iter().copied().filter(|level| !failed(level)).collect(),
            best,
            gains,
            adopted,
            complete,
        });
    }

    fn is_gain(&self, gains: &[f64]) -> bool {
        let above = mean(gains).is_some_and(|mean| mean > self.rule.min_log());
        above && t_interval(gains, ADOPTS_AT).is_some_and(|interval| interval.low > 0.0)
    }

    /// The best combination so far.
    #[must_use]
    pub fn best(&self) -> &[usize] {
        &self.incumbent
    }

    /// The races that have ended, in the order of their ends.
    #[must_use]
    pub fn races(&self) -> &[Race] {
        &self.races
    }

    /// Dimensions without a race so far.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        let raced = |dimension: &usize| self.races.iter().any(|race| race.dimension == *dimension);
        let running = self.running.as_ref().map(|running| running.dimension);
        self.queue.iter().copied().filter(move |dimension| !raced(dimension) && running != Some(*dimension))
    }

    /// The rule of the search.
    #[must_use]
    pub fn rule(&self) -> &SearchRule {
        &self.rule
    }
}

impl Running {
    /// The gain of a level over the current one, by round.
    fn gains(&self, level: usize) -> Vec<f64> {
        self.differences(level, |score| Some(score.score))
    }

    /// The change of the goodput, by round.
    fn goodput_changes(&self, level: usize) -> Vec<f64> {
        self.differences(level, |score| score.goodput)
    }

    fn differences(&self, level: usize, of: impl Fn(&TrialScore) -> Option<f64>) -> Vec<f64> {
        let find = |round: &Vec<(usize, TrialScore)>, wanted| {
            round.iter().find(|(level, _)| *level == wanted).and_then(|(_, score)| of(score))
        };
        self.rounds.iter().filter_map(|round| Some(find(round, level)? - find(round, self.from)?)).collect()
    }

    /// Whether a level keeps enough of the goodput.
    fn is_allowed(&self, level: usize, rule: &SearchRule, before: f64) -> bool {
        let Some(min) = rule.min_goodput else { return true };
        mean(&self.goodput_changes(level)).is_some_and(|change| before + change >= min.ln())
    }

    /// The challengers that may be adopted, best first.
    fn ranked(&self, rule: &SearchRule, goodput_change: f64) -> Vec<(usize, f64)> {
        let allowed = self.challengers.iter().filter(|level| self.is_allowed(**level, rule, goodput_change));
        let mut ranked: Vec<(usize, f64)> =
            allowed.filter_map(|level| Some((*level, mean(&self.gains(*level))?))).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// The best challenger; if all have left the race, the best of those that left last.
    fn best(&self, rule: &SearchRule, goodput_change: f64) -> Option<usize> {
        let mut of_all = self.clone();
        if of_all.challengers.is_empty() {
            // Those with the most rounds left last.
            let most = self.all.iter().map(|level| self.gains(*level).len()).max()?;
            of_all.challengers = self.all.iter().copied().filter(|level| self.gains(*level).len() == most).collect();
        }
        of_all.ranked(rule, goodput_change).first().map(|(level, _)| *level)
    }

    fn end_stage(&mut self, rule: &SearchRule, goodput_change: f64) {
        let mut ranked = self.ranked(rule, goodput_change);
        // A level that was worse in every round so far leaves the race.
        ranked.retain(|(level, _)| self.gains(*level).iter().any(|gain| *gain > 0.0));
        let rounds = ranked.first().map_or(0, |(level, _)| self.gains(*level).len());
        let keep = if ranked.len() > 1 { (ranked.len() / 2).max(1) } else { ranked.len() };
        ranked.truncate(keep);
        self.challengers = ranked.into_iter().map(|(level, _)| level).collect();
        let clear =
            |level: &usize| t_interval(&self.gains(*level), CLEAR_AT).is_some_and(|gain| gain.low > rule.min_log());
        let decided = rounds >= MIN_ROUNDS || self.challengers.iter().any(clear);
        self.over = self.challengers.is_empty() || (keep == 1 && decided);
        self.stage += 1;
        self.left = FIRST_STAGE << self.stage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(min_goodput: Option<f64>) -> SearchRule {
        SearchRule { min_effect: 0.01, min_goodput, seed: 7 }
    }

    /// Runs a search over exact scores, at most this many rounds; returns the number of trials.
    fn run(search: &mut Search, max_rounds: usize, value: impl Fn(&[usize]) -> Option<TrialScore>) -> usize {
        let mut trials = 0;
        for _ in 0..max_rounds {
            let Some(round) = search.next_round() else { break };
            trials += round.trials.len();
            let scores: Vec<Option<TrialScore>> = round.trials.iter().map(|levels| value(levels)).collect();
            search.record(&scores);
        }
        trials
    }

    fn plain(score: f64) -> Option<TrialScore> {
        Some(TrialScore { score, goodput: None })
    }

    #[test]
    fn the_best_level_of_each_dimension_is_found() {
        let mut search = Search::new(&[6, 2, 4], rule(None));
        let gains: [&[f64]; 3] = [&[0.0, 0.1, 0.5, 0.7, 0.6, 0.1], &[0.0, -0.2], &[0.0, 0.05, 0.2, -0.1]];
        let trials = run(&mut search, 1000, |at| plain(at.iter().zip(gains).map(|(level, gains)| gains[*level]).sum()));
        assert_eq!(search.best(), [3, 0, 2]);
        assert!(trials < 120, "{trials}");
        let lost = search.races().iter().find(|race| race.dimension == 1).unwrap();
        assert!(!lost.adopted && lost.complete && lost.best == Some(1), "{lost:?}");
        assert!(lost.gains.iter().all(|gain| (gain + 0.2).abs() < 1e-9));
    }

    #[test]
    fn what_lost_before_another_change_has_a_second_race() {
        // The second dimension only helps once the third one is changed.
        let mut search = Search::new(&[2, 2], rule(None));
        run(&mut search, 1000, |at| plain(if at[1] == 1 { 0.3 + 0.3 * at[0] as f64 } else { -0.1 * at[0] as f64 }));
        assert_eq!(search.best(), [1, 1]);
        assert_eq!(search.races().iter().map(|race| race.dimension).collect::<Vec<_>>(), [0, 1, 0, 1]);
    }

    #[test]
    fn a_gain_below_the_smallest_effect_changes_nothing() {
        let mut search = Search::new(&[2], rule(None));
        run(&mut search, 1000, |at| plain(0.005 * at[0] as f64));
        assert_eq!((search.best(), search.races()[0].adopted), (&[0][..], false));
        assert_eq!(search.races()[0].gains.len(), MIN_ROUNDS);
    }

    #[test]
    fn a_clear_gain_needs_few_rounds() {
        let mut search = Search::new(&[3], rule(None));
        let trials = run(&mut search, 1000, |at| plain([0.0, 0.3, 0.8][at[0]]));
        assert_eq!((search.best(), trials, search.races()[0].complete), (&[2][..], 6, true));
    }

    #[test]
    fn a_level_without_a_score_leaves_the_race() {
        let mut search = Search::new(&[3], rule(None));
        run(&mut search, 1000, |at| (at[0] != 1).then_some(TrialScore { score: at[0] as f64, goodput: None }));
        assert_eq!((search.best(), search.races()[0].tried.as_slice()), (&[2][..], &[2][..]));
    }

    #[test]
    fn without_any_scores_the_search_ends() {
        let mut search = Search::new(&[3, 2], rule(None));
        run(&mut search, 1000, |_| None);
        assert_eq!(search.best(), [0, 0]);
        assert!(search.next_round().is_none() && search.races().iter().all(|race| race.gains.is_empty()));
    }

    #[test]
    fn a_gain_that_costs_too_much_goodput_is_not_adopted() {
        let mut search = Search::new(&[3], rule(Some(0.95)));
        // The cheapest level keeps 50 % of the goodput, the other one 97 %.
        let kept = [0.0, 0.5f64.ln(), 0.97f64.ln()];
        run(&mut search, 1000, |at| Some(TrialScore { score: [0.0, 1.0, 0.4][at[0]], goodput: Some(kept[at[0]]) }));
        assert_eq!(search.best(), [2]);
        assert!((search.goodput_change - 0.97f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn a_stopped_search_adopts_clear_gains_and_lists_waiting_dimensions() {
        let mut search = Search::new(&[3, 2], rule(None));
        for gain in [0.8, 1.0] {
            run(&mut search, 1, |at| plain(if at[0] == 2 { gain } else { 0.0 }));
        }
        search.next_round();
        search.stop();
        assert_eq!((search.best()[0], search.races()[0].complete), (2, false));
        assert_eq!(search.waiting().collect::<Vec<_>>(), [1]);
        // A race without a round has not taken place.
        search.next_round();
        search.stop();
        assert_eq!((search.races().len(), search.waiting().collect::<Vec<_>>()), (1, vec![1]));
    }
}

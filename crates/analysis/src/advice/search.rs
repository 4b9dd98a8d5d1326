//! The search: dimension after dimension, the levels of one race each other by successive halving.
//!
//! A race takes randomised complete blocks: each block has one trial of every level that is still in it, in random order, so
//! that a drift hits all of them alike and a level is only ever compared with what ran beside it. After a round the better half
//! goes on with twice the blocks (Karnin, Koren and Somekh, 2013, "Almost optimal exploration in multi-armed bandits"); the level
//! that is in force always does, for it is what the others are compared with. Over the dimensions the search is greedy, and
//! comes back once to those it had before something else changed. Nothing that it adopts is a claim: those are made on fresh
//! pairs ([`super::Confirmation`]).

use std::collections::{BTreeSet, VecDeque};

use crate::stats::{SplitMix64, mean, t_interval};

/// Blocks of the first round of a race; each further one has twice as many.
const FIRST_ROUND: u32 = 2;
/// Fewest blocks in which the last two levels met before a race is decided.
const MIN_ROUNDS: usize = 6;
/// A race is decided before where the interval of this confidence of the best one's gain lies above the least effect.
const CLEAR_AT: f64 = 0.95;
/// A level is adopted when the interval of this confidence of its gain lies above 0: a rule of thumb, not a claim.
const ADOPTS_AT: f64 = 0.8;

/// What one trial says, as natural logarithms: the goal's statistic, turned so that more is better, and the goodput where it
/// must not suffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The statistic.
    pub score: f64,
    /// The goodput that is watched.
    pub guard: Option<f64>,
}

/// How a search judges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRule {
    /// The least gain that counts, as a fraction of the value.
    pub min_effect: f64,
    /// The least part of the start's goodput that must be left; `None` where it is not watched.
    pub guard: Option<f64>,
    /// Seed of the orders.
    pub seed: u64,
}

impl SearchRule {
    /// The least gain as a logarithm.
    pub(super) fn min_log(&self) -> f64 {
        (1.0 + self.min_effect).ln()
    }
}

/// A combination: the number of a level for each dimension; 0 is the start's.
pub type Levels = Vec<usize>;

/// Trials to be taken one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaceRound {
    /// The dimension that races.
    pub dimension: usize,
    /// Levels that are still in the race.
    pub racing: usize,
    /// The combinations, in the order in which they are to be taken.
    pub trials: Vec<Levels>,
}

/// How the race of a dimension went.
#[derive(Debug, Clone, PartialEq)]
pub struct Race {
    /// The dimension.
    pub dimension: usize,
    /// The level that was in force.
    pub from: usize,
    /// The other levels that had a trial.
    pub tried: Vec<usize>,
    /// The best of them.
    pub best: Option<usize>,
    /// By how much the best one was better than the one in force in each block that had both, in the order of time.
    pub gains: Vec<f64>,
    /// Whether the best one was adopted.
    pub adopted: bool,
    /// Whether the race was run to its end.
    pub whole: bool,
}

/// A search under way. The same seed and the same readings give the same search.
#[derive(Debug, Clone)]
pub struct Search {
    rule: SearchRule,
    levels: Vec<usize>,
    random: SplitMix64,
    incumbent: Levels,
    /// Change of the watched goodput since the start, as a logarithm.
    guard: f64,
    queue: VecDeque<usize>,
    revisited: BTreeSet<usize>,
    /// Levels that gave no reading, by dimension; they are not tried again.
    failed: BTreeSet<(usize, usize)>,
    running: Option<Running>,
    races: Vec<Race>,
}

/// The race that is being run.
#[derive(Debug, Clone)]
struct Running {
    dimension: usize,
    from: usize,
    /// The levels against the one in force, which is not among them.
    challengers: Vec<usize>,
    all: Vec<usize>,
    blocks: Vec<Vec<(usize, Reading)>>,
    /// Levels of the block that is out.
    order: Vec<usize>,
    round: u32,
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
            guard: 0.0,
            queue: (0..levels.len()).filter(|dimension| levels[*dimension] > 1).collect(),
            revisited: BTreeSet::new(),
            failed: BTreeSet::new(),
            running: None,
            races: Vec::new(),
        }
    }

    /// The trials that come next; `None` when the search is over. Each block is to be answered by [`record`](Self::record).
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
        let (blocks, order) = (Vec::new(), Vec::new());
        let running =
            Running { dimension, from, challengers, all, blocks, order, round: 0, left: FIRST_ROUND, over: false };
        (!running.challengers.is_empty()).then_some(running)
    }

    /// Takes what the last block's trials said, in their order; a level without a reading drops out. A block in which the level in
    /// force has none is not counted.
    pub fn record(&mut self, readings: &[Option<Reading>]) {
        let Some(running) = &mut self.running else { return };
        let dimension = running.dimension;
        let block: Vec<(usize, Option<Reading>)> =
            running.order.iter().copied().zip(readings.iter().copied().chain(std::iter::repeat(None))).collect();
        let stands = block.iter().any(|(level, reading)| *level == running.from && reading.is_some());
        if stands {
            let silent = block.iter().filter(|(_, reading)| reading.is_none()).map(|(level, _)| *level);
            self.failed.extend(silent.map(|level| (dimension, level)));
            running.challengers.retain(|level| !self.failed.contains(&(dimension, *level)));
            running.blocks.push(block.into_iter().filter_map(|(level, reading)| Some((level, reading?))).collect());
        }
        running.left -= 1;
        if running.left == 0 || running.challengers.is_empty() {
            running.end_round(&self.rule, self.guard);
        }
    }

    /// Ends the search where it stands: a level that is clearly better by now is adopted all the same.
    pub fn stop(&mut self) {
        match self.running.take_if(|running| running.blocks.is_empty()) {
            Some(running) => self.queue.push_front(running.dimension),
            None => self.settle(false),
        }
    }

    /// Makes a race of the past.
    fn settle(&mut self, whole: bool) {
        let Some(running) = self.running.take() else { return };
        let best = running.best(&self.rule, self.guard);
        let gains = best.map(|level| running.gains(level)).unwrap_or_default();
        let adopted = best.is_some() && self.is_gain(&gains);
        if let Some(level) = best.filter(|_| adopted) {
            self.guard += mean(&running.guards(level)).unwrap_or(0.0);
            self.incumbent[running.dimension] = level;
            // What lost before may win now, and the other way round: once.
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
        let silent = |level: &usize| self.failed.contains(&(running.dimension, *level));
        self.races.push(Race {
            dimension: running.dimension,
            from: running.from,
            tried: running.all.iter().copied().filter(|level| !silent(level)).collect(),
            best,
            gains,
            adopted,
            whole,
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

    /// The races that have ended, in the order in which they did.
    #[must_use]
    pub fn races(&self) -> &[Race] {
        &self.races
    }

    /// Dimensions that have not raced yet.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        let raced = |dimension: &usize| self.races.iter().any(|race| race.dimension == *dimension);
        let running = self.running.as_ref().map(|running| running.dimension);
        self.queue.iter().copied().filter(move |dimension| !raced(dimension) && running != Some(*dimension))
    }

    /// How the search judges.
    #[must_use]
    pub fn rule(&self) -> &SearchRule {
        &self.rule
    }
}

impl Running {
    /// By how much a level was better than the one in force, block by block.
    fn gains(&self, level: usize) -> Vec<f64> {
        self.differences(level, |reading| Some(reading.score))
    }

    /// The same of the watched goodput.
    fn guards(&self, level: usize) -> Vec<f64> {
        self.differences(level, |reading| reading.guard)
    }

    fn differences(&self, level: usize, of: impl Fn(&Reading) -> Option<f64>) -> Vec<f64> {
        let find = |block: &Vec<(usize, Reading)>, wanted| {
            block.iter().find(|(level, _)| *level == wanted).and_then(|(_, reading)| of(reading))
        };
        self.blocks.iter().filter_map(|block| Some(find(block, level)? - find(block, self.from)?)).collect()
    }

    /// Whether a level leaves enough of the watched goodput.
    fn is_allowed(&self, level: usize, rule: &SearchRule, before: f64) -> bool {
        let Some(least) = rule.guard else { return true };
        mean(&self.guards(level)).is_some_and(|change| before + change >= least.ln())
    }

    /// The challengers that may be adopted, best first.
    fn ranked(&self, rule: &SearchRule, guard: f64) -> Vec<(usize, f64)> {
        let allowed = self.challengers.iter().filter(|level| self.is_allowed(**level, rule, guard));
        let mut ranked: Vec<(usize, f64)> =
            allowed.filter_map(|level| Some((*level, mean(&self.gains(*level))?))).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// The best challenger; of those that were worse in every block the one that was dropped last.
    fn best(&self, rule: &SearchRule, guard: f64) -> Option<usize> {
        let mut of_all = self.clone();
        if of_all.challengers.is_empty() {
            // None is left: the one that met the level in force most often tells most.
            let most = self.all.iter().map(|level| self.gains(*level).len()).max()?;
            of_all.challengers = self.all.iter().copied().filter(|level| self.gains(*level).len() == most).collect();
        }
        of_all.ranked(rule, guard).first().map(|(level, _)| *level)
    }

    fn end_round(&mut self, rule: &SearchRule, guard: f64) {
        let mut ranked = self.ranked(rule, guard);
        // Worse in every block so far: not worth more.
        ranked.retain(|(level, _)| self.gains(*level).iter().any(|gain| *gain > 0.0));
        let met = ranked.first().map_or(0, |(level, _)| self.gains(*level).len());
        let keep = if ranked.len() > 1 { (ranked.len() / 2).max(1) } else { ranked.len() };
        ranked.truncate(keep);
        self.challengers = ranked.into_iter().map(|(level, _)| level).collect();
        let clear =
            |level: &usize| t_interval(&self.gains(*level), CLEAR_AT).is_some_and(|gain| gain.low > rule.min_log());
        let decided = met >= MIN_ROUNDS || self.challengers.iter().any(clear);
        self.over = self.challengers.is_empty() || (keep == 1 && decided);
        self.round += 1;
        self.left = FIRST_ROUND << self.round;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(guard: Option<f64>) -> SearchRule {
        SearchRule { min_effect: 0.01, guard, seed: 7 }
    }

    /// Runs a search over exact readings, at most so many blocks.
    fn run(search: &mut Search, most: usize, value: impl Fn(&[usize]) -> Option<Reading>) -> usize {
        let mut trials = 0;
        for _ in 0..most {
            let Some(block) = search.next_round() else { break };
            trials += block.trials.len();
            let readings: Vec<Option<Reading>> = block.trials.iter().map(|levels| value(levels)).collect();
            search.record(&readings);
        }
        trials
    }

    fn plain(score: f64) -> Option<Reading> {
        Some(Reading { score, guard: None })
    }

    #[test]
    fn the_best_level_of_each_dimension_is_found() {
        let mut search = Search::new(&[6, 2, 4], rule(None));
        let gains: [&[f64]; 3] = [&[0.0, 0.1, 0.5, 0.7, 0.6, 0.1], &[0.0, -0.2], &[0.0, 0.05, 0.2, -0.1]];
        let trials = run(&mut search, 1000, |at| plain(at.iter().zip(gains).map(|(level, gains)| gains[*level]).sum()));
        assert_eq!(search.best(), [3, 0, 2]);
        assert!(trials < 120, "{trials}");
        let lost = search.races().iter().find(|race| race.dimension == 1).unwrap();
        assert!(!lost.adopted && lost.whole && lost.best == Some(1), "{lost:?}");
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
    fn a_gain_below_the_least_effect_changes_nothing() {
        let mut search = Search::new(&[2], rule(None));
        run(&mut search, 1000, |at| plain(0.005 * at[0] as f64));
        assert_eq!((search.best(), search.races()[0].adopted), (&[0][..], false));
        assert_eq!(search.races()[0].gains.len(), MIN_ROUNDS);
    }

    #[test]
    fn a_gain_that_is_plain_needs_few_blocks() {
        let mut search = Search::new(&[3], rule(None));
        let trials = run(&mut search, 1000, |at| plain([0.0, 0.3, 0.8][at[0]]));
        assert_eq!((search.best(), trials, search.races()[0].whole), (&[2][..], 6, true));
    }

    #[test]
    fn a_level_that_gives_no_reading_drops_out() {
        let mut search = Search::new(&[3], rule(None));
        run(&mut search, 1000, |at| (at[0] != 1).then_some(Reading { score: at[0] as f64, guard: None }));
        assert_eq!((search.best(), search.races()[0].tried.as_slice()), (&[2][..], &[2][..]));
    }

    #[test]
    fn without_readings_at_all_it_ends() {
        let mut search = Search::new(&[3, 2], rule(None));
        run(&mut search, 1000, |_| None);
        assert_eq!(search.best(), [0, 0]);
        assert!(search.next_round().is_none() && search.races().iter().all(|race| race.gains.is_empty()));
    }

    #[test]
    fn a_gain_that_costs_too_much_of_the_goodput_is_none() {
        let mut search = Search::new(&[3], rule(Some(0.95)));
        // The cheaper level carries half, the other one 97 %.
        let guards = [0.0, 0.5f64.ln(), 0.97f64.ln()];
        run(&mut search, 1000, |at| Some(Reading { score: [0.0, 1.0, 0.4][at[0]], guard: Some(guards[at[0]]) }));
        assert_eq!(search.best(), [2]);
        assert!((search.guard - 0.97f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn a_search_that_is_stopped_keeps_what_is_clear_and_says_what_waits() {
        let mut search = Search::new(&[3, 2], rule(None));
        for gain in [0.8, 1.0] {
            run(&mut search, 1, |at| plain(if at[0] == 2 { gain } else { 0.0 }));
        }
        search.next_round();
        search.stop();
        assert_eq!((search.best()[0], search.races()[0].whole), (2, false));
        assert_eq!(search.waiting().collect::<Vec<_>>(), [1]);
        // A race without a block has not been run.
        search.next_round();
        search.stop();
        assert_eq!((search.races().len(), search.waiting().collect::<Vec<_>>()), (1, vec![1]));
    }
}

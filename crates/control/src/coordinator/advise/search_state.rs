//! The state of a search; it survives an interrupt.

use std::collections::BTreeMap;

use analysis::advice::{Candidate, Confirmation, Search, SearchResult, advice};
use model::{Advice, AdviceSpent, AdviceUntried, Finding, Goal, RunHeader, Spec};

use super::super::metrics::Metrics;

/// A running search.
pub(super) struct SearchState {
    pub(super) goal: Goal,
    /// The start, with a length of trials that suits the path.
    pub(super) start: Spec,
    pub(super) candidates: Vec<Candidate>,
    pub(super) search: Option<Search>,
    pub(super) fresh: Option<Confirmation>,
    pub(super) untried: Vec<AdviceUntried>,
    spent: Vec<AdviceSpent>,
    /// Duration of the last trial, ns.
    last_ns: u64,
    /// The cells by their changes.
    pub(super) cells: BTreeMap<BTreeMap<String, String>, u32>,
    pub(super) metrics: Metrics,
    /// Trials that gave a score.
    pub(super) scores: u32,
}

impl SearchState {
    pub(super) fn new(goal: Goal, start: Spec, metrics: Metrics) -> Self {
        Self {
            goal,
            start,
            candidates: Vec::new(),
            search: None,
            fresh: None,
            untried: Vec::new(),
            spent: Vec::new(),
            last_ns: 0,
            cells: BTreeMap::new(),
            metrics,
            scores: 0,
        }
    }

    /// Ends the search.
    pub(super) fn stop(&mut self) {
        self.search.as_mut().into_iter().for_each(Search::stop);
    }

    /// Whether the best combination differs from the start.
    pub(super) fn has_changes(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.best().iter().any(|level| *level != 0))
    }

    /// Adds a trial's time.
    pub(super) fn spend(&mut self, on: &str, ns: u64) {
        self.last_ns = ns;
        match self.spent.iter_mut().find(|spent| spent.on == on) {
            Some(spent) => (spent.trials, spent.ns) = (spent.trials + 1, spent.ns + ns),
            None => self.spent.push(AdviceSpent { on: on.into(), trials: 1, ns }),
        }
    }

    /// Records a level that could not be tried.
    pub(super) fn cannot(&mut self, what: String, why: String) {
        if !self.untried.iter().any(|one| one.what == what) {
            self.untried.push(AdviceUntried { what, why });
        }
    }

    /// Duration of a trial with its set-up and pause, ns: of several averages the longest.
    pub(super) fn each_ns(&self) -> f64 {
        // Pilot trials may have another length, and the first of them starts the worker processes.
        let own = |spent: &&AdviceSpent| spent.on != super::PILOT;
        let each = self.spent.iter().filter(own).map(|spent| spent.ns as f64 / f64::from(spent.trials.max(1)));
        each.reduce(f64::max).unwrap_or(self.last_ns as f64)
    }

    /// The advice and the findings so far; empty before the search has started.
    pub(super) fn result(&self, header: &RunHeader) -> (Option<Advice>, Vec<Finding>) {
        let Some(search) = &self.search else { return (None, Vec::new()) };
        let confirmed = self.fresh.as_ref().map(Confirmation::judged).unwrap_or_default();
        let all = SearchResult {
            goal: self.goal,
            start: &self.start,
            target: header.target.as_deref(),
            candidates: &self.candidates,
            search,
            confirmed: &confirmed,
            untried: &self.untried,
            spent: &self.spent,
            hosts: [&header.near, &header.far],
        };
        let (advice, findings) = advice(&all, |levels| self.cells.get(levels).copied());
        (Some(advice), findings)
    }
}

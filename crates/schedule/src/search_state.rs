//! The state of a search; it survives an interrupt.

use std::collections::BTreeMap;

use analysis::advice::{Candidate, Confirmation, Search, SearchResult, advice};
use model::{Advice, AdviceSpent, AdviceUntried, Finding, Goal, RunHeader, Spec};
use text::Text;

/// The name of the pilot trials in the advice.
pub(crate) const PILOT: &str = "pilot trials";

/// A running search.
#[derive(Debug)]
pub(crate) struct SearchState {
    pub(crate) goal: Goal,
    /// The start, with a length of trials that suits the path.
    pub(crate) start: Spec,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) search: Option<Search>,
    pub(crate) fresh: Option<Confirmation>,
    pub(crate) untried: Vec<AdviceUntried>,
    spent: Vec<AdviceSpent>,
    /// Duration of the last trial, ns.
    last_ns: u64,
    /// The cells by their changes.
    pub(crate) cells: BTreeMap<BTreeMap<String, String>, u32>,
    /// Trials that gave a score.
    pub(crate) scores: u32,
}

impl SearchState {
    pub(crate) fn new(goal: Goal, start: Spec) -> Self {
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
            scores: 0,
        }
    }

    /// Ends the search.
    pub(crate) fn stop(&mut self) {
        self.search.as_mut().into_iter().for_each(Search::stop);
    }

    /// Whether the best combination differs from the start.
    pub(crate) fn has_changes(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.best().iter().any(|level| *level != 0))
    }

    /// Adds a trial's time.
    pub(crate) fn spend(&mut self, on: &str, ns: u64) {
        self.last_ns = ns;
        match self.spent.iter_mut().find(|spent| spent.on == on) {
            Some(spent) => (spent.trials, spent.ns) = (spent.trials + 1, spent.ns + ns),
            None => self.spent.push(AdviceSpent { on: on.into(), trials: 1, ns }),
        }
    }

    /// Records a level that could not be tried.
    pub(crate) fn cannot(&mut self, what: String, why: Text) {
        if !self.untried.iter().any(|one| one.what == what) {
            self.untried.push(AdviceUntried { what, why, allow: None });
        }
    }

    /// Duration of a trial with its set-up and pause, ns: of several averages the longest.
    pub(crate) fn each_ns(&self) -> f64 {
        // Pilot trials may have another length, and the first of them starts the worker processes.
        let own = |spent: &&AdviceSpent| spent.on != PILOT;
        let each = self.spent.iter().filter(own).map(|spent| spent.ns as f64 / f64::from(spent.trials.max(1)));
        each.reduce(f64::max).unwrap_or(self.last_ns as f64)
    }

    /// The advice and the findings so far; empty before the search has started.
    pub(crate) fn result(&self, header: &RunHeader) -> (Option<Advice>, Vec<Finding>) {
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

    /// The cells of the start and of the best combination, if they differ.
    pub(crate) fn compared(&self, best: &BTreeMap<String, String>) -> Option<[u32; 2]> {
        let of = |levels| self.cells.get(levels).copied();
        Some([of(&BTreeMap::new())?, of(best)?]).filter(|[start, best]| start != best)
    }
}

//! The state of each cell of a run.

use std::collections::{BTreeMap, BTreeSet};

use analysis::Context;
use analysis::outcome::point;
use analysis::stats::{Sequential, SizeParts, passes_needed};
use model::{
    Anatomy, Cell, EndTally, Finding, Histogram, Outcome, Pass, PeakCheck, Retest, RttTally, RunHeader, Shared, Spec,
    Stopping, TransportName, Trial, Verdict,
};

use crate::PassResult;

/// The kind of a run's schedule; a cell's outcome depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleKind {
    /// One cell until it has converged.
    Single,
    /// Block sizes in passes over all of them.
    Curve,
    /// Two cells in turns.
    Paired,
    /// Rounds of all cells of a plan.
    Plan,
    /// A search for better settings.
    Search,
}

impl ScheduleKind {
    /// Whether cells are measured in turns to compare them; then no cell is measured until it has converged by itself.
    #[must_use]
    pub fn is_paired(self) -> bool {
        matches!(self, Self::Paired | Self::Search)
    }
}

/// All cells of a run.
#[derive(Debug)]
pub struct Cells {
    rule: Stopping,
    stop: Sequential,
    /// The same rule for the points of a curve.
    of_points: Sequential,
    kind: ScheduleKind,
    /// The verdict on the lab's links for the trials that are recorded next.
    pub links: Option<Verdict>,
    /// The hosts of the cells.
    header: RunHeader,
    /// The passes with the hosts' activity, to find what limited a cell; empty for curves.
    passes: Vec<Pass>,
    open: BTreeMap<u32, CellState>,
    done: Vec<Outcome>,
    /// Of a curve's cells: their legs without the effects of their passes, as of the last separation.
    parts: BTreeMap<u32, SizeParts>,
    /// The number of the next new cell: no cell has that of one that was dropped, which stays in the header.
    next_id: u32,
}

/// One cell that is being measured.
#[derive(Debug)]
pub struct CellState {
    /// The cell.
    pub cell: Cell,
    trials: Vec<Trial>,
    /// All round trips, for curves, whose trials have digests only.
    histogram: Option<Histogram>,
    overlapped: bool,
    /// A verdict that the schedule adds.
    remark: Option<Verdict>,
    /// Round trips of the probe before the first trial.
    pub idle: Option<RttTally>,
    /// Of the smallest size of a curve: its stamped round trips.
    anatomy: Option<Anatomy>,
    /// The check of the peak; only the fastest size of a curve has one.
    check: Option<PeakCheck>,
    /// Some of its trials are from an earlier part of the run, which stored no histograms of a curve's trials.
    adopted: bool,
    /// Of a curve: it has converged as of the last analysis. It stays open, because the level that all sizes share moves on.
    settled: bool,
}

impl Cells {
    /// The cells of `header`, without trials.
    #[must_use]
    pub fn new(header: &RunHeader, kind: ScheduleKind) -> Self {
        let mut cells = Self {
            rule: header.stopping.clone(),
            stop: Sequential::new(&header.stopping),
            of_points: point::analyses(&header.stopping),
            kind,
            links: None,
            header: header.clone(),
            passes: Vec::new(),
            open: BTreeMap::new(),
            done: Vec::new(),
            parts: BTreeMap::new(),
            next_id: 0,
        };
        header.cells.iter().cloned().for_each(|cell| cells.add(cell));
        cells
    }

    /// Opens a cell.
    pub fn add(&mut self, cell: Cell) {
        let state = CellState {
            trials: Vec::new(),
            histogram: None,
            overlapped: false,
            remark: None,
            idle: None,
            anatomy: None,
            check: None,
            adopted: false,
            settled: false,
            cell,
        };
        self.next_id = self.next_id.max(state.cell.id + 1);
        self.open.insert(state.cell.id, state);
    }

    /// The kind of the run's schedule.
    #[must_use]
    pub fn kind(&self) -> ScheduleKind {
        self.kind
    }

    /// The number of the next new cell.
    #[must_use]
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// The open cells.
    pub fn open(&self) -> impl Iterator<Item = &CellState> {
        self.open.values()
    }

    /// The open cells that need more trials.
    pub fn unsettled(&self) -> impl Iterator<Item = &CellState> {
        self.open.values().filter(|state| !state.settled)
    }

    /// Number of open cells over `transport` that have converged, so that a curve's memory ceiling is not counted.
    pub fn settled_count(&self, transport: &TransportName) -> usize {
        self.open.values().filter(|state| state.settled && state.cell.spec.transport == *transport).count()
    }

    /// Makes a trial from both ends' tallies and adds it to its cell.
    pub fn trial(
        &mut self,
        id: u32,
        pass: u32,
        position: u32,
        mut near: EndTally,
        mut far: EndTally,
        overlapped: bool,
    ) -> Option<Trial> {
        let state = self.open.get_mut(&id)?;
        let spec = &state.cell.spec;
        near.anatomy = analysis::anatomy::of_trial(spec, near.stamps.take(), far.stamps.take());
        let settled = analysis::steady::settle(spec, &mut near, &mut far);
        let ledger = analysis::ledger(spec, &near, &far);
        let value = analysis::trial_value(spec, &near, &far);
        let mut verdicts = analysis::trial_verdicts(spec, &near, &far, &ledger);
        verdicts.extend((settled == Some(false)).then_some(Verdict::NotSettled));
        verdicts.extend(self.links);
        if spec.is_point() {
            // Otherwise a pass with one size left would give some trials a cost and others none.
            (near.spent, far.spent) = (None, None);
            for rtt in [&mut near.rtt, &mut far.rtt].into_iter().flatten() {
                match (rtt.histogram.take(), &mut state.histogram) {
                    (Some(own), Some(sum)) => sum.merge(&own),
                    (Some(own), slot) => *slot = Some(own),
                    (None, _) => {}
                }
            }
        }
        // The reason for missing cycles is stated once.
        if !state.trials.is_empty() {
            for spent in [&mut near.spent, &mut far.spent].into_iter().flatten() {
                spent.cycles_missing = None;
            }
        }
        state.overlapped |= overlapped;
        let trial = Trial { cell: id, pass, position, near: near.into(), far: far.into(), ledger, value, verdicts };
        state.trials.push(trial.clone());
        Some(trial)
    }

    /// Makes a trial of a cell that is closed, without adding it: it tests again what stands out.
    pub(crate) fn retested(
        &self,
        id: u32,
        pass: u32,
        position: u32,
        mut near: EndTally,
        mut far: EndTally,
    ) -> Option<Trial> {
        let spec = &Cell::find(&self.header.cells, id)?.spec;
        let settled = analysis::steady::settle(spec, &mut near, &mut far);
        let ledger = analysis::ledger(spec, &near, &far);
        let value = analysis::trial_value(spec, &near, &far);
        let mut verdicts = analysis::trial_verdicts(spec, &near, &far, &ledger);
        verdicts.extend((settled == Some(false)).then_some(Verdict::NotSettled));
        verdicts.extend(self.links);
        Some(Trial { cell: id, pass, position, near: near.into(), far: far.into(), ledger, value, verdicts })
    }

    /// Separates what a curve's passes do to all sizes from the cells' own values; called after a pass of the main transport.
    pub fn separate(&mut self) {
        let mut cells: Vec<(&Spec, u32, &[Trial])> =
            self.open.values().map(|state| (&*state.cell.spec, state.cell.id, state.trials.as_slice())).collect();
        cells.sort_by_key(|(spec, ..)| spec.block);
        let trials: Vec<&[Trial]> = cells.iter().map(|(_, _, trials)| *trials).collect();
        let ids = cells.iter().map(|(_, id, _)| *id);
        self.parts = ids.zip(analysis::outcome::parts(&trials)).collect();
    }

    /// Adds a pass after its trials. Passes of a curve are not kept, because its sizes share them.
    pub fn pass(&mut self, pass: &Pass) {
        if self.kind != ScheduleKind::Curve {
            self.passes.push(pass.clone());
        }
    }

    /// Whether a cell has converged, at the interim analyses of the stop rule only.
    pub fn is_converged(&self, id: u32) -> bool {
        self.open.get(&id).is_some_and(|state| {
            let values = analysis::outcome::sample(&state.trials);
            if self.kind == ScheduleKind::Curve {
                point::is_converged(&values, self.parts.get(&id), &self.of_points)
            } else {
                self.stop.is_converged(&values)
            }
        })
    }

    /// Whether a curve is analysed after this number of passes.
    pub fn is_analysed(&self, passes: u32) -> bool {
        self.of_points.is_interim_analysis(passes as usize)
    }

    /// Updates which cells of a curve have converged, at an analysis. A cell can lose that state if later passes show that its own
    /// passes were unusual.
    pub fn settle(&mut self) {
        let ids: Vec<u32> = self.open.keys().copied().collect();
        for id in ids {
            let converged = self.is_converged(id);
            if let Some(state) = self.open.get_mut(&id) {
                state.settled = converged;
            }
        }
    }

    /// Closes a cell.
    pub fn finish(&mut self, id: u32, early: bool) -> Option<Outcome> {
        let state = self.open.remove(&id)?;
        if state.trials.is_empty() {
            return None;
        }
        let point = state.cell.spec.is_point();
        let context = Context {
            overlapped: state.overlapped,
            cut_short: early && !state.settled,
            curve: point,
            legs: self.kind == ScheduleKind::Curve,
            paired: self.kind.is_paired(),
            // The histogram would lack the adopted trials.
            histogram: state.histogram.filter(|_| !state.adopted),
            idle: state.idle,
            anatomy: state.anatomy,
            check: state.check,
            parts: self.parts.remove(&id),
        };
        let mut outcome = analysis::outcome(&state.cell, state.trials, &self.rule, context);
        let [near, far] = self.header.hosts_of(&state.cell);
        analysis::bound(&mut outcome, near, far);
        outcome.summary.accuracy = analysis::accuracy(&outcome, near, far);
        let one_host = near.boot_id.is_some() && near.boot_id == far.boot_id;
        if !point {
            analysis::set_why(&mut outcome, &self.header, &self.passes);
        }
        for remark in state.remark.into_iter().chain(one_host.then_some(Verdict::SameHost)) {
            analysis::outcome::add_verdict(&mut outcome, remark);
        }
        self.done.push(outcome.clone());
        Some(outcome)
    }

    /// Closes all open cells.
    pub fn finish_all(&mut self, early: bool) -> Vec<Outcome> {
        if self.kind == ScheduleKind::Curve {
            self.separate();
        }
        let ids: Vec<u32> = self.open.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.finish(id, early)).collect()
    }

    /// The findings on the outcomes of the measured transport; a curve's memory ceiling is not included.
    pub fn findings(&self, pass_rounds: &[Pass], retests: &[Retest]) -> Vec<Finding> {
        if self.kind == ScheduleKind::Search {
            return Vec::new();
        }
        if self.kind == ScheduleKind::Plan {
            return analysis::of_plan(&self.header, &self.done, pass_rounds, retests);
        }
        if self.kind == ScheduleKind::Paired {
            let mut outcomes = self.done.clone();
            outcomes.sort_by_key(|outcome| outcome.cell);
            return analysis::of_paired(&outcomes, &self.rule);
        }
        let main = self.done.iter().min_by_key(|outcome| outcome.cell).map(|outcome| outcome.spec.transport.clone());
        let mut outcomes: Vec<Outcome> =
            self.done.iter().filter(|outcome| Some(&outcome.spec.transport) == main.as_ref()).cloned().collect();
        outcomes.sort_by_key(|outcome| outcome.spec.block);
        if self.kind == ScheduleKind::Curve { analysis::of_curve(&outcomes) } else { analysis::of_single(&outcomes) }
    }

    /// The outcomes so far.
    pub fn done(&self) -> &[Outcome] {
        &self.done
    }

    /// The trials of an open cell so far; empty for one that is not open.
    pub fn trials_of(&self, id: u32) -> &[Trial] {
        self.open.get(&id).map_or(&[], |state| &state.trials)
    }

    /// The outcome that an open cell would have now, with its ceiling and limiter; `None` without a trial.
    pub fn interim_outcome(&self, id: u32) -> Option<Outcome> {
        let state = self.open.get(&id).filter(|state| !state.trials.is_empty())?;
        let context = Context { paired: self.kind.is_paired(), ..Context::default() };
        let mut outcome = analysis::outcome(&state.cell, state.trials.clone(), &self.rule, context);
        let [near, far] = self.header.hosts_of(&state.cell);
        analysis::bound(&mut outcome, near, far);
        analysis::set_why(&mut outcome, &self.header, &self.passes);
        Some(outcome)
    }

    /// Adds a trial of an earlier part of this run.
    pub fn adopt(&mut self, trial: Trial) {
        if let Some(state) = self.open.get_mut(&trial.cell) {
            state.trials.push(trial);
            state.adopted = true;
        }
    }

    /// Sets the round trips of an open cell's path without load.
    pub fn idle(&mut self, id: u32, idle: Option<RttTally>) {
        if let Some(state) = self.open.get_mut(&id) {
            state.idle = idle;
        }
    }

    /// Gives the smallest open size of a curve the anatomy of its round trips, from a trial of `spec`.
    pub(crate) fn anatomy(&mut self, spec: &Spec, result: &PassResult) {
        let Some(near) = result.near.tallies.first() else { return };
        let far = result.far.as_ref().and_then(|far| far.tallies.first()?.stamps.clone());
        let plain_p50_ns = near.rtt.as_ref().map(|rtt| rtt.p50_ns as f64);
        let tally = analysis::anatomy::of_trial(spec, near.stamps.clone(), far);
        if let Some(smallest) = self.open.values_mut().min_by_key(|state| state.cell.spec.block) {
            smallest.anatomy = tally.map(|tally| tally.figures(plain_p50_ns));
        }
    }

    /// The trials of an open cell are made by this spec from now on.
    pub(crate) fn replace_spec(&mut self, id: u32, spec: &Shared<Spec>) {
        if let Some(state) = self.open.get_mut(&id) {
            state.cell.spec = spec.clone();
        }
    }

    /// Gives an open size of a curve the check of the peak.
    pub(crate) fn check(&mut self, id: u32, check: PeakCheck) {
        if let Some(state) = self.open.get_mut(&id) {
            state.check = Some(check);
        }
    }

    /// Adds a verdict to one open cell.
    pub fn remark_on(&mut self, id: u32, verdict: Verdict) {
        if let Some(state) = self.open.get_mut(&id) {
            state.remark = Some(verdict);
        }
    }

    /// Adds a verdict to all open cells.
    pub fn remark(&mut self, verdict: Verdict) {
        self.open.values_mut().for_each(|state| state.remark = Some(verdict));
    }

    /// The outcomes that the open and done cells would have now.
    pub fn preview(&self) -> Vec<Outcome> {
        let open = self.open.values().filter(|state| !state.trials.is_empty());
        let mut outcomes: Vec<Outcome> = open
            .map(|state| {
                analysis::outcome(
                    &state.cell,
                    state.trials.clone(),
                    &self.rule,
                    Context {
                        curve: self.kind == ScheduleKind::Curve,
                        legs: self.kind == ScheduleKind::Curve,
                        ..Context::default()
                    },
                )
            })
            .chain(self.done.iter().cloned())
            .collect();
        outcomes.sort_by_key(|outcome| outcome.spec.block);
        outcomes
    }

    /// Trials that the open cell with the widest interval still needs, estimated from the spread so far.
    pub fn trials_left(&self) -> u32 {
        self.unsettled().map(|state| self.needs(state).max(1)).max().unwrap_or(0)
    }

    /// The same of all open cells together.
    pub fn all_trials_left(&self) -> u64 {
        self.open.values().map(|state| u64::from(self.needs(state))).sum()
    }

    /// The time that they take by their options, ns; `None` if one of them ends after a count.
    pub fn timed_ns(&self) -> Option<u64> {
        let times = self.open.values().map(|state| Some(state.cell.spec.timed_ns()? * u64::from(self.needs(state))));
        times.sum()
    }

    fn needs(&self, state: &CellState) -> u32 {
        let rule = &self.rule;
        // A mesh has the same number of trials for all of its many cells.
        if rule.max_trials <= rule.min_trials {
            return rule.min_trials.saturating_sub(state.trials.len() as u32);
        }
        let values = analysis::outcome::sample(&state.trials);
        let needed = if self.kind == ScheduleKind::Curve {
            point::legs_needed(&values, self.parts.get(&state.cell.id), &self.of_points)
        } else {
            passes_needed(&values, rule)
        };
        let most = rule.max_trials.max(rule.min_trials);
        let taken = values.len() as u32;
        // Without an estimate as many as there may be: a time left that is too long falls, one that is too short is a wrong promise. An
        // open cell needs one more.
        let more = needed.unwrap_or(most).max(rule.min_trials.saturating_sub(taken)).max(1);
        more.min(most.saturating_sub(taken))
    }

    /// Removes the open cells for a while.
    pub fn set_aside(&mut self) -> BTreeMap<u32, CellState> {
        std::mem::take(&mut self.open)
    }

    /// Returns them.
    pub fn take_back(&mut self, mut kept: BTreeMap<u32, CellState>) {
        self.open.append(&mut kept);
    }

    /// Drops the cells without a trial that are not among `kept`, and adds a verdict to those that are.
    pub fn thin(&mut self, kept: &[u32]) {
        self.open.retain(|id, state| !state.trials.is_empty() || kept.contains(id));
        self.remark(Verdict::Thinned);
    }

    /// Drops the cells of these blocks that have no trial; the others say that they are not all.
    pub fn leave_out(&mut self, blocks: &BTreeSet<u64>) {
        let before = self.open.len();
        self.open.retain(|_, state| !state.trials.is_empty() || !blocks.contains(&state.cell.spec.block));
        if self.open.len() < before {
            self.remark(Verdict::Thinned);
        }
    }

    /// Drops the cells without a trial that `beyond` selects, and adds a verdict to the largest block that stays.
    pub fn give_up(&mut self, beyond: impl Fn(&Spec) -> bool) -> usize {
        let before = self.open.len();
        self.open.retain(|_, state| !state.trials.is_empty() || !beyond(&state.cell.spec));
        let given_up = before - self.open.len();
        if given_up > 0
            && let Some(last) = self
                .open
                .values_mut()
                .filter(|state| !state.trials.is_empty())
                .max_by_key(|state| state.cell.spec.block)
        {
            last.remark = Some(Verdict::SelfLimited);
        }
        given_up
    }
}

impl CellState {
    /// Time of one exchange or block in ns, by the last trial; 0 before the first.
    pub fn expected_ns(&self) -> u64 {
        let Some(trial) = self.trials.last() else { return 0 };
        if let Some(rtt) = trial.near.rtt.as_ref().or(trial.far.rtt.as_ref()) {
            return rtt.mean_ns.round() as u64;
        }
        let blocks = trial.near.blocks_sent.max(trial.far.blocks_sent).max(1);
        trial.near.receiving_ns.max(trial.far.receiving_ns).max(trial.near.sending_ns).max(trial.far.sending_ns)
            / blocks
    }

    /// Whether it has converged as of the last analysis.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Number of trials.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.trials.len()
    }
}

#[cfg(test)]
mod tests {
    use model::{Pattern, Stop};

    use super::*;

    const SIZES: u32 = 21;

    /// One pass over the open sizes: each takes 1,000 ns times the pass's factor, all but the first with 10 % of noise.
    fn pass(cells: &mut Cells, number: u32, pace: f64) {
        let wanted: Vec<u32> = cells.unsettled().map(|state| state.cell.id).collect();
        for id in wanted {
            let noise = if id == 0 { 1.0 } else { 1.0 + 0.1 * (f64::from((id + number) % 2) - 0.5) };
            let ns = 1_000.0 * pace * noise;
            let rtt = RttTally {
                count: 100,
                min_ns: ns as u64,
                p50_ns: ns as u64,
                mean_ns: ns,
                p99_ns: None,
                max_ns: ns as u64,
                batch: 1,
                histogram: None,
            };
            let near = EndTally { rtt: Some(rtt), ..EndTally::default() };
            cells.trial(id, number, 0, near, EndTally::default(), false).unwrap();
        }
        cells.separate();
        cells.settle();
    }

    #[test]
    fn a_size_that_converged_on_slow_passes_is_measured_again() {
        let spec = |id: u32| Spec {
            block: u64::from(1 + id),
            stop: Stop::AboutNs(1_000_000),
            ..Spec::new("tcp", Pattern::Pingpong)
        };
        let header =
            RunHeader { cells: (0..SIZES).map(|id| Cell::new(id, spec(id))).collect(), ..RunHeader::default() };
        let mut cells = Cells::new(&header, ScheduleKind::Curve);
        (0..10).for_each(|number| pass(&mut cells, number, 1.5));
        assert_eq!((cells.settled_count(&"tcp".into()), cells.unsettled().count()), (1, SIZES as usize - 1));
        // The others continue at the usual rate, until the slow passes are the fewer.
        (10..14).for_each(|number| pass(&mut cells, number, 1.0));
        assert!(cells.unsettled().any(|state| state.cell.id == 0), "the level moved");
        (14..60).for_each(|number| pass(&mut cells, number, 1.0));
        let outcome = cells.finish(0, false).unwrap();
        let value = outcome.estimate.unwrap().value;
        assert!((value / 1_000.0 - 1.0).abs() < 0.1, "{value} over {}", outcome.trials.len());
    }

    #[test]
    fn the_number_of_a_dropped_cell_is_not_given_again() {
        let cell = |id: u32| Cell::new(id, Spec { block: u64::from(id) + 1, ..Spec::new("tcp", Pattern::Pingpong) });
        let header = RunHeader { cells: (0..4).map(cell).collect(), ..RunHeader::default() };
        let mut cells = Cells::new(&header, ScheduleKind::Curve);
        pass(&mut cells, 0, 1.0);
        cells.add(cell(4));
        cells.give_up(|spec| spec.block == 5);
        assert_eq!((cells.open().count(), cells.next_id()), (4, 5));
    }
}

//! The search for what helps: a first look, races over everything that may be changed, and a confirmation on fresh pairs, within a
//! budget. What to try and what to make of it is the analysis's ([`analysis::advice`]); here the trials are taken.

mod search_state;

use std::collections::BTreeSet;
use std::time::Duration;

use analysis::advice::{
    Confirmation, PairRound, PathFacts, RaceRound, Search, TrialScore, candidates, rule, score, spec_of,
};
use engine::transport::transport;
use model::{Cell, Event, Finding, FindingKind, Goal, Phase, Stop, Verdict};

use super::Conduct;
use super::metrics::Metrics;
use crate::ControlError;
use search_state::SearchState;

/// How a search is made.
#[derive(Debug, Clone, PartialEq)]
pub struct AdvisePlan {
    /// What is searched for.
    pub goal: Goal,
    /// The least gain that counts, as a fraction of the value.
    pub least_effect: f64,
    /// Classes of host settings that may be changed.
    pub allow: BTreeSet<String>,
    /// The block was asked for and stays.
    pub fixed_block: bool,
    /// The trials' length was asked for and stays.
    pub fixed_time: bool,
}

/// Trials of the first look, and its name.
const LOOKS: u32 = 3;
const FIRST_LOOK: &str = "first look";
/// Pause between two trials, always the same, so that no trial meets what the one before left in queues and timers.
const GAP: Duration = Duration::from_millis(20);
/// Length of a trial in round trips, and its bounds in ns: slow start is over in its first part, which is left out.
const ROUND_TRIPS: u64 = 30;
const TRIAL_NS: (u64, u64) = (300_000_000, 2_000_000_000);
/// Part of a trial that the rates leave out.
const WARMUP: f64 = 0.3;
/// Part of the time left that a confirmation plans with; trials differ in length.
const PLANNED: f64 = 0.9;

impl Conduct<'_> {
    pub(super) async fn advise(&mut self, plan: &AdvisePlan) -> Result<(), ControlError> {
        let Some(first) = self.header.cells.first().cloned() else { return Ok(()) };
        let metrics = Metrics::of(self.header, self.pair);
        let mut search_state = SearchState::new(plan.goal, first.spec.clone(), metrics);
        let result = self.search(plan, &first, &mut search_state).await;
        // Whatever happened, what is known is to be said. The hosts' settings are put back when the run is over.
        let (advice, findings) = search_state.reported(self.header);
        self.advice = advice;
        self.notes.extend(findings);
        if let Some(statement) = search_state.metrics.statement() {
            if search_state.metrics.kept() {
                self.cells.remark(Verdict::MetricsKept);
            }
            let (kind, cells) = (FindingKind::Note, Vec::new());
            self.notes.push(Finding { kind, statement, estimate: None, block: None, cells, comparison: None });
        }
        result
    }

    async fn search(
        &mut self,
        plan: &AdvisePlan,
        first: &Cell,
        search_state: &mut SearchState,
    ) -> Result<(), ControlError> {
        self.first_look(plan, first, search_state).await?;
        let rule = rule(plan.goal, plan.least_effect, self.header.stopping.seed);
        let counts: Vec<usize> = search_state.candidates.iter().map(|candidate| candidate.levels.len()).collect();
        search_state.search = Some(Search::new(&counts, rule));
        self.races(search_state, true).await?;
        if !search_state.has_changes() {
            // There is nothing to confirm by now, and what is left of the time tells more of what does not matter.
            self.races(search_state, false).await?;
        }
        search_state.stop();
        let trials = (self.left_ns() as f64 * PLANNED / search_state.each_ns().max(1.0)) as u32;
        search_state.fresh = search_state.search.as_ref().and_then(|search| Confirmation::new(search, trials));
        while let Some(block) = self.next_pairs(search_state) {
            let readings = self.pairs(&block, search_state).await?;
            search_state.fresh.as_mut().into_iter().for_each(|fresh| fresh.record(readings));
        }
        Ok(())
    }

    /// Races until the search is over, or until what is left of the time is for its confirmation, where some is kept for that.
    async fn races(&mut self, search_state: &mut SearchState, keeps: bool) -> Result<(), ControlError> {
        while let Some(block) = self.next_race(search_state, keeps) {
            let readings = self.race(&block, search_state).await;
            // An interrupt leaves what was counted until then.
            let readings = readings.inspect_err(|_| search_state.stop())?;
            search_state.search.as_mut().into_iter().for_each(|search| search.record(&readings));
        }
        Ok(())
    }

    /// The start, measured a few times: its round trip sets the length of trials, its goodput and its ceiling what is tried.
    async fn first_look(
        &mut self,
        plan: &AdvisePlan,
        first: &Cell,
        search_state: &mut SearchState,
    ) -> Result<(), ControlError> {
        let begun = self.elapsed_ns();
        self.waiting(FIRST_LOOK.into(), 0, LOOKS as usize)?;
        search_state.metrics.flush().await;
        self.one_trial(first).await?;
        search_state.spend(FIRST_LOOK, self.elapsed_ns() - begun);
        let Some(look) = self.cells.interim_outcome(first.id) else { return Ok(()) };
        let ends = look.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
        let rtt = ends.flat_map(|end| &end.flows).filter_map(|flow| flow.socket.min_rtt_ns).min();
        // No longer than what leaves a confirmation of one change half of the time.
        let around = match first.spec.stop {
            Stop::TimeNs(own) => (self.elapsed_ns() - begun).saturating_sub(own),
            _ => 0,
        };
        let half = self.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget / 2);
        let most =
            (half / u64::from(Confirmation::trials_needed(1))).saturating_sub(around).clamp(TRIAL_NS.0, TRIAL_NS.1);
        let suits = || rtt.map_or(TRIAL_NS.0, |ns| (ns * ROUND_TRIPS).clamp(TRIAL_NS.0, most));
        let time = match first.spec.stop {
            Stop::TimeNs(requested) if plan.fixed_time => requested,
            _ => suits(),
        };
        search_state.start.stop = Stop::TimeNs(time);
        search_state.start.warmup_ns = (time as f64 * WARMUP) as u64;
        if search_state.start == first.spec {
            search_state.cells.insert(Default::default(), first.id);
        }
        // The rest of the look is as long as what it is to be compared with: a shorter one may see slow start alone.
        for look in 1..LOOKS {
            self.waiting(FIRST_LOOK.into(), look as usize, LOOKS as usize)?;
            self.try_out(&[], FIRST_LOOK, None, search_state).await?;
        }
        let look =
            search_state.cells.get(&Default::default()).and_then(|id| self.cells.interim_outcome(*id)).unwrap_or(look);
        let transport = transport(search_state.start.transport.as_str())?;
        let path = PathFacts {
            goal: plan.goal,
            spec: &search_state.start,
            pilot: &look,
            near: &self.header.near,
            far: &self.header.far,
            sends: transport.sends(),
            receives: transport.receives(),
            fixed_block: plan.fixed_block,
            allow: &plan.allow,
        };
        (search_state.candidates, search_state.untried) = candidates(&path);
        Ok(())
    }

    /// The next block of the search; `None` when it is over, or the time is.
    fn next_race(&self, search_state: &mut SearchState, keeps: bool) -> Option<RaceRound> {
        let each = search_state.each_ns();
        let search = search_state.search.as_mut()?;
        let changes = search.best().iter().filter(|level| **level != 0).count();
        let block = search.next_round()?;
        let kept = if keeps || changes > 0 { f64::from(Confirmation::trials_needed(changes)) / PLANNED } else { 0.0 };
        let needed = block.trials.len() as f64 + kept;
        (needed * each <= self.left_ns() as f64).then_some(block)
    }

    /// Takes the trials of a race's block.
    async fn race(
        &mut self,
        block: &RaceRound,
        search_state: &mut SearchState,
    ) -> Result<Vec<Option<TrialScore>>, ControlError> {
        let candidate = &search_state.candidates[block.dimension];
        let (name, levels) = (candidate.name, candidate.levels.len());
        let in_force = search_state.search.as_ref().map_or(0, |search| search.best()[block.dimension]);
        let mut readings = Vec::new();
        for at in &block.trials {
            let raced = search_state.search.as_ref().map_or(0, |search| search.races().len());
            self.waiting(format!("{name}: {} of {levels} levels", block.racing), raced, search_state.candidates.len())?;
            let level = at[block.dimension];
            let what = (level != in_force)
                .then(|| format!("{name} {}", search_state.candidates[block.dimension].levels[level].label));
            readings.push(self.try_out(at, name, what, search_state).await?);
        }
        Ok(readings)
    }

    /// The next block of the confirmation, while there is time for it.
    fn next_pairs(&self, search_state: &mut SearchState) -> Option<PairRound> {
        // A block is not begun that would end more than a trial after the time.
        let needed = (4.0 - 1.0) * search_state.each_ns();
        if needed > self.left_ns() as f64 { None } else { search_state.fresh.as_mut()?.next_round() }
    }

    async fn pairs(
        &mut self,
        block: &PairRound,
        search_state: &mut SearchState,
    ) -> Result<[Option<TrialScore>; 4], ControlError> {
        let left = search_state.fresh.as_ref().map_or(0, Confirmation::trials_left);
        let left_ns = (f64::from(left + 4) * search_state.each_ns()) as u64;
        let doing = format!("confirmation, {} more trials", left + 4);
        self.sink.event(&Event::Phase(Phase {
            activity: doing,
            cells_done: 0,
            cells: 1,
            remaining_ns: Some(left_ns),
        }))?;
        let mut readings = [None; 4];
        for (at, reading) in block.trials.iter().zip(&mut readings) {
            *reading = self.try_out(at, "confirmation", None, search_state).await?;
        }
        Ok(readings)
    }

    /// One trial of a combination. A level that the hosts cannot have, or that does not come through, gives no reading; `what`
    /// names it for the record.
    async fn try_out(
        &mut self,
        at: &[usize],
        on: &str,
        what: Option<String>,
        search_state: &mut SearchState,
    ) -> Result<Option<TrialScore>, ControlError> {
        let begun = self.elapsed_ns();
        let (spec, levels) = spec_of(&search_state.start, &search_state.candidates, at);
        let id = match search_state.cells.get(&levels) {
            Some(id) => *id,
            None => {
                let cell = Cell { levels: levels.clone(), ..Cell::new(self.cells.next_id(), spec.clone()) };
                search_state.cells.insert(levels, cell.id);
                self.cells.add(cell.clone());
                self.sink.event(&Event::Cells { cells: vec![cell.clone()] })?;
                cell.id
            }
        };
        let pass = self.passes;
        tokio::time::sleep(GAP).await;
        search_state.metrics.flush().await;
        let tried = self.one_trial(&Cell::new(id, spec.clone())).await;
        search_state.spend(on, self.elapsed_ns() - begun);
        let why = match tried {
            Ok(()) => {
                let trial = self.cells.trials_of(id).last().filter(|trial| trial.pass == pass);
                match trial.and_then(|trial| score(search_state.goal, trial)) {
                    Some(reading) => {
                        search_state.readings += 1;
                        return Ok(Some(reading));
                    }
                    None => "its trial stalled or gave no value".to_owned(),
                }
            }
            Err(error @ (ControlError::Setup { .. } | ControlError::Refused { .. } | ControlError::Engine(_))) => {
                self.pair.start_afresh(&spec).await?;
                error.to_string()
            }
            Err(error @ (ControlError::Tune { .. } | ControlError::Trial { .. })) => error.to_string(),
            Err(error) => return Err(error),
        };
        match what {
            Some(what) => search_state.cannot(what, why),
            // What is in force has worked before: a bad moment. The start has not, and without it there is nothing to compare.
            None if search_state.readings == 0 => {
                return Err(ControlError::Trial { address: "the start".into(), reason: why });
            }
            None => {}
        }
        Ok(None)
    }

    /// Tells where the search stands.
    fn waiting(&mut self, doing: String, done: usize, of: usize) -> Result<(), ControlError> {
        let left_ns = Some(self.left_ns()).filter(|left| *left < u64::MAX);
        let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(self.sink.event(&Event::Phase(Phase {
            activity: doing,
            cells_done: count(done.min(of)),
            cells: count(of),
            remaining_ns: left_ns,
        }))?)
    }
}

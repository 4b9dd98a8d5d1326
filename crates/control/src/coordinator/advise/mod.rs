//! The search for better settings: pilot trials, races over everything that may be changed, and a confirmation on fresh pairs,
//! within a budget. [`analysis::advice`] decides what to try and how to judge it; this module makes the trials.

mod search_state;

use std::collections::BTreeSet;
use std::time::Duration;

use analysis::advice::{
    Confirmation, PairRound, RaceRound, Search, SearchContext, TrialScore, candidates, rule, score, spec_of,
};
use engine::transport::transport;
use model::{Cell, Event, Finding, FindingKind, Goal, Phase, Stop, Verdict};

use super::ActiveRun;
use super::metrics::Metrics;
use crate::ControlError;
use search_state::SearchState;

/// The options of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct AdvisePlan {
    /// The goal.
    pub goal: Goal,
    /// The smallest gain that counts, as a fraction of the value.
    pub min_effect: f64,
    /// Classes of host settings that may be changed.
    pub allow: BTreeSet<String>,
    /// The user set the block; it is not changed.
    pub fixed_block: bool,
    /// The user set the length of trials; it is not changed.
    pub fixed_time: bool,
}

/// Number of pilot trials, and their name in the advice.
const PILOT_TRIALS: u32 = 3;
const PILOT: &str = "pilot trials";
/// Pause between two trials, always the same, in which queues empty and timers expire.
const GAP: Duration = Duration::from_millis(20);
/// Length of a trial in round trips, and its limits in ns. Slow start ends in the first part, which the rates leave out.
const ROUND_TRIPS: u64 = 30;
const TRIAL_NS: (u64, u64) = (300_000_000, 2_000_000_000);
/// Part of a trial that the rates leave out.
const WARMUP: f64 = 0.3;
/// Part of the remaining time that is planned for a confirmation, because trials differ in length.
const PLANNED: f64 = 0.9;

impl ActiveRun<'_> {
    pub(super) async fn advise(&mut self, plan: &AdvisePlan) -> Result<(), ControlError> {
        let Some(first) = self.header.cells.first().cloned() else { return Ok(()) };
        let metrics = Metrics::of(self.header, self.pair);
        let mut search_state = SearchState::new(plan.goal, first.spec.clone(), metrics);
        let result = self.search(plan, &first, &mut search_state).await;
        // The results so far are reported after an error as well. The hosts' settings are reverted at the end of the run.
        let (advice, findings) = search_state.result(self.header);
        self.advice = advice;
        self.notes.extend(findings);
        if let Some(statement) = search_state.metrics.statement() {
            if search_state.metrics.may_carry_over() {
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
        self.pilot_trials(plan, first, search_state).await?;
        let rule = rule(plan.goal, plan.min_effect, self.header.stopping.seed);
        let counts: Vec<usize> = search_state.candidates.iter().map(|candidate| candidate.levels.len()).collect();
        search_state.search = Some(Search::new(&counts, rule));
        self.races(search_state, true).await?;
        if !search_state.has_changes() {
            // There is nothing to confirm, so the remaining time is used for further races.
            self.races(search_state, false).await?;
        }
        search_state.stop();
        let trials = (self.left_ns() as f64 * PLANNED / search_state.each_ns().max(1.0)) as u32;
        search_state.fresh = search_state.search.as_ref().and_then(|search| Confirmation::new(search, trials));
        while let Some(round) = self.next_pairs(search_state) {
            let scores = self.pairs(&round, search_state).await?;
            search_state.fresh.as_mut().into_iter().for_each(|fresh| fresh.record(scores));
        }
        Ok(())
    }

    /// Races until the search is over, or until the remaining time is needed for the confirmation (with `reserve`).
    async fn races(&mut self, search_state: &mut SearchState, reserve: bool) -> Result<(), ControlError> {
        while let Some(round) = self.next_race(search_state, reserve) {
            let scores = self.race(&round, search_state).await;
            // After an interrupt the results so far are kept.
            let scores = scores.inspect_err(|_| search_state.stop())?;
            search_state.search.as_mut().into_iter().for_each(|search| search.record(&scores));
        }
        Ok(())
    }

    /// Measures the start a few times: its round trip sets the length of trials, its goodput and ceiling decide what is tried.
    async fn pilot_trials(
        &mut self,
        plan: &AdvisePlan,
        first: &Cell,
        search_state: &mut SearchState,
    ) -> Result<(), ControlError> {
        let begun = self.elapsed_ns();
        self.report_phase(PILOT.into(), 0, PILOT_TRIALS as usize)?;
        search_state.metrics.flush().await;
        self.one_trial(first).await?;
        search_state.spend(PILOT, self.elapsed_ns() - begun);
        let Some(pilot) = self.cells.interim_outcome(first.id) else { return Ok(()) };
        let ends = pilot.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
        let rtt = ends.flat_map(|end| &end.flows).filter_map(|flow| flow.socket.min_rtt_ns).min();
        // Short enough that the confirmation of one change fits into half of the budget.
        let around = match first.spec.stop {
            Stop::TimeNs(own) => (self.elapsed_ns() - begun).saturating_sub(own),
            _ => 0,
        };
        let half = self.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget / 2);
        let most =
            (half / u64::from(Confirmation::trials_needed(1))).saturating_sub(around).clamp(TRIAL_NS.0, TRIAL_NS.1);
        let suitable = || rtt.map_or(TRIAL_NS.0, |ns| (ns * ROUND_TRIPS).clamp(TRIAL_NS.0, most));
        let time = match first.spec.stop {
            Stop::TimeNs(requested) if plan.fixed_time => requested,
            _ => suitable(),
        };
        search_state.start.stop = Stop::TimeNs(time);
        search_state.start.warmup_ns = (time as f64 * WARMUP) as u64;
        if search_state.start == first.spec {
            search_state.cells.insert(Default::default(), first.id);
        }
        // The other pilot trials have the length of the later trials: shorter ones may cover slow start alone.
        for number in 1..PILOT_TRIALS {
            self.report_phase(PILOT.into(), number as usize, PILOT_TRIALS as usize)?;
            self.try_out(&[], PILOT, None, search_state).await?;
        }
        let pilot =
            search_state.cells.get(&Default::default()).and_then(|id| self.cells.interim_outcome(*id)).unwrap_or(pilot);
        let transport = transport(search_state.start.transport.as_str())?;
        let path = SearchContext {
            goal: plan.goal,
            spec: &search_state.start,
            pilot: &pilot,
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

    /// The next round of a race; `None` if the search is over or the time is spent.
    fn next_race(&self, search_state: &mut SearchState, reserve: bool) -> Option<RaceRound> {
        let each = search_state.each_ns();
        let search = search_state.search.as_mut()?;
        let changes = search.best().iter().filter(|level| **level != 0).count();
        let round = search.next_round()?;
        let confirmation = f64::from(Confirmation::trials_needed(changes)) / PLANNED;
        let reserved = if reserve || changes > 0 { confirmation } else { 0.0 };
        let needed = round.trials.len() as f64 + reserved;
        (needed * each <= self.left_ns() as f64).then_some(round)
    }

    /// Makes the trials of one round of a race.
    async fn race(
        &mut self,
        round: &RaceRound,
        search_state: &mut SearchState,
    ) -> Result<Vec<Option<TrialScore>>, ControlError> {
        let candidate = &search_state.candidates[round.dimension];
        let (name, levels) = (candidate.name, candidate.levels.len());
        let in_force = search_state.search.as_ref().map_or(0, |search| search.best()[round.dimension]);
        let mut scores = Vec::new();
        for at in &round.trials {
            let raced = search_state.search.as_ref().map_or(0, |search| search.races().len());
            let activity = format!("{name}: {} of {levels} levels", round.racing);
            self.report_phase(activity, raced, search_state.candidates.len())?;
            let level = at[round.dimension];
            let what = (level != in_force)
                .then(|| format!("{name} {}", search_state.candidates[round.dimension].levels[level].label));
            scores.push(self.try_out(at, name, what, search_state).await?);
        }
        Ok(scores)
    }

    /// The next round of the confirmation, if there is time for it.
    fn next_pairs(&self, search_state: &mut SearchState) -> Option<PairRound> {
        // A round is not started if it would end more than one trial after the budget.
        let needed = (4.0 - 1.0) * search_state.each_ns();
        if needed > self.left_ns() as f64 { None } else { search_state.fresh.as_mut()?.next_round() }
    }

    async fn pairs(
        &mut self,
        round: &PairRound,
        search_state: &mut SearchState,
    ) -> Result<[Option<TrialScore>; 4], ControlError> {
        let left = search_state.fresh.as_ref().map_or(0, Confirmation::trials_left);
        let left_ns = (f64::from(left + 4) * search_state.each_ns()) as u64;
        let activity = format!("confirmation, {} more trials", left + 4);
        self.sink.event(&Event::Phase(Phase { activity, cells_done: 0, cells: 1, remaining_ns: Some(left_ns) }))?;
        let mut scores = [None; 4];
        for (at, score) in round.trials.iter().zip(&mut scores) {
            *score = self.try_out(at, "confirmation", None, search_state).await?;
        }
        Ok(scores)
    }

    /// One trial of a combination. A level that the hosts do not support, or whose trial fails, gives no score; it is recorded
    /// as not tried under the name `what`.
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
                    Some(score) => {
                        search_state.scores += 1;
                        return Ok(Some(score));
                    }
                    None => "the trial stalled or gave no value".to_owned(),
                }
            }
            Err(error @ (ControlError::Setup { .. } | ControlError::Refused { .. } | ControlError::Engine(_))) => {
                self.pair.cancel_setup().await?;
                error.to_string()
            }
            Err(error @ (ControlError::Tune { .. } | ControlError::Trial { .. })) => error.to_string(),
            Err(error) => return Err(error),
        };
        match what {
            Some(what) => search_state.cannot(what, why),
            // The current combination has worked before, so a single failure is ignored. If the start itself fails, there is
            // nothing to compare with.
            None if search_state.scores == 0 => {
                return Err(ControlError::Trial { address: "pilot trial".into(), reason: why });
            }
            None => {}
        }
        Ok(None)
    }

    /// Reports the progress of the search.
    fn report_phase(&mut self, activity: String, done: usize, of: usize) -> Result<(), ControlError> {
        let left_ns = Some(self.left_ns()).filter(|left| *left < u64::MAX);
        let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(self.sink.event(&Event::Phase(Phase {
            activity,
            cells_done: count(done.min(of)),
            cells: count(of),
            remaining_ns: left_ns,
        }))?)
    }
}

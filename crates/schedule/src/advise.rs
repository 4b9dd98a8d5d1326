//! The search for better settings: pilot trials, races over everything that may be changed, and a confirmation on fresh pairs,
//! within a budget. [`analysis::advice`] decides what to try and how to judge it; this module decides when.

use std::collections::BTreeSet;

use analysis::advice::{
    Confirmation, PairRound, RaceRound, Search, SearchContext, TrialScore, candidates, rule, score, spec_of,
};
use model::{Cell, Event, Goal, Pattern, Phase, ReceiveBy, RunHeader, SendBy, Spec, Stop};
use text::{Text, say};

use crate::search_state::{PILOT, SearchState};
use crate::state::RunState;
use crate::{Completed, FailureKind, Machine, PassResult, RunEnd, Step, StepFailure};

/// What came of a step with one trial.
type Alone = Result<Option<PassResult>, StepFailure>;

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

/// The methods of the transport that a search may try.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Methods {
    /// How it can send.
    pub sends: Vec<SendBy>,
    /// How it can receive.
    pub receives: Vec<ReceiveBy>,
}

/// Number of pilot trials.
const PILOT_TRIALS: u32 = 3;
/// The name of the confirmation in the advice.
const CONFIRMATION: &str = "confirmation";
/// Pause between two trials, always the same, in which queues empty and timers expire, ns.
const GAP_NS: u64 = 20_000_000;
/// Length of a trial in round trips, and its limits in ns. Slow start ends in the first part, which the rates leave out.
const ROUND_TRIPS: u64 = 30;
/// Round trips that slow start takes from 10 segments to 40,000: 400 Mbit/s over a second.
const SLOW_START: u64 = 12;
const TRIAL_NS: (u64, u64) = (300_000_000, 2_000_000_000);
/// Part of a trial that the rates leave out, at least and, for slow start, at most.
const WARMUP: (f64, f64) = (0.3, 0.5);
/// Part of the remaining time that is planned for a confirmation, because trials differ in length.
const PLANNED: f64 = 0.9;
/// Trials of a round of the confirmation.
const PAIR_TRIALS: usize = 4;

/// A search in progress.
#[derive(Debug)]
pub(crate) struct Advise {
    plan: AdvisePlan,
    methods: Methods,
    first: Option<Cell>,
    search: SearchState,
    at: At,
    trial: Option<Tryout>,
}

#[derive(Debug)]
enum At {
    /// The pilot trials; how many are over.
    Pilot(u32),
    /// Between two rounds of the races; with a reserve, the time that a confirmation needs is kept.
    Races {
        reserve: bool,
    },
    /// A round of a race, and the scores so far.
    Race {
        reserve: bool,
        round: RaceRound,
        scores: Vec<Option<TrialScore>>,
    },
    /// Between two rounds of the confirmation.
    Confirmation,
    /// A round of the confirmation, and the scores so far.
    Pairs {
        round: PairRound,
        scores: Vec<Option<TrialScore>>,
    },
    End(RunEnd),
}

/// One trial of a combination.
#[derive(Debug)]
struct Tryout {
    spec: Spec,
    cell: u32,
    /// What its time is counted as.
    on: &'static str,
    /// The level that it tries, as the name of what could not be tried if it fails.
    what: Option<String>,
    begun: u64,
    at: TryoutAt,
}

#[derive(Debug)]
enum TryoutAt {
    Gap,
    Prepare,
    Trial,
    /// Both ends drop the failed set-up; the reason of the failure.
    Reset(Text),
}

impl Advise {
    pub(crate) fn new(header: &RunHeader, plan: AdvisePlan, methods: Methods) -> Self {
        let first = header.cells.first().cloned();
        let spec = first.as_ref().map_or_else(|| Spec::new("tcp", Pattern::Stream), |cell| Spec::clone(&cell.spec));
        let search = SearchState::new(plan.goal, spec);
        let at = if first.is_some() { At::Pilot(0) } else { At::End(RunEnd::Finished) };
        Self { plan, methods, first, search, at, trial: None }
    }

    /// Starts the next trial, or goes on to the next part of the search.
    fn decide(&mut self, state: &mut RunState, now: u64) {
        match &self.at {
            At::Pilot(done) => {
                let done = *done;
                report_phase(state, now, PILOT.into(), done as usize, PILOT_TRIALS as usize);
                if done > 0 {
                    self.try_out(state, &[], PILOT, None, now);
                } else if let Some(first) = &self.first {
                    let (cell, spec) = (first.id, Spec::clone(&first.spec));
                    self.trial = Some(Tryout { spec, cell, on: PILOT, what: None, begun: now, at: TryoutAt::Prepare });
                }
            }
            At::Races { reserve } => {
                let reserve = *reserve;
                self.at = match self.next_race(state, reserve, now) {
                    Some(round) => At::Race { reserve, round, scores: Vec::new() },
                    // There is nothing to confirm, so the remaining time is used for further races.
                    None if reserve && !self.search.has_changes() => At::Races { reserve: false },
                    None => {
                        self.begin_confirmation(state, now);
                        At::Confirmation
                    }
                };
            }
            At::Race { reserve, round, scores } => match round.trials.get(scores.len()).cloned() {
                Some(levels) => {
                    let (dimension, racing) = (round.dimension, round.racing);
                    let raced = self.search.search.as_ref().map_or(0, |search| search.races().len());
                    let in_force = self.search.search.as_ref().map_or(0, |search| search.best()[dimension]);
                    let candidate = &self.search.candidates[dimension];
                    let activity = format!("{}: {racing} of {} levels", candidate.name, candidate.levels.len());
                    report_phase(state, now, activity, raced, self.search.candidates.len());
                    let (name, level) = (candidate.name, levels[dimension]);
                    let what = (level != in_force).then(|| format!("{name} {}", candidate.levels[level].label));
                    self.try_out(state, &levels, name, what, now);
                }
                None => {
                    self.search.search.as_mut().into_iter().for_each(|search| search.record(scores));
                    self.at = At::Races { reserve: *reserve };
                }
            },
            At::Confirmation => {
                self.at = match self.next_pairs(state, now) {
                    Some(round) => {
                        self.report_confirmation(state);
                        At::Pairs { round, scores: Vec::new() }
                    }
                    None => At::End(RunEnd::Finished),
                };
            }
            At::Pairs { round, scores } => match round.trials.get(scores.len()).cloned() {
                Some(levels) => self.try_out(state, &levels, CONFIRMATION, None, now),
                None => {
                    let mut all = [None; PAIR_TRIALS];
                    all.iter_mut().zip(scores).for_each(|(slot, score)| *slot = *score);
                    self.search.fresh.as_mut().into_iter().for_each(|fresh| fresh.record(all));
                    self.at = At::Confirmation;
                }
            },
            At::End(_) => {}
        }
    }

    fn after_trial(&mut self, state: &mut RunState, mut trial: Tryout, result: Alone, now: u64) {
        let number = state.passes;
        let failure = result.as_ref().err().cloned();
        let ended = state.pass(result, &[(Some(trial.cell), 0)]);
        let first = matches!(self.at, At::Pilot(0));
        match (ended, failure) {
            // After an interrupt the results so far are kept.
            (Some(RunEnd::Interrupted), _) => self.end(RunEnd::Interrupted),
            (Some(end), _) if first => self.end(end),
            (Some(_), Some(failure)) if failure.kind == FailureKind::Setup => {
                trial.at = TryoutAt::Reset(failure.reason);
                self.trial = Some(trial);
            }
            (Some(_), Some(failure)) if failure.kind == FailureKind::Trial => {
                self.failed(state, trial.what, failure.reason);
            }
            (Some(RunEnd::CutShort { what, reason }), _) => self.failed(state, trial.what, say!("{what}: {reason}")),
            (Some(end), _) => self.end(end),
            (None, _) if first => self.after_first_pilot(state, now - trial.begun),
            (None, _) => {
                let last = state.cells.trials_of(trial.cell).last().filter(|trial| trial.pass == number);
                match last.and_then(|last| score(self.plan.goal, last)) {
                    Some(score) => {
                        self.search.scores += 1;
                        self.count(state, Some(score));
                    }
                    None => self.failed(state, trial.what, "the trial stalled or gave no value".into()),
                }
            }
        }
    }

    /// A trial gave no score. If it tried a level, that is recorded as not tried.
    fn failed(&mut self, state: &RunState, what: Option<String>, why: Text) {
        match what {
            Some(what) => self.search.cannot(what, why),
            // The current combination has worked before, so a single failure is ignored. If the start itself fails, there is
            // nothing to compare with.
            None if self.search.scores == 0 => {
                return self.end(RunEnd::CutShort { what: "pilot trial", reason: why });
            }
            None => {}
        }
        self.count(state, None);
    }

    /// Counts a trial that has ended.
    fn count(&mut self, state: &RunState, score: Option<TrialScore>) {
        match &mut self.at {
            At::Pilot(done) if *done + 1 < PILOT_TRIALS => *done += 1,
            At::Pilot(_) => self.begin_races(state),
            At::Race { scores, .. } | At::Pairs { scores, .. } => scores.push(score),
            At::Races { .. } | At::Confirmation | At::End(_) => {}
        }
    }

    fn end(&mut self, end: RunEnd) {
        self.search.stop();
        self.trial = None;
        self.at = At::End(end);
    }

    /// Sets the length of trials by the round trip of the first one, which took `took_ns` with its set-up.
    fn after_first_pilot(&mut self, state: &RunState, took_ns: u64) {
        let Some(first) = &self.first else { return };
        let trials = state.cells.trials_of(first.id).iter();
        let flows = trials.flat_map(|trial| [&trial.near, &trial.far]).flat_map(|end| &end.flows);
        let rtt = flows.filter_map(|flow| flow.socket.min_rtt_ns).min();
        // Short enough that the confirmation of one change fits into half of the budget.
        let around = if let Stop::TimeNs(own) = first.spec.stop { took_ns.saturating_sub(own) } else { 0 };
        let half = state.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget / 2);
        let longest = (half / u64::from(Confirmation::trials_needed(1))).saturating_sub(around);
        let most = longest.clamp(TRIAL_NS.0, TRIAL_NS.1);
        let suitable = || rtt.map_or(TRIAL_NS.0, |ns| (ns * ROUND_TRIPS).clamp(TRIAL_NS.0, most));
        let time = match first.spec.stop {
            Stop::TimeNs(requested) if self.plan.fixed_time => requested,
            _ => suitable(),
        };
        self.search.start.stop = Stop::TimeNs(time);
        let [least, most] = [WARMUP.0, WARMUP.1].map(|part| (time as f64 * part) as u64);
        // A requested time may be too short for both: the rest of a trial would be a few round trips, whose rate a backlog raises.
        let slow_start = rtt.filter(|_| !self.plan.fixed_time).map_or(least, |ns| ns * SLOW_START);
        self.search.start.warmup_ns = slow_start.clamp(least, most);
        if self.search.start == *first.spec {
            self.search.cells.insert(Default::default(), first.id);
        }
        // The other pilot trials have the length of the later trials: shorter ones may cover slow start alone.
        self.at = At::Pilot(1);
    }

    /// Finds what may be changed, by the pilot trials.
    fn begin_races(&mut self, state: &RunState) {
        let first = self.first.as_ref().map_or(0, |cell| cell.id);
        let own = self.search.cells.get(&Default::default()).copied();
        let outcome = own.and_then(|id| state.cells.interim_outcome(id)).or_else(|| state.cells.interim_outcome(first));
        if let Some(pilot) = outcome {
            let path = SearchContext {
                goal: self.plan.goal,
                spec: &self.search.start,
                pilot: &pilot,
                near: &state.header.near,
                far: &state.header.far,
                sends: &self.methods.sends,
                receives: &self.methods.receives,
                fixed_block: self.plan.fixed_block,
                allow: &self.plan.allow,
            };
            (self.search.candidates, self.search.untried) = candidates(&path);
        }
        let rule = rule(self.plan.goal, self.plan.min_effect, state.header.stopping.seed);
        let counts: Vec<usize> = self.search.candidates.iter().map(|candidate| candidate.levels.len()).collect();
        self.search.search = Some(Search::new(&counts, rule));
        self.at = At::Races { reserve: true };
    }

    /// The next round of a race; `None` if the search is over or the time is spent.
    fn next_race(&mut self, state: &RunState, reserve: bool, now: u64) -> Option<RaceRound> {
        let each = self.search.each_ns();
        let search = self.search.search.as_mut()?;
        let changes = search.best().iter().filter(|level| **level != 0).count();
        let round = search.next_round()?;
        let confirmation = f64::from(Confirmation::trials_needed(changes)) / PLANNED;
        let reserved = if reserve || changes > 0 { confirmation } else { 0.0 };
        let needed = round.trials.len() as f64 + reserved;
        (needed * each <= state.left_ns(now) as f64).then_some(round)
    }

    fn begin_confirmation(&mut self, state: &RunState, now: u64) {
        self.search.stop();
        let trials = (state.left_ns(now) as f64 * PLANNED / self.search.each_ns().max(1.0)) as u32;
        self.search.fresh = self.search.search.as_ref().and_then(|search| Confirmation::new(search, trials));
    }

    /// The next round of the confirmation, if there is time for it.
    fn next_pairs(&mut self, state: &RunState, now: u64) -> Option<PairRound> {
        // A round is not started if it would end more than one trial after the budget.
        let needed = (PAIR_TRIALS as f64 - 1.0) * self.search.each_ns();
        if needed > state.left_ns(now) as f64 { None } else { self.search.fresh.as_mut()?.next_round() }
    }

    fn report_confirmation(&self, state: &mut RunState) {
        let left = self.search.fresh.as_ref().map_or(0, Confirmation::trials_left) + PAIR_TRIALS as u32;
        let left_ns = (f64::from(left) * self.search.each_ns()) as u64;
        state.phase(format!("confirmation, {left} more trials"), Some(left_ns));
    }

    /// Begins a trial of a combination. A level that the hosts do not support, or whose trial fails, gives no score; it is
    /// recorded as not tried under the name `what`.
    fn try_out(&mut self, state: &mut RunState, at: &[usize], on: &'static str, what: Option<String>, now: u64) {
        let (spec, levels) = spec_of(&self.search.start, &self.search.candidates, at);
        let cell = match self.search.cells.get(&levels) {
            Some(id) => *id,
            None => {
                let cell = Cell { levels: levels.clone(), ..Cell::new(state.cells.next_id(), spec.clone()) };
                let id = cell.id;
                self.search.cells.insert(levels, id);
                state.add(vec![cell]);
                id
            }
        };
        self.trial = Some(Tryout { spec, cell, on, what, begun: now, at: TryoutAt::Gap });
    }
}

impl Machine for Advise {
    /// Sets the advice and the findings so far, also of a search that was cut short.
    fn report(&self, state: &mut RunState) {
        let (advice, mut findings) = self.search.result(&state.header);
        let compared = advice.as_ref().and_then(|advice| self.search.compared(&advice.best));
        let outcomes = compared.map(|cells| cells.map(|cell| state.cells.interim_outcome(cell)));
        if let Some([Some(start), Some(best)]) = outcomes {
            findings.extend(analysis::advice::moved_parts(&start, &best));
        }
        state.advise(advice, findings);
    }

    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        loop {
            if let Some(trial) = &self.trial {
                return match &trial.at {
                    TryoutAt::Gap => Step::pause(GAP_NS),
                    TryoutAt::Prepare => Step::afresh(&trial.spec),
                    TryoutAt::Trial => Step::trial(state.passes, trial.spec.clone().into()),
                    TryoutAt::Reset(_) => Step::reset(),
                };
            }
            if let At::End(end) = &self.at {
                return Step::End(end.clone());
            }
            self.decide(state, now);
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        let Some(mut trial) = self.trial.take() else { return };
        let result = result.alone();
        match (&trial.at, &result) {
            (TryoutAt::Gap | TryoutAt::Prepare, Ok(_)) => {
                trial.at = if matches!(trial.at, TryoutAt::Gap) { TryoutAt::Prepare } else { TryoutAt::Trial };
                self.trial = Some(trial);
                if let Some(end) = state.interrupted() {
                    self.end(end);
                }
            }
            (TryoutAt::Gap | TryoutAt::Prepare | TryoutAt::Trial, _) => {
                self.search.spend(trial.on, now - trial.begun);
                self.after_trial(state, trial, result, now);
            }
            (TryoutAt::Reset(why), Ok(_)) => {
                let why = why.clone();
                self.failed(state, trial.what, why);
            }
            (TryoutAt::Reset(_), Err(_)) => self.end(state.pass(result, &[]).unwrap_or(RunEnd::Failed)),
        }
    }
}

/// Reports the progress of the search.
fn report_phase(state: &mut RunState, now: u64, activity: String, done: usize, of: usize) {
    let by_parts = (now * of.saturating_sub(done) as u64).checked_div(done as u64);
    let remaining_ns = Some(state.left_ns(now)).into_iter().chain(by_parts).min().filter(|left| *left < u64::MAX);
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    state.event(Event::Phase(Phase {
        activity: activity.into(),
        cells_done: count(done.min(of)),
        cells: count(of),
        remaining_ns,
    }));
}

//! A plan: rounds of all open cells. Each cell uses fresh connections between its hosts, and the tests of a step run together.

mod ready;
mod sets;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use analysis::plan::Slot;
use model::{Cell, Conditions, EndPass, Every, Leg, Order, Pass, RunHeader, Stop, Trial};
use text::Text;

use crate::curve::WARM_UP;
use crate::curve_leg::{Planned, leg, warm_up};
use crate::idle::IdleProbe;
use crate::plan_parts::{
    CLOSE_NS, close_some, is_cut, many_hosts, planned_by_peer, report, rounds_of, settled_end, spec_and_legs,
    step_in_words, trials_left_ns,
};
use crate::plan_retest::Retests;
use crate::plan_schedule::PlanSchedule;
use crate::single::GAP_NS;
use crate::state::{RetestPlace, RunState};
use crate::{
    Between, Completed, FailureKind, Machine, Pause, Preparation, RunEnd, Step, StepFailure, TestRequest, TestResult,
    Tests,
};

/// Interval of the checks of a requirement that is not met, ns.
const RETRY_NS: u64 = 1_000_000_000;
/// Pause before failed tests are repeated, ns: a host that was started again needs a moment.
const RECOVER_NS: u64 = 4_000_000_000;
/// Longest pause at once, ns: between two pauses idle hosts' messages are read and the progress is reported.
const PAUSE_NS: u64 = 5_000_000_000;

/// A plan in progress.
#[derive(Debug)]
pub(crate) struct PlanRun {
    schedule: PlanSchedule,
    /// Transports with one end.
    single_ended: BTreeSet<String>,
    /// Wall-clock time at the start of this part of the run, ns since the Unix epoch.
    started_unix_ns: u64,
    /// Rounds that each slot has had, by its first cell.
    rounds_done: BTreeMap<u32, u32>,
    /// Number of the next scheduled time.
    time: u64,
    /// The longest round so far, ns.
    longest_ns: u64,
    round: u32,
    begun: u64,
    /// The steps of this round that are left: the first cells of the slots that are measured at the same time.
    steps: VecDeque<Vec<u32>>,
    /// Steps that this round had at its begin.
    steps_of_round: usize,
    /// The first cells of the slots whose test failed in this round, with the reason. They are tested once more at its end.
    failed: BTreeMap<u32, Text>,
    /// This round's failed tests are being repeated.
    repeats: bool,
    /// The end that was reported last, ns on the run's clock.
    ends_ns: Option<u64>,
    /// The tests of this step, and the first cells of its slots, also of those that are skipped.
    tests: Vec<Test>,
    due: Vec<u32>,
    /// The first cells of tests whose requirements were waited for in vain.
    waited: BTreeSet<u32>,
    /// What stands out is tested again: the rounds are over.
    retests: Option<Retests>,
    /// Number and duration of the passes so far, ns.
    passed: (u64, u64),
    /// The longest of them, ns.
    longest_test_ns: u64,
    at: At,
}

#[derive(Debug)]
enum At {
    /// Before the first round.
    Start,
    /// Between two rounds.
    Round,
    /// Until a scheduled time, with its number.
    Wait {
        next: u64,
    },
    /// The cells are being closed, some at a time.
    Close,
    /// Between two steps.
    Step,
    /// Before failed tests are repeated.
    Recover,
    /// The hosts of this step's tests are to be made ready.
    Prepare,
    /// Its requirements are not met; they are to be checked again, until this time.
    Retry {
        until: u64,
    },
    Require {
        until: u64,
    },
    /// The paths of the tests from this index on are to be probed without load; the first one's probe.
    Idle(usize, Option<Box<IdleProbe>>),
    WarmUp,
    Measure,
    Gap,
    End(RunEnd),
}

/// A test of one step: a cell, or the open sizes of a curve.
#[derive(Debug)]
struct Test {
    /// The first of its cells.
    cell: Cell,
    /// Its legs, each with its cell.
    legs: Vec<Planned>,
    between: Between,
    /// See [`TestRequest`].
    shares_hosts: bool,
    starts_together: bool,
    conditions: [Option<Conditions>; 2],
    /// Its place among those that test again what stands out.
    retest: Option<RetestPlace>,
}

impl PlanRun {
    pub(crate) fn new(schedule: PlanSchedule, single_ended: BTreeSet<String>, started_unix_ns: u64) -> Self {
        Self {
            schedule,
            single_ended,
            started_unix_ns,
            rounds_done: BTreeMap::new(),
            time: 0,
            longest_ns: 0,
            round: 0,
            begun: 0,
            steps: VecDeque::new(),
            steps_of_round: 0,
            failed: BTreeMap::new(),
            repeats: false,
            ends_ns: None,
            tests: Vec::new(),
            due: Vec::new(),
            waited: BTreeSet::new(),
            retests: None,
            passed: (0, 0),
            longest_test_ns: 0,
            at: At::Start,
        }
    }

    /// Wall-clock time at `now`, ns since the Unix epoch.
    fn unix_ns(&self, now: u64) -> u64 {
        self.started_unix_ns + now.saturating_sub(self.schedule.spent_ns())
    }

    /// Adopts the trials of an earlier part of the run.
    fn adopt(&mut self, state: &mut RunState) {
        let schedule = &self.schedule;
        let cut: BTreeSet<u32> = schedule.trials.iter().filter(|trial| is_cut(trial)).map(|trial| trial.pass).collect();
        let kept: BTreeSet<u32> = schedule.passes.iter().map(|pass| pass.index).collect();
        let points: BTreeSet<u32> = schedule.slots.iter().filter(|slot| slot.sizes > 1).flat_map(Slot::cells).collect();
        // A trial that was cut short is repeated; of a curve the whole pass.
        let whole = |trial: &&Trial| {
            !is_cut(trial)
                && (!points.contains(&trial.cell) || kept.contains(&trial.pass) && !cut.contains(&trial.pass))
        };
        schedule.trials.iter().filter(whole).for_each(|trial| state.cells.adopt(trial.clone()));
        self.rounds_done = schedule.slots.iter().map(|slot| (slot.cell, rounds_of(state, slot))).collect();
        self.level_rounds();
        let schedule = &self.schedule;
        let by_trial = schedule.trials.iter().map(|trial| trial.pass + 1).max();
        let by_pass = schedule.passes.iter().map(|pass| pass.index + 1).max();
        state.passes = by_trial.max(by_pass).unwrap_or(0);
        state.retests.clone_from(&schedule.retests);
        self.passed = (schedule.passes.len() as u64, schedule.passes.iter().map(|pass| pass.duration_ns).sum());
        let with_round = |pass: &Pass| Pass { index: pass.index, round: pass.round, ..Pass::default() };
        state.pass_rounds = schedule.passes.iter().map(with_round).collect();
    }

    /// Begins the next round, or waits for its time; ends the plan after the last one.
    fn next_round(&mut self, state: &mut RunState, now: u64) -> At {
        if self.settle(state) {
            return At::Close;
        }
        let open = self.open(state);
        let Some(round) = open.iter().map(|cell| self.rounds_done.get(cell).copied().unwrap_or(0)).min() else {
            return self.after_rounds();
        };
        self.round = round;
        if let Some(every) = self.schedule.plan.schedule
            && round.is_multiple_of(state.header.stopping.min_trials.max(1))
        {
            return match self.next_time(&state.header, every, now) {
                Some(next) => At::Wait { next },
                None => At::End(RunEnd::Finished),
            };
        }
        self.begin_round(state, now)
    }

    /// After the last round: of a mesh, what stands out is tested again when all cells are closed.
    fn after_rounds(&self) -> At {
        if self.schedule.plan.retests.is_some() { At::Close } else { At::End(RunEnd::Finished) }
    }

    /// Decides what is tested again.
    fn begin_retests(&mut self, state: &mut RunState, now: u64) -> At {
        let rounds = self.schedule.plan.retests.unwrap_or(0);
        let each_ns = self.passed.1 / self.passed.0.max(1) + GAP_NS;
        self.retests = Some(Retests::begin(state, rounds, self.retests_left_ns(state, now), each_ns));
        self.steps.clear();
        At::Step
    }

    /// The time that is left for them, ns.
    fn retests_left_ns(&self, state: &RunState, now: u64) -> u64 {
        let until = self.schedule.plan.retests_until_unix_ns.unwrap_or(u64::MAX);
        state.left_ns(now).min(until.saturating_sub(self.unix_ns(now)))
    }

    /// Begins the next test of what stands out, unless it might take too long.
    fn next_retest(&mut self, state: &mut RunState, now: u64) -> At {
        self.failed.clear();
        self.due.clear();
        let fits = self.retests_left_ns(state, now) >= self.longest_test_ns;
        let next = self.retests.as_mut().filter(|_| fits).and_then(|retests| retests.next(&state.header));
        let Some((step, activity, left)) = next else { return At::End(RunEnd::Finished) };
        state.phase(activity, Some(left));
        let tests = step.into_iter().filter_map(|(place, cell)| {
            let test = self.test(state, cell)?;
            Some(Test { retest: Some(place), ..test })
        });
        self.tests = tests.collect();
        At::Prepare
    }

    /// The number of the next scheduled time, from 0; `None` after the last one. Times that passed during a measurement are
    /// skipped.
    fn next_time(&self, header: &RunHeader, every: Every, now: u64) -> Option<u64> {
        let passed = self.unix_ns(now).saturating_sub(header.started_unix_ns).div_ceil(every.every_ns.max(1));
        let next = if self.time == 0 && self.round == 0 { 0 } else { passed.max(self.time) };
        (next < every.times()).then_some(next)
    }

    /// When a scheduled time is due, ns since the Unix epoch.
    fn due(&self, header: &RunHeader, next: u64) -> u64 {
        let every = self.schedule.plan.schedule.map_or(0, |every| every.every_ns);
        header.started_unix_ns + next * every
    }

    fn begin_round(&mut self, state: &mut RunState, now: u64) -> At {
        self.begun = now;
        if state.left_ns(now) < self.longest_ns {
            return self.after_rounds();
        }
        let rule = &state.header.stopping;
        let seed = (rule.order == Order::Random).then_some(rule.seed);
        let open = self.open(state);
        let is_due = |cell: &u32| open.binary_search(cell).is_ok() && self.rounds_done.get(cell) == Some(&self.round);
        let steps = analysis::plan::round(&self.schedule.slots, self.schedule.per_host(), seed, self.round);
        let due = steps.into_iter().map(|step| step.into_iter().filter(is_due).collect::<Vec<u32>>());
        self.steps = due.filter(|step| !step.is_empty()).collect();
        self.steps_of_round = self.steps.len();
        At::Step
    }

    /// The first cells of the slots that have an open cell.
    fn open(&self, state: &RunState) -> Vec<u32> {
        let mut open: Vec<u32> = state.cells.open().map(|cell| self.schedule.first_of(cell.cell.id)).collect();
        open.dedup();
        open
    }

    /// Closes the cells that have converged or have had all their rounds. With a schedule, all cells stay open to the end.
    /// Of a mesh whose cells are all over, they are left to [`At::Close`]: true.
    fn settle(&self, state: &mut RunState) -> bool {
        if self.schedule.plan.schedule.is_some() {
            return false;
        }
        let (least, most) = (state.header.stopping.min_trials, state.header.stopping.max_trials);
        let rounds = |cell: u32| self.rounds_done.get(&self.schedule.first_of(cell)).copied().unwrap_or(0);
        let ids: Vec<u32> = state.cells.open().map(|cell| cell.cell.id).collect();
        // Another program may repeat a size within a round: those trials are no further rounds.
        let is_over = |id: &u32| rounds(*id) >= most || rounds(*id) >= least && state.cells.is_converged(*id);
        let mut over: Vec<u32> = ids.iter().copied().filter(is_over).collect();
        // Groups load the path for each other: none ends before all do.
        let open: BTreeSet<usize> =
            ids.iter().filter(|id| over.binary_search(id).is_err()).filter_map(|id| self.together(*id)).collect();
        over.retain(|id| self.together(*id).is_none_or(|combination| !open.contains(&combination)));
        if self.schedule.plan.retests.is_some() && over.len() == ids.len() {
            return true;
        }
        over.into_iter().for_each(|id| state.finish(id, false));
        false
    }

    /// Begins the next step of the round, or ends the round.
    fn next_step(&mut self, state: &mut RunState, now: u64) -> At {
        if self.retests.is_some() {
            return self.next_retest(state, now);
        }
        if self.steps.is_empty() && !self.repeats && !self.failed.is_empty() {
            self.repeats = true;
            let slots: Vec<Slot> =
                self.schedule.slots.iter().filter(|slot| self.failed.contains_key(&slot.cell)).cloned().collect();
            self.failed.clear();
            self.steps = analysis::plan::round(&slots, self.schedule.per_host(), None, self.round).into();
            self.steps_of_round += self.steps.len();
            return At::Recover;
        }
        let Some(cells) = self.steps.pop_front() else {
            self.repeats = false;
            if let Some(end) = self.give_up_failed(state) {
                return At::End(end);
            }
            self.longest_ns = self.longest_ns.max(now - self.begun);
            return At::Round;
        };
        self.report_step(state, &cells, now);
        self.tests = cells.iter().filter_map(|id| self.test(state, *id)).collect();
        self.due = cells;
        At::Prepare
    }

    /// Whether the plan goes on after a failed test: the tests of other hosts have nothing to do with it. A test that cannot be set up
    /// fails everywhere, so that it ends the run before anything was measured.
    fn goes_on_after(&self, state: &RunState, failure: &StepFailure) -> bool {
        many_hosts(&self.schedule.plan, &self.schedule.slots)
            && match failure.kind {
                FailureKind::Host => true,
                FailureKind::Setup | FailureKind::Trial => !state.pass_rounds.is_empty(),
                FailureKind::Run | FailureKind::Interrupted => false,
            }
    }

    /// The test of the slot that starts with this cell.
    fn test(&self, state: &RunState, id: u32) -> Option<Test> {
        let cell = Cell::find(&state.header.cells, id)?;
        let slot = Slot::of_cell(&self.schedule.slots, id)?;
        let single_ended = self.single_ended.contains(cell.spec.transport.as_str());
        let between = Between { hosts: [slot.near, slot.far], single_ended };
        let (legs, starts_together) = (self.legs(state, cell, slot), slot.together);
        let shares_hosts = starts_together || self.schedule.per_host() > 1;
        let conditions = [None; 2];
        Some(Test { cell: cell.clone(), legs, between, shares_hosts, starts_together, conditions, retest: None })
    }

    /// The legs over one set of connections: one leg, or a warm-up leg and those of a curve's open sizes.
    fn legs(&self, state: &RunState, cell: &Cell, slot: &Slot) -> Vec<Planned> {
        let spec = &cell.spec;
        if !spec.is_point() {
            return vec![(Some(cell.id), Leg::of(spec))];
        }
        if spec.speak.is_some() {
            // Another program's server takes all sizes of its curve in its own order.
            return slot.cells().filter_map(|id| planned_by_peer(state, id)).collect();
        }
        let rule = &state.header.stopping;
        let order = analysis::plan::size_order(slot, (rule.order == Order::Random).then_some(rule.seed), self.round);
        let of = |id: u32| {
            let open = state.cells.open().find(|open| open.cell.id == id)?;
            let Stop::AboutNs(ns) = open.cell.spec.stop else { return None };
            Some((Some(id), leg(open.cell.spec.block, ns, open.expected_ns())))
        };
        std::iter::once(warm_up(spec, WARM_UP)).chain(order.into_iter().filter_map(of)).collect()
    }

    /// The requests of this step's tests, or of the warm-up before them. A curve has warm-up legs of its own.
    fn requests(&self, warmup: Option<u64>) -> Vec<TestRequest> {
        let tests = self.tests.iter().filter(|test| warmup.is_none() || !test.cell.spec.is_point());
        let round = (warmup.is_none() && self.retests.is_none()).then_some(self.round);
        let request = |test: &Test| {
            let (spec, legs) = spec_and_legs(&test.cell.spec, &test.legs, warmup);
            let Test { between, shares_hosts, starts_together, .. } = *test;
            TestRequest { between, spec, legs, shares_hosts, starts_together, round }
        };
        tests.map(request).collect()
    }

    /// Records the results of this step's tests. Returns how the plan ended, if they ended it.
    fn record(&mut self, state: &mut RunState, results: Vec<TestResult>) -> Option<RunEnd> {
        let first = state.passes;
        state.passes += self.tests.len() as u32;
        if let Some(reason) = self.failed_as_a_whole(state, &results) {
            self.failed.extend(self.due.iter().map(|cell| (*cell, reason.clone())));
            return state.interrupted();
        }
        let mut end = None;
        for ((at, test), result) in (0..).zip(&self.tests).zip(results) {
            let TestResult { pass, changes, begun_unix_ns } = result;
            let pass = match pass {
                Ok(pass) => pass,
                Err(failure) if self.goes_on_after(state, &failure) => {
                    self.failed.insert(test.cell.id, failure.reason);
                    continue;
                }
                Err(_) => {
                    end = end.or(Some(RunEnd::Failed));
                    continue;
                }
            };
            let [near, far] = [0, 1].map(|side| EndPass {
                conditions: test.conditions[side],
                settings: changes[side].clone(),
                tests: self.tests_on(test.between.hosts[side]),
                ..EndPass::default()
            });
            let recorded = Pass {
                index: first + at,
                started_ns: pass.begun_ns,
                started_unix_ns: Some(begun_unix_ns),
                duration_ns: pass.duration_ns,
                round: self.retests.is_none().then_some(self.round),
                lab: pass.lab,
                near,
                far,
                ..Pass::default()
            };
            self.passed = (self.passed.0 + 1, self.passed.1 + pass.duration_ns);
            self.longest_test_ns = self.longest_test_ns.max(pass.duration_ns);
            state.pass_rounds.push(Pass { index: recorded.index, round: recorded.round, ..Pass::default() });
            // A stall ends its pass, and the failure that follows is that stall, which the trial already records.
            let ends = [Some(&pass.near), pass.far.as_ref()];
            let stalled = ends.into_iter().flatten().flat_map(|end| &end.tallies).any(|tally| tally.stalled);
            let failure = pass.failure.filter(|_| !stalled);
            let repeats = pass.repeats.iter().copied().chain(std::iter::repeat(usize::from(pass.repeats.is_empty())));
            let trials = test.legs.iter().zip(repeats).flat_map(|((cell, _), n)| std::iter::repeat_n(*cell, n));
            let positions: Vec<(Option<u32>, u32)> = trials.zip(0..).collect();
            state.retest = test.retest;
            state.record(recorded, pass.near, pass.far, &positions, pass.links);
            let what = "the trial was cut short";
            end = end.or(failure.map(|reason| RunEnd::CutShort { what, reason }));
        }
        for cell in self.due.iter().filter(|cell| !self.failed.contains_key(cell)) {
            *self.rounds_done.entry(*cell).or_default() += 1;
        }
        state.interrupted().or(end)
    }

    fn report_step(&mut self, state: &mut RunState, cells: &[u32], now: u64) {
        let place = match self.steps_of_round {
            0 | 1 => String::new(),
            all => format!(", {} of {all}", all - self.steps.len()),
        };
        let what = if self.schedule.plan.groups().is_some() { "groups" } else { "host pairs" };
        let activity = format!("round {}{place}{}", self.round + 1, step_in_words(state, cells, what));
        let tests = cells.len() + self.steps.iter().map(Vec::len).sum::<usize>();
        let left = match self.schedule.plan.schedule {
            Some(every) => Some((state.header.started_unix_ns + every.for_ns).saturating_sub(self.unix_ns(now))),
            None => trials_left_ns(state, now, tests as f64 / (1 + self.steps.len()) as f64),
        };
        self.ends_ns = left.map(|left| settled_end(self.ends_ns, now, left));
        report(state, activity, self.ends_ns.map(|end| end.saturating_sub(now)));
    }
}

impl Machine for PlanRun {
    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        loop {
            self.at = match &self.at {
                At::Start => {
                    self.adopt(state);
                    At::Round
                }
                At::Round => self.next_round(state, now),
                At::Close if close_some(state) => return Step::pause(CLOSE_NS),
                At::Close => self.begin_retests(state, now),
                At::Wait { next } => {
                    let left = self.due(&state.header, *next).saturating_sub(self.unix_ns(now));
                    if left > 0 {
                        let times = self.schedule.plan.schedule.map_or(1, Every::times);
                        report(state, format!("waiting for repetition {} of {times}", next + 1), Some(left));
                        return Step::Pause(Pause { ns: left.min(PAUSE_NS), release: true });
                    }
                    self.time = next + 1;
                    self.begin_round(state, now)
                }
                At::Step => self.next_step(state, now),
                At::Recover => {
                    report(state, format!("repeating {} failed tests", self.steps.len()), None);
                    return Step::pause(RECOVER_NS);
                }
                At::Prepare => {
                    let of = |test: &Test| (test.between, test.cell.spec.settings.clone());
                    let settings = self.tests.iter().map(of).collect();
                    let conditions = if self.schedule.plan.require.is_some() { self.hosts() } else { Vec::new() };
                    return Step::Prepare(Preparation { hold: true, settings, conditions, ..Preparation::default() });
                }
                At::Retry { .. } => return Step::pause(RETRY_NS),
                At::Require { .. } => {
                    return Step::Prepare(Preparation { conditions: self.hosts(), ..Preparation::default() });
                }
                At::Idle(at, Some(probe)) => {
                    let test = &self.tests[*at];
                    if let Some(step) = Step::idle(probe, test.between) {
                        return step;
                    }
                    state.cells.idle(test.cell.id, probe.found());
                    At::Idle(at + 1, None)
                }
                At::Idle(from, None) => match self.next_idle(state, *from) {
                    Some(at) => At::Idle(at, Some(Box::new(IdleProbe::new(&self.tests[at].cell.spec)))),
                    None => At::WarmUp,
                },
                At::WarmUp => match self.schedule.plan.warmup_ns {
                    Some(ns) => {
                        return Step::Run(Tests {
                            first: state.passes,
                            tests: self.requests(Some(ns)),
                            recorded: false,
                        });
                    }
                    None => At::Measure,
                },
                At::Measure => {
                    return Step::Run(Tests { first: state.passes, tests: self.requests(None), recorded: true });
                }
                At::Gap => return Step::pause(GAP_NS),
                At::End(end) => return Step::End(end.clone()),
            };
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        let at = std::mem::replace(&mut self.at, At::Round);
        self.at = match (at, result) {
            (_, Completed::Failed(failure)) => At::End(failure.end()),
            (At::Measure, Completed::Tests(results)) => match self.record(state, results) {
                Some(end) => At::End(end),
                None => At::Gap,
            },
            (at, result) => match (state.interrupted(), at, result) {
                (Some(end), ..) => At::End(end),
                (None, At::Prepare, Completed::Conditions(found)) => {
                    // What was waited for in vain is not waited for again.
                    let in_vain = self.tests.iter().all(|test| self.waited.contains(&test.cell.id));
                    let require = self.schedule.plan.require.as_ref().filter(|_| !in_vain);
                    let wait_ns = require.map_or(0, |require| require.wait_ns);
                    self.require(state, &found, now + wait_ns, now)
                }
                (None, At::Prepare, _) => At::Idle(0, None),
                (None, At::Require { until }, Completed::Conditions(found)) => self.require(state, &found, until, now),
                (None, At::Retry { until }, _) => At::Require { until },
                (None, At::Idle(at, Some(mut probe)), Completed::Tests(results)) => {
                    match results.into_iter().next().map(|result| result.pass).transpose() {
                        Ok(pass) => {
                            probe.completed(pass.as_ref().map(|pass| &pass.near));
                            At::Idle(at, Some(probe))
                        }
                        // Its test fails as well, and is then recorded.
                        Err(failure) if self.goes_on_after(state, &failure) => {
                            state.cells.idle(self.tests[at].cell.id, None);
                            At::Idle(at + 1, None)
                        }
                        Err(failure) => At::End(failure.end()),
                    }
                }
                (None, At::WarmUp, Completed::Tests(results)) => {
                    let ends =
                        |one: &TestResult| one.pass.as_ref().is_err_and(|failure| !self.goes_on_after(state, failure));
                    // A step that fails as a whole fails again, and is then recorded.
                    let whole = self.failed_as_a_whole(state, &results).is_some();
                    if !whole && results.iter().any(ends) { At::End(RunEnd::Failed) } else { At::Measure }
                }
                (None, At::Gap | At::Recover, _) => At::Step,
                (None, at, _) => at,
            },
        };
    }
}

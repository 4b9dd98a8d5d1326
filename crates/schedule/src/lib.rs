//! Decides what a run measures next, without I/O and without a clock.
//!
//! [`ScheduledRun::next`] returns the next [`Step`]. The caller carries it out and reports the result to [`ScheduledRun::completed`], each time
//! with the time since the start of the run. Between the two calls the run does nothing, so a test can carry out the steps on a
//! simulated path in virtual time. What the run records comes out of [`ScheduledRun::events`].

mod advise;
mod cells;
mod curve;
mod curve_check;
mod curve_leg;
mod fit;
mod idle;
mod noloss;
mod paired;
mod plan;
mod plan_parts;
mod plan_retest;
mod plan_schedule;
mod search_state;
mod sequence;
#[cfg(test)]
mod simulated;
mod single;
mod state;
mod whole;

use std::collections::BTreeSet;
use std::fmt::Debug;

use model::{Change, Conditions, EndResult, Event, HostSettings, LabReport, Leg, RunHeader, Shared, Spec, Verdict};
use text::Text;

pub use advise::{AdvisePlan, Methods};
pub use cells::{CellState, Cells, ScheduleKind};
pub use curve::{CurvePlan, anatomy_of};
pub use curve_check::check_stream_of;
pub use curve_leg::{Planned, leg, spec_of, warm_up};
pub use fit::{Unfixed, fit_to_path};
use idle::IdleProbe;
pub use noloss::LossSearch;
pub use paired::PairedPlan;
pub use plan_schedule::PlanSchedule;
pub use state::{RetestPlace, RunState};

/// What the caller is to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make hosts ready for tests.
    Prepare(Preparation),
    /// Make tests at the same time, over fresh connections.
    Run(Tests),
    /// Wait.
    Pause(Pause),
    /// Stop: the run is over.
    End(RunEnd),
}

/// What hosts need before a test, in the order of the fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preparation {
    /// Have all hosts' machines, waiting in their queues if necessary; others get a turn after some minutes.
    pub hold: bool,
    /// Make the hosts drop what is left of a failed set-up.
    pub reset: bool,
    /// Apply these settings to these hosts; equal ones are not changed again.
    pub settings: Vec<(Between, HostSettings)>,
    /// Remove what the kernels' TCP metrics caches know of earlier connections.
    pub forget_paths: bool,
    /// Read the conditions of these hosts.
    pub conditions: Vec<usize>,
}

/// Tests that are made at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Tests {
    /// Number of the first among the run's passes.
    pub first: u32,
    /// The tests, no host in two of them unless they share hosts.
    pub tests: Vec<TestRequest>,
    /// They are a part of the result; a warm-up, or a probe of the path without load, is not.
    pub recorded: bool,
}

/// A pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Its length, ns.
    pub ns: u64,
    /// Revert all settings and let others have the machines meanwhile.
    pub release: bool,
}

/// The hosts of a test, by their numbers in the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// The near and the far host.
    pub hosts: [usize; 2],
    /// The near host measures alone.
    pub single_ended: bool,
}

impl Between {
    /// The two hosts of a fleet of two, or the only one.
    pub const PAIR: Self = Self { hosts: [0, 1], single_ended: false };
}

/// A test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRequest {
    /// Its hosts.
    pub between: Between,
    /// What to measure; with `no_loss` it is a [`LossSearch`].
    pub spec: Shared<Spec>,
    /// The legs, in order.
    pub legs: Vec<Leg>,
    /// Other tests of the step may have the same hosts.
    pub shares_hosts: bool,
    /// All tests of the step start when the last one is ready, or none does.
    pub starts_together: bool,
    /// The round of a plan's cells that it is for; `None` for a warm-up, for tests of what stands out, and without a plan.
    pub round: Option<u32>,
}

impl Step {
    /// A pause during which the hosts keep their settings.
    pub(crate) fn pause(ns: u64) -> Self {
        Self::Pause(Pause { ns, release: false })
    }

    /// One trial of `spec` between two hosts, as the pass `number` of the run.
    pub(crate) fn trial(number: u32, spec: Shared<Spec>) -> Self {
        let legs = vec![Leg::of(&spec)];
        Self::pass(number, spec, legs)
    }

    /// One pass of several legs between two hosts.
    pub(crate) fn pass(number: u32, spec: Shared<Spec>, legs: Vec<Leg>) -> Self {
        Self::Run(Tests { first: number, tests: vec![TestRequest::of_pair(spec, legs)], recorded: true })
    }

    /// The next pass of a probe of the path without load.
    pub(crate) fn idle(probe: &IdleProbe, between: Between) -> Option<Self> {
        let (spec, leg) = probe.next()?;
        let test = TestRequest { between, ..TestRequest::of_pair(spec.into(), vec![leg]) };
        Some(Self::Run(Tests { first: u32::MAX, tests: vec![test], recorded: false }))
    }

    /// Ready for a trial that is compared with others: with the settings of `spec`, and as over a path that was never used.
    pub(crate) fn afresh(spec: &Spec) -> Self {
        Self::Prepare(Preparation { forget_paths: true, ..Preparation::settings_of(spec) })
    }

    /// After a failed set-up.
    pub(crate) fn reset() -> Self {
        Self::Prepare(Preparation { reset: true, ..Preparation::default() })
    }
}

impl Preparation {
    /// The settings of `spec` at two hosts.
    pub(crate) fn settings_of(spec: &Spec) -> Self {
        Self { settings: vec![(Between::PAIR, spec.settings.clone())], ..Self::default() }
    }
}

impl TestRequest {
    /// The only test of a step, between two hosts.
    #[must_use]
    pub fn of_pair(spec: Shared<Spec>, legs: Vec<Leg>) -> Self {
        Self { between: Between::PAIR, spec, legs, shares_hosts: false, starts_together: false, round: None }
    }
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestResult {
    /// The pass, or why there is none.
    pub pass: Result<PassResult, StepFailure>,
    /// Changes of both hosts' settings during the test.
    pub changes: [Vec<Change>; 2],
    /// Wall-clock time at its start, ns since the Unix epoch.
    pub begun_unix_ns: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    /// By its stop rule or its budget.
    Finished,
    /// By the user.
    Interrupted,
    /// By the last reported [`Completed::Failed`].
    Failed,
    /// By a requirement of its plan that was not met.
    Unmet {
        /// Which, on which host.
        what: String,
        /// For how long it was waited for, ns.
        waited_ns: u64,
    },
    /// By a trial or pass that ended early.
    CutShort {
        /// What ended.
        what: &'static str,
        /// Why.
        reason: Text,
    },
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Completed {
    /// A pause or a preparation is over.
    Done,
    /// A preparation is over, with the names and conditions of the requested hosts, in order.
    Conditions(Vec<(String, Conditions)>),
    /// Tests have ended, at their end or early, in the order of the requests.
    Tests(Vec<TestResult>),
    /// The step could not be carried out.
    Failed(StepFailure),
}

impl Completed {
    /// The result of a step with one test at most: its pass, `None` for another step, or the failure of either.
    pub(crate) fn alone(self) -> Result<Option<PassResult>, StepFailure> {
        match self {
            Self::Tests(results) => results.into_iter().next().map(|result| result.pass).transpose(),
            Self::Failed(failure) => Err(failure),
            Self::Done | Self::Conditions(_) => Ok(None),
        }
    }
}

/// Why a step could not be carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFailure {
    /// What it is a failure of.
    pub kind: FailureKind,
    /// The reason, for people.
    pub reason: Text,
}

impl StepFailure {
    /// How it ends a run that cannot go on after it.
    fn end(&self) -> RunEnd {
        if self.kind == FailureKind::Interrupted { RunEnd::Interrupted } else { RunEnd::Failed }
    }
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The set-up of a trial: an end refused it or cannot do it. Both ends still hold parts of it.
    Setup,
    /// The trial itself, or the settings of its hosts; both ends are ready for another one.
    Trial,
    /// The connection to a host, whose other tests can go on without it.
    Host,
    /// Another fault that ends the run.
    Run,
    /// Nothing: the user wants to stop.
    Interrupted,
}

/// A pass that has ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PassResult {
    /// From the start of the run to the start of the pass, ns.
    pub begun_ns: u64,
    /// Length of the pass, ns.
    pub duration_ns: u64,
    /// In a lab: the report on its links during the pass.
    pub lab: Option<LabReport>,
    /// In a lab: the verdict on its links.
    pub links: Option<Verdict>,
    /// The near end's results.
    pub near: EndResult,
    /// The far end's results; `None` if the near end measured alone.
    pub far: Option<EndResult>,
    /// Why it ended early, if it did.
    pub failure: Option<Text>,
    /// How many trials each leg has; empty for one each. Another program may repeat a size of a curve.
    pub repeats: Vec<usize>,
}

/// How cells are measured.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// One cell, trial after trial, until it has converged.
    Single(Unfixed),
    /// Each cell as with [`Single`](Self::Single), one after another.
    Sequence(Unfixed),
    /// One cell for each block size, in passes over all of them.
    Curve(CurvePlan),
    /// One cell for each block size, all in one pass, as another program measures them.
    Whole,
    /// Two cells in turns, A's first in the header, until the interval of their ratio is narrow enough.
    Paired(PairedPlan),
    /// One cell and its possible changes, in search of better settings.
    Advise(AdvisePlan),
}

impl Schedule {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ScheduleKind {
        match self {
            Self::Single(_) | Self::Sequence(_) => ScheduleKind::Single,
            Self::Curve(_) | Self::Whole => ScheduleKind::Curve,
            Self::Paired(_) => ScheduleKind::Paired,
            Self::Advise(_) => ScheduleKind::Search,
        }
    }
}

/// The steps of one schedule. Between [`next`](Self::next) and [`completed`](Self::completed) it does nothing.
trait Machine: Debug + Send {
    /// The next step.
    fn next(&mut self, state: &mut RunState, now: u64) -> Step;
    /// Takes the result of the last step.
    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64);
    /// Adds what it found, before the run is closed.
    fn report(&self, _state: &mut RunState) {}
}

/// A run in progress.
#[derive(Debug)]
pub struct ScheduledRun {
    state: RunState,
    machine: Box<dyn Machine>,
}

impl ScheduledRun {
    /// A run of `header`'s cells; a search may try the `methods` of their transport.
    #[must_use]
    pub fn new(header: &RunHeader, schedule: &Schedule, methods: Methods) -> Self {
        let machine: Box<dyn Machine> = match schedule {
            Schedule::Single(plan) => Box::new(single::Single::new(header, *plan)),
            Schedule::Sequence(plan) => Box::new(sequence::Sequence::new(header, *plan)),
            Schedule::Curve(plan) => Box::new(curve::Curve::new(header, plan)),
            Schedule::Whole => Box::new(whole::Whole::Pass),
            Schedule::Paired(plan) => Box::new(paired::PairedRun::new(header, plan)),
            Schedule::Advise(plan) => Box::new(advise::Advise::new(header, plan.clone(), methods)),
        };
        Self { state: RunState::new(header, schedule.kind()), machine }
    }

    /// A run of a plan. `single_ended` names the transports with one end; this part of the run starts at `started_unix_ns`, ns
    /// since the Unix epoch, and at [`PlanSchedule::spent_ns`] in the run's own time.
    #[must_use]
    pub fn plan(
        header: &RunHeader,
        schedule: PlanSchedule,
        single_ended: BTreeSet<String>,
        started_unix_ns: u64,
    ) -> Self {
        let machine = Box::new(plan::PlanRun::new(schedule, single_ended, started_unix_ns));
        Self { state: RunState::new(header, ScheduleKind::Plan), machine }
    }

    /// The next step, at `now` ns after the start of the run.
    pub fn next(&mut self, now: u64) -> Step {
        self.machine.next(&mut self.state, now)
    }

    /// Takes the result of the last step, at `now` ns after the start of the run.
    pub fn completed(&mut self, result: Completed, now: u64) {
        self.machine.completed(&mut self.state, result, now);
    }

    /// The user wants to stop: the run ends after the step in progress, whose results are kept.
    pub fn interrupt(&mut self) {
        self.state.interrupt();
    }

    /// Notes the state of the TCP metrics caches; with `may_carry_over` a trial may have started with an earlier one's values.
    pub fn metrics(&mut self, statement: String, may_carry_over: bool) {
        self.state.metrics(statement.into(), may_carry_over);
    }

    /// Closes the run, after its end: makes the outcomes of all open cells and the findings. `early`: it did not finish.
    pub fn close(&mut self, early: bool) {
        self.machine.report(&mut self.state);
        self.state.close(early);
    }

    /// What was recorded since the last call, in order.
    pub fn events(&mut self) -> Vec<Event> {
        self.state.events()
    }
}

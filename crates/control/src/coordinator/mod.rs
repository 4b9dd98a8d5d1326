//! The coordinator: decides what is measured next, checks the stop rule between trials, and sends all events to the sinks.

mod address;
mod advise;
mod cells;
mod choose;
mod curve;
mod end;
mod fetch;
mod fleet;
mod foreign;
mod links;
mod metrics;
mod noloss;
mod paired;
mod pass;
mod path_probe;
mod plan;
mod single;
mod tuning;

use std::time::Instant;

use model::{Advice, ClockDrift, ClockOffset, Ending, Event, EventSink, Finding, Pass, RunHeader, Verdict};

use crate::ControlError;
pub use address::{check_host, leads_to_ipv6};
pub use advise::AdvisePlan;
use cells::Cells;
pub use choose::{choose_engine, choose_engines};
pub use curve::CurvePlan;
pub use end::{End, Target};
pub use fleet::Fleet;
pub use foreign::{Foreign, ForeignCurve, run_foreign};
pub use paired::PairedPlan;
pub use pass::{Cancel, Pair};
pub use plan::PlanSchedule;

/// The measurement of a command.
pub struct RunRequest {
    /// The run as it will be recorded, with the cells to measure.
    pub header: RunHeader,
    /// How its cells are measured.
    pub schedule: Schedule,
}

/// How cells are measured.
pub enum Schedule {
    /// One cell, trial after trial, until it has converged.
    Single,
    /// One cell for each block size, in passes over all of them.
    Curve(CurvePlan),
    /// Two cells in turns, A's first in the header, until the interval of their ratio is narrow enough.
    Paired(PairedPlan),
    /// One cell and its possible changes, in search of better settings.
    Advise(AdvisePlan),
}

/// The kind of a run's schedule; a cell's outcome depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScheduleKind {
    Single,
    Curve,
    Paired,
    Plan,
    Search,
}

impl ScheduleKind {
    /// Whether cells are measured in turns to compare them; then no cell is measured until it has converged by itself.
    fn is_paired(self) -> bool {
        matches!(self, Self::Paired | Self::Search)
    }
}

/// A run in progress; `E` is its pair or fleet of hosts, or its driver for another program.
struct ActiveRun<'a, E = Pair> {
    pair: &'a mut E,
    header: &'a RunHeader,
    sink: &'a mut dyn EventSink,
    cancel: Cancel,
    started: Instant,
    cells: Cells,
    passes: u32,
    /// Of a plan: the index and round of each pass, without the hosts' activity.
    pass_rounds: Vec<Pass>,
    /// The schedule's notes on the run.
    notes: Vec<Finding>,
    /// The result of a search.
    advice: Option<Advice>,
    /// Time that the hypervisor took from the near and the far host during the passes.
    stolen: [analysis::Stolen; 2],
    /// In a lab: the process that reports on its emulated links.
    lab: Option<lab::Holder>,
    /// The verdict on the links during the last pass, or during the last simultaneous passes.
    links: Option<Verdict>,
}

/// Makes the measurement of `request`. After an error as well, the sinks get an outcome for each cell that has a trial, and the
/// ending. The error is returned, too.
pub async fn run(
    pair: &mut Pair,
    request: &RunRequest,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let kind = match &request.schedule {
        Schedule::Single => ScheduleKind::Single,
        Schedule::Curve(_) => ScheduleKind::Curve,
        Schedule::Paired(_) => ScheduleKind::Paired,
        Schedule::Advise(_) => ScheduleKind::Search,
    };
    let mut run = ActiveRun::new(pair, &request.header, kind, sink, cancel);
    let mut result = run.begin();
    if result.is_ok() {
        result = match &request.schedule {
            Schedule::Single => run.single().await,
            Schedule::Curve(plan) => run.curve(plan).await,
            Schedule::Paired(plan) => run.paired(plan).await,
            Schedule::Advise(plan) => run.advise(plan).await,
        };
    }
    let (clocks, drift) = clocks_after(run.pair, request.header.clocks, result.is_ok()).await;
    run.end(result, clocks, drift)
}

/// The clock offset after a successful run that started with a reading, and the drift. A lost end gives no reading.
async fn clocks_after(
    pair: &mut Pair,
    before: Option<ClockOffset>,
    well: bool,
) -> (Option<ClockOffset>, Option<ClockDrift>) {
    let Some(before) = before.filter(|_| well) else { return (None, None) };
    let after = pair.clocks().await.ok().flatten();
    (after, after.and_then(|after| before.drift_to(&after)))
}

/// As [`run()`], for a plan, whose cells may be between any two hosts of a fleet. All settings are reverted when this returns.
pub async fn run_plan(
    fleet: &mut Fleet,
    header: &RunHeader,
    plan: &PlanSchedule,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let mut run = ActiveRun::new(fleet, header, ScheduleKind::Plan, sink, cancel);
    let mut result = run.begin();
    if result.is_ok() {
        result = run.plan(plan).await;
    }
    run.end(result, None, None)
}

impl<'a, E> ActiveRun<'a, E> {
    fn new(
        pair: &'a mut E,
        header: &'a RunHeader,
        kind: ScheduleKind,
        sink: &'a mut dyn EventSink,
        cancel: Cancel,
    ) -> Self {
        let cells = Cells::new(header, kind);
        let (started, notes, pass_rounds) = (Instant::now(), Vec::new(), Vec::new());
        Self {
            pair,
            header,
            sink,
            cancel,
            started,
            cells,
            passes: 0,
            pass_rounds,
            notes,
            advice: None,
            stolen: Default::default(),
            lab: lab::Holder::of_this_host(),
            links: None,
        }
    }

    fn begin(&mut self) -> Result<(), ControlError> {
        Ok(self.sink.event(&Event::Run(self.header.clone()))?)
    }

    /// Closes the run after `result`.
    fn end(
        mut self,
        result: Result<(), ControlError>,
        clocks: Option<ClockOffset>,
        drift: Option<ClockDrift>,
    ) -> (Ending, Option<ControlError>) {
        let interrupted = matches!(result, Err(ControlError::Interrupted));
        let closed = self.close(result.is_err());
        let how = match &result {
            Ok(()) => "finished",
            Err(_) if interrupted => "interrupted",
            Err(_) => "failed",
        };
        let error = result.as_ref().err().filter(|_| !interrupted).map(ToString::to_string);
        let ending = Ending { how: how.into(), error, duration_ns: self.elapsed_ns(), clocks, drift };
        let ended = self.sink.event(&Event::End(ending.clone()));
        let failure = result.and(closed).and(ended.map_err(ControlError::from)).err();
        (ending, failure)
    }

    /// Nanoseconds since the start of the run.
    fn elapsed_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Remaining nanoseconds of the budget.
    fn left_ns(&self) -> u64 {
        self.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget.saturating_sub(self.elapsed_ns()))
    }

    /// Makes the outcomes of all open cells, and the findings.
    fn close(&mut self, early: bool) -> Result<(), ControlError> {
        for outcome in self.cells.finish_all(early) {
            self.sink.event(&Event::Outcome(outcome))?;
        }
        let path = analysis::of_path(self.header, self.cells.done(), &self.stolen);
        for finding in
            self.cells.findings(&self.pass_rounds).into_iter().chain(path).chain(std::mem::take(&mut self.notes))
        {
            self.sink.event(&Event::Finding(finding))?;
        }
        if let Some(advice) = self.advice.take() {
            self.sink.event(&Event::Advice(advice))?;
        }
        Ok(())
    }

    fn interrupted(&self) -> Result<(), ControlError> {
        if *self.cancel.borrow() { Err(ControlError::Interrupted) } else { Ok(()) }
    }
}

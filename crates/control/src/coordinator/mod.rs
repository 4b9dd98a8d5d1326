//! The coordinator: decides what is measured next, asks between trials whether the answer is sure yet, and tells the sinks
//! everything that happens.

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

/// What a command wants measured.
pub struct RunRequest {
    /// The run as it will be recorded; its cells are what is measured.
    pub header: RunHeader,
    /// How its cells are taken.
    pub schedule: Schedule,
}

/// How cells are taken.
pub enum Schedule {
    /// One cell, trial after trial, until it is sure.
    Single,
    /// One cell for each block size, in passes over all of them.
    Curve(CurvePlan),
    /// Two cells in turns, A's first in the header, until their ratio is sure enough.
    Paired(PairedPlan),
    /// One cell and what can be changed about it, in search of what helps.
    Advise(AdvisePlan),
}

/// Which of the ways to take cells a run has; what a cell's outcome is depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    Single,
    Curve,
    Paired,
    Plan,
    Search,
}

impl Taking {
    /// Whether cells are taken in turns, to be told apart: no cell is measured until it is sure by itself.
    fn is_paired(self) -> bool {
        matches!(self, Self::Paired | Self::Search)
    }
}

/// A run under way; `E` is who it is measured between.
struct Conduct<'a, E = Pair> {
    pair: &'a mut E,
    header: &'a RunHeader,
    sink: &'a mut dyn EventSink,
    cancel: Cancel,
    started: Instant,
    cells: Cells,
    passes: u32,
    /// Of a plan: each pass without what the hosts did, for the block that it was part of.
    blocks: Vec<Pass>,
    /// What the schedule has to say of how the run was taken.
    notes: Vec<Finding>,
    /// What a search found.
    advice: Option<Advice>,
    /// What the hypervisor took from the near and the far host during the passes.
    stolen: [analysis::Stolen; 2],
    /// In a lab: who says what its emulated links did.
    lab: Option<lab::Holder>,
    /// What that says of the pass, or of all passes at the same time, that ended last.
    links: Option<Verdict>,
}

/// Measures what `order` wants. Whatever happens, the sinks get an outcome for each cell that has a trial, and the ending; the
/// error, if there was one, comes back as well.
pub async fn run(
    pair: &mut Pair,
    request: &RunRequest,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let taking = match &request.schedule {
        Schedule::Single => Taking::Single,
        Schedule::Curve(_) => Taking::Curve,
        Schedule::Paired(_) => Taking::Paired,
        Schedule::Advise(_) => Taking::Search,
    };
    let mut conduct = Conduct::new(pair, &request.header, taking, sink, cancel);
    let mut result = conduct.begin();
    if result.is_ok() {
        result = match &request.schedule {
            Schedule::Single => conduct.single().await,
            Schedule::Curve(plan) => conduct.curve(plan).await,
            Schedule::Paired(plan) => conduct.paired(plan).await,
            Schedule::Advise(plan) => conduct.advise(plan).await,
        };
    }
    let (clocks, drift) = clocks_after(conduct.pair, request.header.clocks, result.is_ok()).await;
    conduct.end(result, clocks, drift)
}

/// How the clocks stand after a run that went well and began with a reading, and how they moved. Ends that went away say
/// nothing any more.
async fn clocks_after(
    pair: &mut Pair,
    before: Option<ClockOffset>,
    well: bool,
) -> (Option<ClockOffset>, Option<ClockDrift>) {
    let Some(before) = before.filter(|_| well) else { return (None, None) };
    let after = pair.clocks().await.ok().flatten();
    (after, after.and_then(|after| before.drift_to(&after)))
}

/// The same for a plan, whose cells may lie between any two hosts of a fleet. What is changed on the hosts is as it was when this
/// returns.
pub async fn run_plan(
    fleet: &mut Fleet,
    header: &RunHeader,
    plan: &PlanSchedule,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let mut conduct = Conduct::new(fleet, header, Taking::Plan, sink, cancel);
    let mut result = conduct.begin();
    if result.is_ok() {
        result = conduct.plan(plan).await;
    }
    conduct.end(result, None, None)
}

impl<'a, E> Conduct<'a, E> {
    fn new(
        pair: &'a mut E,
        header: &'a RunHeader,
        taking: Taking,
        sink: &'a mut dyn EventSink,
        cancel: Cancel,
    ) -> Self {
        let cells = Cells::new(header, taking);
        let (started, notes, blocks) = (Instant::now(), Vec::new(), Vec::new());
        Self {
            pair,
            header,
            sink,
            cancel,
            started,
            cells,
            passes: 0,
            blocks,
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
        let reported = self.sink.event(&Event::End(ending.clone()));
        let failure = result.and(closed).and(reported.map_err(ControlError::from)).err();
        (ending, failure)
    }

    /// Nanoseconds since the run began.
    fn elapsed_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Nanoseconds of the budget that are left.
    fn left_ns(&self) -> u64 {
        self.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget.saturating_sub(self.elapsed_ns()))
    }

    /// Makes outcomes of all cells that still have none, and says what they mean.
    fn close(&mut self, early: bool) -> Result<(), ControlError> {
        for outcome in self.cells.finish_all(early) {
            self.sink.event(&Event::Outcome(outcome))?;
        }
        let path = analysis::of_path(self.header, self.cells.done(), &self.stolen);
        for finding in self.cells.findings(&self.blocks).into_iter().chain(path).chain(std::mem::take(&mut self.notes))
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

//! The coordinator: decides what is measured next, asks between trials whether the answer is sure yet, and tells the sinks
//! everything that happens.

mod advise;
mod cells;
mod choose;
mod curve;
mod end;
mod metrics;
mod noloss;
mod paired;
mod pass;
mod single;
mod tuning;

use std::time::Instant;

use model::{Advice, Ending, Event, EventSink, Finding, RunHeader};

use crate::ControlError;
pub use advise::AdvisePlan;
use cells::Cells;
pub use choose::choose_engine;
pub use curve::CurvePlan;
pub use end::{End, Target, leads_to_ipv6};
pub use paired::PairedPlan;
pub use pass::{Cancel, Pair};

/// What a command wants measured.
pub struct Order {
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

/// A run under way.
struct Bench<'a> {
    pair: &'a mut Pair,
    header: &'a RunHeader,
    sink: &'a mut dyn EventSink,
    cancel: Cancel,
    started: Instant,
    cells: Cells,
    passes: u32,
    /// What the schedule has to say of how the run was taken.
    notes: Vec<Finding>,
    /// What a search found.
    advice: Option<Advice>,
}

/// Measures what `order` wants. Whatever happens, the sinks get an outcome for each cell that has a trial, and the ending; the
/// error, if there was one, comes back as well.
pub async fn run(
    pair: &mut Pair,
    order: &Order,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let started = Instant::now();
    let cells = Cells::new(&order.header, &order.schedule);
    let mut bench =
        Bench { pair, header: &order.header, sink, cancel, started, cells, passes: 0, notes: Vec::new(), advice: None };
    let mut result = bench.sink.event(&Event::Run(order.header.clone())).map_err(ControlError::from);
    if result.is_ok() {
        result = match &order.schedule {
            Schedule::Single => bench.single().await,
            Schedule::Curve(plan) => bench.curve(plan).await,
            Schedule::Paired(plan) => bench.paired(plan).await,
            Schedule::Advise(plan) => bench.advise(plan).await,
        };
    }
    let interrupted = matches!(result, Err(ControlError::Interrupted));
    let closed = bench.close(result.is_err());
    let how = match &result {
        Ok(()) => "finished",
        Err(_) if interrupted => "interrupted",
        Err(_) => "failed",
    };
    let error = result.as_ref().err().filter(|_| !interrupted).map(ToString::to_string);
    let ending = Ending { how: how.into(), error, duration_ns: started.elapsed().as_nanos() as u64 };
    let told = sink.event(&Event::End(ending.clone()));
    let failure = result.and(closed).and(told.map_err(ControlError::from)).err();
    (ending, failure)
}

impl Bench<'_> {
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
        for finding in self.cells.findings().into_iter().chain(std::mem::take(&mut self.notes)) {
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

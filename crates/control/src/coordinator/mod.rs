//! The coordinator: carries out the steps of a run with its ends, and sends all events to the sinks. [`schedule`] decides the steps.

mod address;
mod bounds;
mod choose;
mod common_start;
mod companion;
mod dial;
mod drive;
mod end;
mod fetch;
mod fleet;
mod fleet_results;
mod fleet_run;
mod invited;
mod lab_links;
mod links;
mod metrics;
mod not_greeted;
mod pair_run;
mod pass;
mod path_probe;
mod program;
mod reached;
mod results;
mod tuning;

use std::time::{Duration, Instant};

use model::{ClockDrift, ClockOffset, Ending, Event, EventSink, RunHeader, Verdict};
use schedule::{Methods, RunState, ScheduledRun};

use crate::ControlError;
pub use address::{check_host, identity, leads_to_ipv6, leads_to_loopback, with_port};
pub use choose::{choose_engine, choose_engines};
pub use dial::first_open_port;
pub use end::{AgentEnd, Target};
pub use fleet::{ConnectedFleet, Member};
use metrics::Metrics;
pub use pass::{Cancel, Pair};
pub use path_probe::note_path;
pub use program::{FarProgram, ProgramCurve, run_with_program};
pub use schedule::{
    AdvisePlan, CurvePlan, PairedPlan, PlanSchedule, Schedule, Unfixed, anatomy_of, check_stream_of, fit_to_path,
};
use text::Said;

/// The measurement of a command.
pub struct RunRequest {
    /// The run as it will be recorded, with the cells to measure.
    pub header: RunHeader,
    /// How its cells are measured.
    pub schedule: Schedule,
}

/// A run in progress: its ends `E` (a pair or fleet of hosts, or a driver for another program), and what it records, with the
/// schedule of its steps if it has one.
struct ActiveRun<'a, E, R> {
    pair: &'a mut E,
    header: &'a RunHeader,
    run: R,
    sink: &'a mut dyn EventSink,
    cancel: Cancel,
    started: Instant,
    /// In a lab: the process that reports on its emulated links.
    lab: Option<lab::Holder>,
    /// The verdict on the links during the last pass, or during the last simultaneous passes.
    links: Option<Verdict>,
    /// The first error of the last step.
    error: Option<ControlError>,
}

/// What a run records.
trait Recording {
    /// The events since the last call.
    fn events(&mut self) -> Vec<Event>;
    /// Makes the outcomes of all open cells, and the findings.
    fn close(&mut self, early: bool);
}

impl Recording for ScheduledRun {
    fn events(&mut self) -> Vec<Event> {
        self.events()
    }

    fn close(&mut self, early: bool) {
        self.close(early);
    }
}

impl Recording for RunState {
    fn events(&mut self) -> Vec<Event> {
        self.events()
    }

    fn close(&mut self, early: bool) {
        self.close(early);
    }
}

/// Makes the measurement of `request`. After an error as well, the sinks get an outcome for each cell that has a trial, and the
/// ending. The error is returned, too.
pub async fn run(
    pair: &mut Pair,
    request: &RunRequest,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let RunRequest { header, schedule } = request;
    pair.metrics = Some(Metrics::of(header, &pair.near, pair.far.as_ref()));
    let mut run = ActiveRun::new(pair, header, ScheduledRun::new(header, schedule, methods(header)), sink, cancel);
    let mut result = run.begin();
    if result.is_ok() {
        result = run.drive().await;
    }
    if schedule.kind().is_paired()
        && let Some(metrics) = &run.pair.metrics
        && let Some(statement) = metrics.statement()
    {
        run.run.metrics(statement, metrics.may_carry_over());
    }
    let (clocks, drift) = clocks_after(run.pair, header.clocks, result.is_ok()).await;
    run.end(result, clocks, drift)
}

/// How the transport of a run can send and receive.
fn methods(header: &RunHeader) -> Methods {
    let transport =
        header.cells.first().and_then(|cell| engine::transport::transport(cell.spec.transport.as_str()).ok());
    transport.map_or_else(Methods::default, |transport| Methods {
        sends: transport.sends().to_vec(),
        receives: transport.receives().to_vec(),
    })
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
    fleet: &mut ConnectedFleet,
    header: &RunHeader,
    plan: &PlanSchedule,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let single_ended = engine::transport::transports().filter(|one| one.capabilities().single_ended);
    let single_ended = single_ended.map(|one| one.name().to_owned()).collect();
    let spent = Duration::from_nanos(plan.spent_ns());
    let schedule = ScheduledRun::plan(header, plan.clone(), single_ended, engine::unix_ns());
    let mut run = ActiveRun::new(fleet, header, schedule, sink, cancel);
    run.started = run.started.checked_sub(spent).unwrap_or(run.started);
    let mut result = run.begin();
    if result.is_ok() {
        result = run.drive().await;
    }
    // The settings are reverted after an interrupt and after any error as well.
    let reverted = run.pair.untune().await;
    run.end(result.and(reverted), None, None)
}

impl<'a, E, R: Recording> ActiveRun<'a, E, R> {
    fn new(pair: &'a mut E, header: &'a RunHeader, run: R, sink: &'a mut dyn EventSink, cancel: Cancel) -> Self {
        let (started, lab) = (Instant::now(), lab::Holder::of_this_host());
        Self { pair, header, run, sink, cancel, started, lab, links: None, error: None }
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
        let error = result.as_ref().err().filter(|_| !interrupted).map(Said::say);
        let ending = Ending { how: how.into(), error, duration_ns: self.elapsed_ns(), clocks, drift };
        let ended = self.sink.event(&Event::End(ending.clone()));
        let failure = result.and(closed).and(ended.map_err(ControlError::from)).err();
        (ending, failure)
    }

    /// Nanoseconds since the start of the run.
    fn elapsed_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Remaining nanoseconds of the budget; `None` without one.
    fn left_ns(&self) -> Option<u64> {
        self.header.stopping.budget_ns.map(|budget| budget.saturating_sub(self.elapsed_ns()))
    }

    /// Sends what was recorded to the sinks.
    fn send_events(&mut self) -> Result<(), ControlError> {
        for event in self.run.events() {
            self.sink.event(&event)?;
        }
        Ok(())
    }

    /// Makes the outcomes of all open cells, and the findings.
    fn close(&mut self, early: bool) -> Result<(), ControlError> {
        self.run.close(early);
        self.send_events()
    }

    fn interrupted(&self) -> Result<(), ControlError> {
        if *self.cancel.borrow() { Err(ControlError::Interrupted) } else { Ok(()) }
    }
}

//! A run from its first step to its end. What the steps are is decided by [`schedule::ScheduledRun`].

use std::time::Duration;

use model::{ClockDrift, ClockOffset, Conditions, Ending, Event, LabReport, Phase, RunHeader, Verdict};
use schedule::{Completed, PassResult, Pause, Preparation, RunEnd, ScheduledRun, Step, StepFailure, TestResult, Tests};
use text::{Said, Text, say};

use super::error::DialogueError;
use super::event::{Action, Answer};
use super::fleet::Fleet;
use super::metrics::Metrics;
use super::outside::Outside;
use super::tests_of_step::TestEnded;
use super::work::Work;
use crate::agent::Time;

/// A run to carry out.
#[derive(Debug)]
pub struct RunOrder {
    /// The run as it is recorded.
    pub header: RunHeader,
    /// Its steps.
    pub schedule: ScheduledRun,
    /// The time that earlier parts of it have taken.
    pub spent: Duration,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Conducted {
    /// What ended it before its time.
    pub result: Result<(), DialogueError>,
    /// Settings that were not reverted, because they had changed meanwhile.
    pub left: Vec<Text>,
}

/// A run in progress.
struct Active<'a> {
    fleet: &'a mut Fleet,
    order: RunOrder,
    outside: Outside,
    started: Time,
    /// The verdict on a lab's links during the last tests.
    links: Option<Verdict>,
    /// The first error of the last step.
    error: Option<DialogueError>,
}

impl Fleet {
    /// Carries out a run. After an error as well, an outcome is shown for each cell that has a trial, and the ending; all settings are
    /// reverted.
    pub async fn conduct(&mut self, order: RunOrder) -> Conducted {
        let outside = self.outside.clone();
        let started = outside.now().saturating_sub(order.spent);
        let mut run = Active { fleet: self, order, outside, started, links: None, error: None };
        run.show(Event::Run(run.order.header.clone()));
        let result = run.drive().await;
        run.note_metrics();
        let (clocks, drift) = run.clocks_after(result.is_ok()).await;
        let (result, left) = match run.fleet.untune().await {
            Ok(left) => (result, left),
            Err(error) => (result.and(Err(error)), Vec::new()),
        };
        run.end(&result, clocks, drift);
        Conducted { result, left }
    }
}

impl Active<'_> {
    fn show(&self, event: Event) {
        self.outside.act(Action::Show(Box::new(event)));
    }

    /// Shows what was recorded.
    fn show_recorded(&mut self) {
        for event in self.order.schedule.events() {
            self.show(event);
        }
    }

    /// Nanoseconds since the start of the run.
    fn elapsed_ns(&self) -> u64 {
        self.outside.now().saturating_sub(self.started).as_nanos() as u64
    }

    /// Remaining nanoseconds of the budget; `None` without one.
    fn left_ns(&self) -> Option<u64> {
        self.order.header.stopping.budget_ns.map(|budget| budget.saturating_sub(self.elapsed_ns()))
    }

    /// Carries out the steps of the run until it ends.
    async fn drive(&mut self) -> Result<(), DialogueError> {
        loop {
            let now = self.elapsed_ns();
            let step = self.order.schedule.next(now);
            self.show_recorded();
            let result = match step {
                Step::End(end) => return result(end, self.error.take()),
                step => self.carry_out(step).await,
            };
            if let Some(fault) = self.outside.broken() {
                return Err(DialogueError::Outside(fault));
            }
            if self.outside.is_stopped() {
                self.order.schedule.interrupt();
            }
            let result = result.unwrap_or_else(|failed| Completed::Failed(self.failure(failed)));
            let now = self.elapsed_ns();
            self.order.schedule.completed(result, now);
            self.show_recorded();
        }
    }

    async fn carry_out(&mut self, step: Step) -> Result<Completed, DialogueError> {
        // A run may end after the pause that follows a failed test.
        if !matches!(step, Step::Pause(_)) {
            self.error = None;
        }
        match step {
            Step::Pause(Pause { ns, release }) => {
                if release {
                    self.fleet.release_machines().await?;
                }
                self.fleet.drain()?;
                self.outside.unless_stopped(self.outside.wait(Duration::from_nanos(ns))).await;
                Ok(Completed::Done)
            }
            Step::Prepare(preparation) => self.prepare(preparation).await,
            Step::Run(tests) => Ok(self.make(tests).await),
            Step::End(_) => Ok(Completed::Done),
        }
    }

    async fn prepare(&mut self, wanted: Preparation) -> Result<Completed, DialogueError> {
        let Preparation { hold, reset, settings, forget_paths, conditions } = wanted;
        if hold {
            let outside = self.outside.clone();
            let waits = |name: &str, ahead: u32| {
                let activity = say!("{name} is busy: {ahead} ahead in the queue");
                outside.act(Action::Show(Box::new(Event::Phase(Phase { activity, ..Phase::default() }))));
            };
            let held = self.outside.unless_stopped(self.fleet.hold(waits)).await;
            held.unwrap_or(Err(DialogueError::Interrupted))?;
        }
        if reset && let Some(lent) = self.fleet.lend([0, 1], false) {
            let canceled = lent.pair.cancel_setup().await;
            self.fleet.take_back([0, 1], lent);
            canceled?;
        }
        for (between, settings) in &settings {
            self.fleet.tune(between.hosts, between.single_ended, settings).await?;
        }
        if forget_paths {
            self.forget_paths().await;
        }
        if conditions.is_empty() {
            return Ok(Completed::Done);
        }
        let found: Vec<Conditions> = self.fleet.read_conditions(&conditions).await?;
        let name = |host: &usize| self.fleet.end(*host).map_or_else(|| "a host".to_owned(), |end| end.name.clone());
        Ok(Completed::Conditions(conditions.iter().map(name).zip(found).collect()))
    }

    /// Removes what the kernels know of earlier connections between the first two hosts, where that is possible.
    async fn forget_paths(&mut self) {
        let mut metrics = match (self.fleet.metrics.take(), self.fleet.end(0)) {
            (Some(metrics), _) => metrics,
            (None, Some(near)) => Metrics::of(&self.order.header, near, self.fleet.end(1)),
            (None, None) => return,
        };
        metrics.flush(&self.outside).await;
        self.fleet.metrics = Some(metrics);
    }

    /// Makes simultaneous tests: a lab's report covers all of them, so it is read when all have ended.
    async fn make(&mut self, tests: Tests) -> Completed {
        let recorded = tests.recorded;
        if recorded {
            self.links = None;
            self.outside.ask(Work::BeginLinks).await;
        }
        let (begun_ns, begun_unix_ns) = (self.elapsed_ns(), self.outside.unix_ns());
        let left_ns = self.left_ns();
        let ended = self.fleet.make(tests, left_ns).await;
        let lab = if recorded { self.read_links().await } else { None };
        let links = self.links;
        let mut results = Vec::with_capacity(ended.len());
        for TestEnded { begun_unix_ns: own_begin, duration_ns, result, changes, repeats } in ended {
            let pass = match result {
                Ok(both) => {
                    let (lab, near, far, failure) = (lab.clone(), both.near, both.far, both.failure);
                    Ok(PassResult { begun_ns, duration_ns, lab, links, near, far, failure, repeats })
                }
                Err(error) => Err(self.failure(error)),
            };
            results.push(TestResult { pass, changes, begun_unix_ns: own_begin.unwrap_or(begun_unix_ns) });
        }
        Completed::Tests(results)
    }

    /// The report on the lab's links. Trials that are recorded from now on get its verdict.
    async fn read_links(&mut self) -> Option<LabReport> {
        let report = match self.outside.ask(Work::ReadLinks).await {
            Answer::Links(report) => report.map(|report| *report),
            _ => return None,
        };
        self.links = verdict(report.as_ref());
        report
    }

    /// An error as the schedule takes it. The first one of a step and of the pauses after it is kept: it ends the run if the
    /// schedule does not go on after it. A test that was interrupted because another one failed has no error of its own.
    fn failure(&mut self, error: DialogueError) -> StepFailure {
        let failure = StepFailure { kind: error.kind(), reason: error.say() };
        if matches!(self.error, None | Some(DialogueError::Interrupted)) {
            self.error = Some(error);
        }
        failure
    }

    /// Notes the state of the TCP metrics caches, if trials were compared.
    fn note_metrics(&mut self) {
        if let Some(metrics) = self.fleet.metrics.take()
            && let Some(statement) = metrics.statement()
        {
            self.order.schedule.metrics(statement, metrics.may_carry_over());
        }
    }

    /// The clock offset after a successful run that started with a reading, and the drift. A lost end gives no reading.
    async fn clocks_after(&mut self, well: bool) -> (Option<ClockOffset>, Option<ClockDrift>) {
        let Some(before) = self.order.header.clocks.filter(|_| well) else { return (None, None) };
        let Some(lent) = self.fleet.lend([0, 1], false) else { return (None, None) };
        let after = lent.pair.clocks().await.ok().flatten();
        self.fleet.take_back([0, 1], lent);
        (after, after.and_then(|after| before.drift_to(&after)))
    }

    /// Closes the run.
    fn end(&mut self, result: &Result<(), DialogueError>, clocks: Option<ClockOffset>, drift: Option<ClockDrift>) {
        self.order.schedule.close(result.is_err());
        self.show_recorded();
        let interrupted = matches!(result, Err(DialogueError::Interrupted));
        let how = match result {
            Ok(()) => "finished",
            Err(_) if interrupted => "interrupted",
            Err(_) => "failed",
        };
        let error = result.as_ref().err().filter(|_| !interrupted).map(Said::say);
        self.show(Event::End(Ending { how: how.into(), error, duration_ns: self.elapsed_ns(), clocks, drift }));
    }
}

/// The result of a run that ended so, with the error of its last step.
fn result(end: RunEnd, error: Option<DialogueError>) -> Result<(), DialogueError> {
    match (end, error) {
        (RunEnd::Finished, _) => Ok(()),
        (RunEnd::Failed, Some(error)) => Err(error),
        (RunEnd::Interrupted | RunEnd::Failed, _) => Err(DialogueError::Interrupted),
        (RunEnd::Unmet { what, waited_ns }, _) => {
            Err(DialogueError::Unmet { what, waited: model::units::seconds(waited_ns as f64) })
        }
        (RunEnd::CutShort { what, reason }, _) => Err(DialogueError::Trial { address: what.into(), reason }),
    }
}

/// The verdict of a lab's report on its trials. A lab without a report is not assumed to have been on time.
fn verdict(report: Option<&LabReport>) -> Option<Verdict> {
    match report {
        None => Some(Verdict::EmulatorUnreported),
        Some(report) => analysis::emulator_late(report).then_some(Verdict::EmulatorLate),
    }
}

#[cfg(test)]
mod tests {
    use model::EmulatedDirection;

    use super::*;

    #[test]
    fn a_lab_without_a_report_is_not_assumed_on_time() {
        assert_eq!(verdict(None), Some(Verdict::EmulatorUnreported));
        let direction =
            EmulatedDirection { late_packets: 500, late_p99_ns: Some(20_000), ..EmulatedDirection::default() };
        let mut report = LabReport { directions: vec![direction], ..LabReport::default() };
        assert_eq!(verdict(Some(&report)), None);
        report.directions[0].late_p99_ns = Some(2_000_000);
        assert_eq!(verdict(Some(&report)), Some(Verdict::EmulatorLate));
    }
}

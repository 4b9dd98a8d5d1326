//! Carries out the steps of a run between its ends. What the steps are is decided by [`schedule::Run`].

use std::future::Future;
use std::time::Duration;

use model::{BothEnds, Change, Conditions, EventSink, HostSettings, Leg, RttTally, Spec};
use schedule::{
    Between, Completed, FailureKind, PassResult, RunEnd, ScheduledRun, Step, StepFailure, TestRequest, TestResult,
};

use super::pass::cancelled;
use super::{ActiveRun, Cancel};
use text::Said;

use crate::ControlError;

/// One of several simultaneous tests that has ended.
pub(super) struct TestEnded {
    /// Wall-clock time at its start, ns since the Unix epoch, if it is not that of all tests.
    pub(super) begun_unix_ns: Option<u64>,
    /// From the start of all tests to its end, ns.
    pub(super) duration_ns: u64,
    pub(super) result: Result<BothEnds, ControlError>,
    /// Changes of its hosts' settings.
    pub(super) changes: [Vec<Change>; 2],
    /// See [`PassResult::repeats`].
    pub(super) repeats: Vec<usize>,
}

/// The ends of a run: they carry out its steps. Each schedule uses some of the steps, and each kind of ends has those that its
/// schedules use.
pub(super) trait Ends {
    /// Reads messages that have arrived from hosts that do nothing.
    fn drain(&mut self) -> Result<(), ControlError> {
        Ok(())
    }

    /// Prepares the hosts for a trial of `spec`; not part of the trial's time.
    fn prepare(&mut self, _spec: &Spec) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }

    /// One trial over fresh connections, or with `no_loss` a search. `left_ns` is the rest of the budget.
    fn trial(
        &mut self,
        _number: u32,
        _spec: &Spec,
        _left_ns: Option<u64>,
        _sink: &mut dyn EventSink,
        _cancel: &mut Cancel,
    ) -> impl Future<Output = Result<BothEnds, ControlError>> {
        async { Err(unsupported("single trials")) }
    }

    /// One pass of several legs; with `near_only` the near end measures alone.
    fn pass(
        &mut self,
        _number: u32,
        _spec: &Spec,
        _legs: &[Leg],
        _near_only: bool,
        _sink: &mut dyn EventSink,
        _cancel: &mut Cancel,
    ) -> impl Future<Output = Result<BothEnds, ControlError>> {
        async { Err(unsupported("passes over several sizes")) }
    }

    /// The round trips of the path without load; `None` if it cannot be probed.
    fn idle(
        &mut self,
        _spec: &Spec,
        _between: Between,
        _sink: &mut dyn EventSink,
        _cancel: &mut Cancel,
    ) -> impl Future<Output = Result<Option<RttTally>, ControlError>> {
        async { Ok(None) }
    }

    /// Removes what the kernels' TCP metrics caches know of earlier connections, where that is possible.
    fn flush_metrics(&mut self) -> impl Future<Output = ()> {
        async {}
    }

    /// Makes both ends drop what is left of a failed set-up.
    fn reset(&mut self) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }

    /// Has the machines of all hosts; the sink learns of the queues.
    fn hold(&mut self, _sink: &mut dyn EventSink) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }

    /// Reverts all settings and lets others have the machines.
    fn release(&mut self) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }

    /// Applies settings to hosts.
    fn tune(&mut self, _hosts: &[(Between, HostSettings)]) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }

    /// The names and conditions of these hosts.
    fn conditions(
        &mut self,
        _hosts: &[usize],
    ) -> impl Future<Output = Result<Vec<(String, Conditions)>, ControlError>> {
        async { Ok(Vec::new()) }
    }

    /// Makes tests at the same time, with live readings or without.
    fn together(
        &mut self,
        _first: u32,
        _tests: Vec<TestRequest>,
        _live: bool,
        _sink: &mut dyn EventSink,
        _cancel: &mut Cancel,
    ) -> impl Future<Output = Result<Vec<TestEnded>, ControlError>> {
        async { Err(unsupported("simultaneous tests")) }
    }
}

/// A step that no schedule of these ends has.
pub(super) fn unsupported(what: &str) -> ControlError {
    ControlError::Trial {
        address: "this run".into(),
        reason: format!("{what} are not possible with these ends").into(),
    }
}

impl<E: Ends> ActiveRun<'_, E, ScheduledRun> {
    /// Carries out the steps of the run until it ends.
    pub(super) async fn drive(&mut self) -> Result<(), ControlError> {
        loop {
            let now = self.elapsed_ns();
            let step = self.run.next(now);
            self.send_events()?;
            let result = match step {
                Step::End(end) => return result(end, self.error.take()),
                step => self.carry_out(step).await,
            };
            if *self.cancel.borrow() {
                self.run.interrupt();
            }
            let result = result.unwrap_or_else(|failed| Completed::Failed(self.failure(failed)));
            let now = self.elapsed_ns();
            self.run.completed(result, now);
            self.send_events()?;
        }
    }

    async fn carry_out(&mut self, step: Step) -> Result<Completed, ControlError> {
        self.error = None;
        match step {
            Step::Pause(ns) => {
                self.pair.drain()?;
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_nanos(ns)) => {}
                    () = cancelled(&mut self.cancel) => {}
                }
            }
            Step::Hold => self.pair.hold(self.sink).await?,
            Step::Release => self.pair.release().await?,
            Step::Tune(hosts) => self.pair.tune(&hosts).await?,
            Step::Conditions(hosts) => return Ok(Completed::Conditions(self.pair.conditions(&hosts).await?)),
            Step::Together { first, tests, warm_up } => return self.together(first, tests, warm_up).await,
            Step::FlushMetrics => self.pair.flush_metrics().await,
            Step::Reset => self.pair.reset().await?,
            Step::Idle { spec, between } => {
                let found = self.pair.idle(&spec, between, self.sink, &mut self.cancel).await?;
                return Ok(Completed::Idle(found));
            }
            Step::Trial { number, spec } => {
                self.pair.prepare(&spec).await?;
                let left_ns = self.left_ns();
                self.begin_links();
                let begun = self.elapsed_ns();
                let pass = self.pair.trial(number, &spec, left_ns, self.sink, &mut self.cancel).await?;
                return Ok(self.passed(begun, pass));
            }
            Step::Pass { number, spec, legs, near_only } => {
                self.begin_links();
                let begun = self.elapsed_ns();
                let pass = self.pair.pass(number, &spec, &legs, near_only, self.sink, &mut self.cancel).await?;
                return Ok(self.passed(begun, pass));
            }
            Step::End(_) => {}
        }
        Ok(Completed::Done)
    }

    /// Simultaneous tests: a lab's report covers all of them, so it is read when all have ended.
    async fn together(
        &mut self,
        first: u32,
        tests: Vec<TestRequest>,
        warm_up: bool,
    ) -> Result<Completed, ControlError> {
        if !warm_up {
            self.begin_links();
        }
        let (begun_ns, begun_unix_ns) = (self.elapsed_ns(), engine::unix_ns());
        let ended = self.pair.together(first, tests, !warm_up, self.sink, &mut self.cancel).await?;
        let lab = if warm_up { None } else { self.read_links() };
        let links = self.links;
        let mut results = Vec::with_capacity(ended.len());
        for TestEnded { begun_unix_ns: own_begin, duration_ns, result, changes, repeats } in ended {
            let pass = match result {
                Ok(BothEnds { near, far, failure }) => {
                    Ok(PassResult { begun_ns, duration_ns, lab: lab.clone(), links, near, far, failure, repeats })
                }
                Err(error) => Err(self.failure(error)),
            };
            results.push(TestResult { pass, changes, begun_unix_ns: own_begin.unwrap_or(begun_unix_ns) });
        }
        Ok(Completed::Together(results))
    }

    /// An error as the schedule takes it. The first one since the last step is kept: it ends the run if the schedule does not go
    /// on after it. A test that was interrupted because another one failed has no error of its own.
    fn failure(&mut self, error: ControlError) -> StepFailure {
        let failure = StepFailure { kind: kind(&error), reason: error.say() };
        if matches!(self.error, None | Some(ControlError::Interrupted)) {
            self.error = Some(error);
        }
        failure
    }

    /// The result of a pass that has just ended.
    fn passed(&mut self, begun_ns: u64, pass: BothEnds) -> Completed {
        let duration_ns = self.elapsed_ns().saturating_sub(begun_ns);
        let lab = self.read_links();
        let BothEnds { near, far, failure } = pass;
        let (links, repeats) = (self.links, Vec::new());
        Completed::Pass(Box::new(PassResult { begun_ns, duration_ns, lab, links, near, far, failure, repeats }))
    }
}

/// The result of a run that ended so, with the error of its last step.
fn result(end: RunEnd, error: Option<ControlError>) -> Result<(), ControlError> {
    match (end, error) {
        (RunEnd::Finished, _) => Ok(()),
        (RunEnd::Failed, Some(error)) => Err(error),
        (RunEnd::Interrupted | RunEnd::Failed, _) => Err(ControlError::Interrupted),
        (RunEnd::Unmet { what, waited_ns }, _) => {
            Err(ControlError::Unmet { what, waited: model::units::seconds(waited_ns as f64) })
        }
        (RunEnd::CutShort { what, reason }, _) => Err(ControlError::Trial { address: what.into(), reason }),
    }
}

/// What an error is a failure of.
fn kind(error: &ControlError) -> FailureKind {
    match error {
        ControlError::Setup { .. } | ControlError::Refused { .. } | ControlError::Engine(_) => FailureKind::Setup,
        ControlError::Tune { .. } | ControlError::Trial { .. } => FailureKind::Trial,
        // It may have ended while it was asked for the proof.
        ControlError::Unproven { .. }
        | ControlError::Lost { .. }
        | ControlError::LostBefore { .. }
        | ControlError::Unreachable { .. }
        | ControlError::NoAgent { .. }
        | ControlError::NoGreeting { .. } => FailureKind::Host,
        ControlError::Interrupted => FailureKind::Interrupted,
        _ => FailureKind::Run,
    }
}

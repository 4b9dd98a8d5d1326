//! Carries out the steps of a run between its ends. What the steps are is decided by [`schedule::Run`].

use std::future::Future;
use std::time::Duration;

use model::{EventSink, RttTally, Spec};
use schedule::{Completed, End as RunEnd, EndResult, Failure, FailureKind, Leg, PassResult, RatePass, Run, Step};

use super::{ActiveRun, Cancel};
use crate::ControlError;
use crate::proto::message::{Done, WireLeg};

impl From<Done> for EndResult {
    fn from(done: Done) -> Self {
        Self { tallies: done.tallies, host: done.host, overlapped_by: done.overlapped_by }
    }
}

impl From<Leg> for WireLeg {
    fn from(leg: Leg) -> Self {
        Self { block: leg.block, reply: leg.reply, stop: leg.stop, expected_ns: leg.expected_ns }
    }
}

/// The ends of a run: what carries out its steps.
pub(super) trait Ends {
    /// Prepares the hosts for a trial of `spec`; not part of the trial's time.
    fn prepare(&mut self, _spec: &Spec) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }

    /// One trial over fresh connections, or with `no_loss` a search. `left_ns` is the rest of the budget.
    fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        left_ns: Option<u64>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<RatePass, ControlError>>;

    /// One pass of several legs; with `near_only` the near end measures alone.
    fn pass(
        &mut self,
        number: u32,
        spec: &Spec,
        legs: &[Leg],
        near_only: bool,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<RatePass, ControlError>>;

    /// The round trips of the path without load.
    fn idle(
        &mut self,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<Option<RttTally>, ControlError>>;

    /// Removes what the kernels' TCP metrics caches know of earlier connections, where that is possible.
    fn flush_metrics(&mut self) -> impl Future<Output = ()> {
        async {}
    }

    /// Makes both ends drop what is left of a failed set-up.
    fn reset(&mut self, _spec: &Spec) -> impl Future<Output = Result<(), ControlError>> {
        async { Ok(()) }
    }
}

impl<E: Ends> ActiveRun<'_, E, Run> {
    /// Carries out the steps of the run until it ends.
    pub(super) async fn drive(&mut self) -> Result<(), ControlError> {
        let mut error = None;
        loop {
            let now = self.elapsed_ns();
            let step = self.run.next(now);
            self.send_events()?;
            let result = match step {
                Step::End(end) => return result(end, error),
                step => self.carry_out(step).await,
            };
            if *self.cancel.borrow() {
                self.run.interrupt();
            }
            let result = result.unwrap_or_else(|failed| {
                let failure = Failure { kind: kind(&failed), reason: failed.to_string() };
                error = Some(failed);
                Completed::Failed(failure)
            });
            let now = self.elapsed_ns();
            self.run.completed(result, now);
            self.send_events()?;
        }
    }

    async fn carry_out(&mut self, step: Step) -> Result<Completed, ControlError> {
        match step {
            Step::Pause(ns) => tokio::time::sleep(Duration::from_nanos(ns)).await,
            Step::FlushMetrics => self.pair.flush_metrics().await,
            Step::Reset(spec) => self.pair.reset(&spec).await?,
            Step::Idle(spec) => {
                return Ok(Completed::Idle(self.pair.idle(&spec, self.sink, &mut self.cancel).await?));
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

    /// The result of a pass that has just ended.
    fn passed(&mut self, begun_ns: u64, pass: RatePass) -> Completed {
        let duration_ns = self.elapsed_ns().saturating_sub(begun_ns);
        let lab = self.read_links();
        let RatePass { near, far, failure } = pass;
        Completed::Pass(Box::new(PassResult { begun_ns, duration_ns, lab, links: self.links, near, far, failure }))
    }
}

/// The result of a run that ended so, with the error of its last step.
fn result(end: RunEnd, error: Option<ControlError>) -> Result<(), ControlError> {
    match (end, error) {
        (RunEnd::Finished, _) => Ok(()),
        (RunEnd::Failed, Some(error)) => Err(error),
        (RunEnd::Interrupted | RunEnd::Failed, _) => Err(ControlError::Interrupted),
        (RunEnd::CutShort { what, reason }, _) => Err(ControlError::Trial { address: what.into(), reason }),
    }
}

/// What an error is a failure of.
fn kind(error: &ControlError) -> FailureKind {
    match error {
        ControlError::Setup { .. } | ControlError::Refused { .. } | ControlError::Engine(_) => FailureKind::Setup,
        ControlError::Tune { .. } | ControlError::Trial { .. } => FailureKind::Trial,
        ControlError::Interrupted => FailureKind::Interrupted,
        _ => FailureKind::Run,
    }
}

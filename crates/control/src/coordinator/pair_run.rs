//! The steps of a run between two agents.

use model::{BothEnds, Event, EventSink, Leg, Phase, RttTally, Spec};
use schedule::{Between, IdleProbe, LossSearch};

use super::common_start::CommonStart;
use super::drive::Ends;
use super::{Cancel, Pair};
use crate::ControlError;

impl Ends for Pair {
    async fn prepare(&mut self, spec: &Spec) -> Result<(), ControlError> {
        self.apply(&spec.settings).await
    }

    async fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        left_ns: Option<u64>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        self.trial_at((number, spec), left_ns, &mut None, sink, cancel).await
    }

    async fn pass(
        &mut self,
        number: u32,
        spec: &Spec,
        legs: &[Leg],
        near_only: bool,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        let far = if near_only { self.far.take() } else { None };
        let result = Pair::pass(self, number, spec, legs, &mut None, sink, cancel).await;
        if near_only {
            self.far = far;
        }
        result
    }

    async fn idle(
        &mut self,
        spec: &Spec,
        _between: Between,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<Option<RttTally>, ControlError> {
        self.idle_round_trips(spec, sink, cancel).await
    }

    async fn flush_metrics(&mut self) {
        if let Some(metrics) = &mut self.metrics {
            metrics.flush().await;
        }
    }

    async fn reset(&mut self) -> Result<(), ControlError> {
        self.cancel_setup().await
    }
}

impl Pair {
    /// One trial over fresh connections; with `no_loss`, a search for the highest rate without loss. Its first pass begins at the
    /// common start, if it has one.
    pub(super) async fn trial_at(
        &mut self,
        (number, spec): (u32, &Spec),
        left_ns: Option<u64>,
        start: &mut Option<CommonStart>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        if !spec.no_loss {
            return Pair::pass(self, number, spec, &[Leg::of(spec)], start, sink, cancel).await;
        }
        let mut search = LossSearch::new(spec, number);
        while let Some((number, spec, leg)) = search.next() {
            if *cancel.borrow() {
                return Err(ControlError::Interrupted);
            }
            let phase = Phase { activity: search.activity(), cells_done: 0, cells: 1, remaining_ns: left_ns };
            sink.event(&Event::Phase(phase))?;
            search.completed(Pair::pass(self, number, &spec, &[leg], start, sink, cancel).await?);
        }
        Ok(search.found())
    }

    /// The probe's round trips without load, for a spec with a probe.
    pub(super) async fn idle_round_trips(
        &mut self,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<Option<RttTally>, ControlError> {
        let mut probe = IdleProbe::new(spec);
        while let Some((spec, leg)) = probe.next() {
            let result = Pair::pass(self, u32::MAX, &spec, &[leg], &mut None, sink, cancel).await?;
            probe.completed(result.near);
        }
        Ok(probe.found())
    }
}

//! The steps of a run between two agents.

use model::{BothEnds, Event, EventSink, Leg, Phase, RttTally, RunHeader, Spec};
use schedule::{Between, IdleProbe, LossSearch};

use super::common_start::CommonStart;
use super::drive::Ends;
use super::metrics::Metrics;
use super::{Cancel, Pair};
use crate::ControlError;

/// Two agents, and the TCP metrics caches of their hosts.
pub(super) struct PairRun<'a> {
    pub(super) pair: &'a mut Pair,
    pub(super) metrics: Metrics,
}

impl<'a> PairRun<'a> {
    pub(super) fn new(pair: &'a mut Pair, header: &RunHeader) -> Self {
        let metrics = Metrics::of(header, pair);
        Self { pair, metrics }
    }
}

impl Ends for PairRun<'_> {
    async fn prepare(&mut self, spec: &Spec) -> Result<(), ControlError> {
        self.pair.apply(&spec.settings).await
    }

    async fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        left_ns: Option<u64>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        self.pair.trial(number, spec, left_ns, &mut None, sink, cancel).await
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
        let far = if near_only { self.pair.far.take() } else { None };
        let result = self.pair.pass(number, spec, legs, &mut None, sink, cancel).await;
        if near_only {
            self.pair.far = far;
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
        self.pair.idle(spec, sink, cancel).await
    }

    async fn flush_metrics(&mut self) {
        self.metrics.flush().await;
    }

    async fn reset(&mut self) -> Result<(), ControlError> {
        self.pair.cancel_setup().await
    }
}

impl Pair {
    /// One trial over fresh connections; with `no_loss`, a search for the highest rate without loss. Its first pass begins at the
    /// common start, if it has one.
    pub(super) async fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        left_ns: Option<u64>,
        start: &mut Option<CommonStart>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        if !spec.no_loss {
            return self.pass(number, spec, &[Leg::of(spec)], start, sink, cancel).await;
        }
        let mut search = LossSearch::new(spec, number);
        while let Some((number, spec, leg)) = search.next() {
            if *cancel.borrow() {
                return Err(ControlError::Interrupted);
            }
            let phase = Phase { activity: search.activity(), cells_done: 0, cells: 1, remaining_ns: left_ns };
            sink.event(&Event::Phase(phase))?;
            search.completed(self.pass(number, &spec, &[leg], start, sink, cancel).await?);
        }
        Ok(search.found())
    }

    /// The probe's round trips without load, for a spec with a probe.
    pub(super) async fn idle(
        &mut self,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<Option<RttTally>, ControlError> {
        let mut probe = IdleProbe::new(spec);
        while let Some((spec, leg)) = probe.next() {
            let result = self.pass(u32::MAX, &spec, &[leg], &mut None, sink, cancel).await?;
            probe.completed(result.near);
        }
        Ok(probe.found())
    }
}

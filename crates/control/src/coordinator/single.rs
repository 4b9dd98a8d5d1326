//! One cell, trial after trial, until it has converged or the budget is spent.

use std::time::Duration;

use model::{Capture, CaptureSpec, Cell, EndPass, Event, EventSink, Pass, Phase, Responsiveness, RttTally, Spec, Stop};

use super::noloss::Search;
use super::{ActiveRun, Cancel, Pair};
use crate::ControlError;
use crate::proto::message::{Done, WireLeg};

/// Pause between two trials, in which queues empty and timers expire.
pub(super) const GAP: Duration = Duration::from_millis(10);

/// Longest probing of the path without load; a shorter trial's length is used.
const IDLE_NS: u64 = 1_000_000_000;
/// If that gives too few samples for a median: this many round trips of the path plus the time for enough probes, up to a limit.
const IDLE_ROUND_TRIPS: u64 = 3;
const MAX_IDLE_NS: u64 = 10_000_000_000;

/// The probe's round trips without load, for a spec with a probe.
pub(super) async fn idle(
    pair: &mut Pair,
    spec: &Spec,
    sink: &mut dyn EventSink,
    cancel: &mut Cancel,
) -> Result<Option<RttTally>, ControlError> {
    let Some(probe) = spec.probing() else { return Ok(None) };
    let time = if let Stop::TimeNs(ns) = spec.stop { ns.min(IDLE_NS) } else { IDLE_NS };
    let found = probed(pair, &probe, time, sink, cancel).await?;
    match &found {
        Some(rtt) if rtt.count < Responsiveness::MIN_SAMPLES => {
            let probes = Responsiveness::MIN_SAMPLES * 1_000_000_000 / u64::from(spec.probe.unwrap_or(1)).max(1);
            let longer = (rtt.p50_ns * IDLE_ROUND_TRIPS + probes).min(MAX_IDLE_NS);
            let second = probed(pair, &probe, longer, sink, cancel).await?;
            Ok(second.filter(|second| second.count > rtt.count).or(found))
        }
        _ => Ok(found),
    }
}

/// Round trips of a probe for about a time.
async fn probed(
    pair: &mut Pair,
    probe: &Spec,
    ns: u64,
    sink: &mut dyn EventSink,
    cancel: &mut Cancel,
) -> Result<Option<RttTally>, ControlError> {
    let probe = Spec { stop: Stop::TimeNs(ns), ..probe.clone() };
    let leg = WireLeg { block: probe.block, reply: probe.reply_bytes(), stop: probe.stop, expected_ns: 0 };
    let result = pair.pass(u32::MAX, &probe, &[leg], sink, cancel).await?;
    let tally = result.near.tallies.into_iter().next();
    Ok(tally.and_then(|tally| RttTally::weighted(tally.rtt?.histogram?, tally.transactions)))
}

impl ActiveRun<'_> {
    pub(super) async fn single(&mut self) -> Result<(), ControlError> {
        let Some(cell) = self.header.cells.first().cloned() else { return Ok(()) };
        let rule = self.header.stopping.clone();
        if cell.spec.probe.is_some() {
            let activity = "round trips without load".into();
            self.sink.event(&Event::Phase(Phase { activity, cells_done: 0, cells: 1, remaining_ns: None }))?;
        }
        let idle = idle(self.pair, &cell.spec, self.sink, &mut self.cancel).await?;
        self.interrupted()?;
        self.cells.idle(cell.id, idle);
        loop {
            let begun = self.elapsed_ns();
            self.phase(begun)?;
            self.one_trial(&cell).await?;
            let took = self.elapsed_ns() - begun;
            let trials = self.cells.open().next().map_or(0, super::cells::CellState::trials) as u32;
            if self.cells.is_converged(cell.id) || trials >= rule.max_trials || self.left_ns() < took {
                return Ok(());
            }
            tokio::time::sleep(GAP).await;
        }
    }

    /// One trial of `cell` over fresh connections.
    pub(super) async fn one_trial(&mut self, cell: &Cell) -> Result<(), ControlError> {
        let spec = &cell.spec;
        self.pair.apply(&spec.settings).await?;
        let leg = WireLeg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
        self.begin_links();
        let begun = self.elapsed_ns();
        let result = if spec.no_loss {
            let left_ns = Some(self.left_ns()).filter(|left| *left < u64::MAX);
            let (pair, sink, cancel) = (&mut *self.pair, &mut *self.sink, &mut self.cancel);
            Search { pair, spec, number: self.passes, left_ns, sink, cancel }.run().await?
        } else {
            self.pair.pass(self.passes, spec, &[leg], self.sink, &mut self.cancel).await?
        };
        let failure = result.failure;
        self.record_pass(begun, result.near, result.far, &[(Some(cell.id), 0)])?;
        self.interrupted()?;
        match failure {
            Some(reason) => Err(ControlError::Trial { address: "the trial was cut short".into(), reason }),
            None => Ok(()),
        }
    }

    /// Makes the trials of `cells` (`None` for a warm-up leg) from both ends' tallies and sends them to the sinks.
    pub(super) fn record_pass(
        &mut self,
        begun_ns: u64,
        near: Done,
        far: Done,
        cells: &[(Option<u32>, u32)],
    ) -> Result<(), ControlError> {
        let single_ended = far.tallies.is_empty() && self.pair.far.is_none();
        let pass = self.ended_pass(begun_ns);
        self.record(pass, near, far, cells, single_ended)
    }
}

impl<E> ActiveRun<'_, E> {
    /// Reports the progress of the run.
    pub(super) fn phase(&mut self, now_ns: u64) -> Result<(), ControlError> {
        let left = self.cells.trials_left();
        let each = if self.passes == 0 { None } else { Some(now_ns / u64::from(self.passes)) };
        let left_ns = each.map(|each| (each * u64::from(left)).min(self.left_ns()));
        let activity = format!("trial {}", self.passes + 1);
        Ok(self.sink.event(&Event::Phase(Phase { activity, cells_done: 0, cells: 1, remaining_ns: left_ns }))?)
    }

    /// As [`record_pass`](ActiveRun::record_pass), for a partly filled pass, after the lab's links were read. Adds the hosts'
    /// activity and overlapping measurements.
    pub(super) fn record(
        &mut self,
        mut pass: Pass,
        near: Done,
        far: Done,
        cells: &[(Option<u32>, u32)],
        single_ended: bool,
    ) -> Result<(), ControlError> {
        let overlapped_by = near.overlapped_by.max(far.overlapped_by);
        // A transport with one end uses no link.
        self.cells.links = self.links.filter(|_| !single_ended);
        let mut far_tallies = far.tallies.into_iter();
        let mut interrupted_leg = false;
        for ((cell, position), near) in cells.iter().zip(near.tallies) {
            let far = match far_tallies.next() {
                Some(far) => far,
                None if single_ended => model::EndTally::default(),
                // The far end did not start this leg, so there is no trial.
                None => break,
            };
            interrupted_leg |= near.cut_short || far.cut_short;
            if let Some(cell) = cell
                && let Some(trial) = self.cells.trial(*cell, pass.index, *position, near, far, overlapped_by > 0)
            {
                self.sink.event(&Event::Trial(trial))?;
            }
            if interrupted_leg {
                break;
            }
        }
        // A plan's conditions and settings were read before the pass.
        let [before_near, before_far] = [std::mem::take(&mut pass.near), std::mem::take(&mut pass.far)];
        let (conditions, settings) = (before_near.conditions, before_near.settings);
        pass.near = EndPass { conditions, settings, ..near.host };
        let (conditions, settings) = (before_far.conditions, before_far.settings);
        pass.far = EndPass { conditions, settings, ..far.host };
        pass.overlapped_by = overlapped_by;
        let wanted = cells.iter().find_map(|(cell, _)| self.header.cells.get((*cell)? as usize)?.spec.capture.as_ref());
        if let Some(wanted) = wanted {
            [&mut pass.near, &mut pass.far]
                .into_iter()
                .take(if single_ended { 1 } else { 2 })
                .for_each(|end| note_missing(end, wanted));
        }
        for (stolen, host) in self.stolen.iter_mut().zip([&pass.near, &pass.far]) {
            stolen.add(host.cpu.as_ref());
        }
        self.cells.pass(&pass);
        Ok(self.sink.event(&Event::Pass(pass))?)
    }
}

/// Notes a missing capture: an agent that reports none for a request is too old for it.
fn note_missing(end: &mut EndPass, wanted: &CaptureSpec) {
    end.capture.get_or_insert_with(|| Capture {
        snaplen: wanted.snaplen,
        missing: Some("this end's agent is too old to capture packets: update thru there".into()),
        ..Capture::default()
    });
}

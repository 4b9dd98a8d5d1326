//! One cell whose far end is another program. A driver for that program makes the trials; the schedule, the stop rule and the
//! outcome are those of any cell.

use std::future::Future;

use model::{Ending, Event, EventSink, Phase, RunHeader, Spec};

use super::cells::CellState;
use super::single::GAP;
use super::{ActiveRun, Cancel, ScheduleKind};
use crate::ControlError;
use crate::proto::message::Done;

/// Makes trials with another program at the far end.
pub trait Foreign {
    /// One trial over fresh connections: the results of the near end, and of the far end as the program reported it.
    fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<[Done; 2], ControlError>>;

    /// All points of a curve over one control connection.
    fn curve(
        &mut self,
        points: &[Spec],
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<ForeignCurve, ControlError>>;
}

/// The result of a curve with another program.
pub struct ForeignCurve {
    /// Number of trials of each point.
    pub trials: Vec<usize>,
    /// The near and the far end's results, with the tallies of all these trials, point after point.
    pub ends: [Done; 2],
}

/// Measures the first cell of `header` with `foreign` until it has converged, or all cells once if they are the points of a
/// curve. After an error as well, the sinks get an outcome for each cell that has a trial, and the ending. The error is
/// returned, too.
pub async fn run_foreign<F: Foreign>(
    foreign: &mut F,
    header: &RunHeader,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    let curve = header.cells.first().is_some_and(|cell| cell.spec.is_point());
    let kind = if curve { ScheduleKind::Curve } else { ScheduleKind::Single };
    let mut run = ActiveRun::new(foreign, header, kind, sink, cancel);
    let mut result = run.begin();
    if result.is_ok() {
        result = if curve { run.foreign_curve().await } else { run.foreign().await };
    }
    run.end(result, None, None)
}

impl<F: Foreign> ActiveRun<'_, F> {
    async fn foreign(&mut self) -> Result<(), ControlError> {
        let Some(cell) = self.header.cells.first().cloned() else { return Ok(()) };
        loop {
            let begun = self.elapsed_ns();
            self.phase(begun)?;
            self.begin_links();
            let [near, far] = self.pair.trial(self.passes, &cell.spec, self.sink, &mut self.cancel).await?;
            let failure = near.failure.clone().or_else(|| far.failure.clone());
            let pass = self.ended_pass(begun);
            self.record(pass, near, far, &[(Some(cell.id), 0)], false)?;
            self.interrupted()?;
            if let Some(reason) = failure {
                return Err(ControlError::Trial { address: "the trial was cut short".into(), reason });
            }
            let took = self.elapsed_ns() - begun;
            let trials = self.cells.open().next().map_or(0, CellState::trials) as u32;
            if self.cells.is_converged(cell.id) || trials >= self.header.stopping.max_trials || self.left_ns() < took {
                return Ok(());
            }
            tokio::time::sleep(GAP).await;
        }
    }

    /// One control connection, with as many trials as the other program makes.
    async fn foreign_curve(&mut self) -> Result<(), ControlError> {
        let cells = self.header.cells.clone();
        let points: Vec<Spec> = cells.iter().map(|cell| cell.spec.clone()).collect();
        let begun = self.elapsed_ns();
        let phase =
            Phase { activity: "all sizes".into(), cells_done: 0, cells: cells.len() as u32, remaining_ns: None };
        self.sink.event(&Event::Phase(phase))?;
        self.begin_links();
        let ForeignCurve { trials, ends: [near, far] } = self.pair.curve(&points, &mut self.cancel).await?;
        let failure = near.failure.clone();
        let own = cells.iter().zip(&trials).flat_map(|(cell, count)| std::iter::repeat_n(Some(cell.id), *count));
        let positions: Vec<(Option<u32>, u32)> = own.zip(0..).collect();
        let pass = self.ended_pass(begun);
        self.record(pass, near, far, &positions, false)?;
        self.interrupted()?;
        if let Some(reason) = failure {
            return Err(ControlError::Trial { address: "the curve was cut short".into(), reason });
        }
        // NetPIPE's own limit left out the sizes without a trial.
        self.cells.give_up(|_| true);
        Ok(())
    }
}

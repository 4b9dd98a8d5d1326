//! One cell whose far end is another program. A driver for that program makes the trials; the schedule, the stop rule and the
//! outcome are those of any cell.

use std::future::Future;
use std::pin::Pin;

use model::{BothEnds, EndResult, Ending, Event, EventSink, Leg, Pass, Phase, RunHeader, Spec};
use schedule::{Methods, RunState, Schedule, ScheduleKind, ScheduledRun, Unfixed};

use super::drive::Ends;
use super::{ActiveRun, Cancel};
use crate::ControlError;

/// Makes trials with another program at the far end.
pub trait FarProgram {
    /// One trial over fresh connections: the results of the near end, and of the far end as the program reported it.
    fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<[EndResult; 2], ControlError>>;

    /// All points of a curve over one control connection.
    fn curve(
        &mut self,
        points: &[Spec],
        cancel: &mut Cancel,
    ) -> impl Future<Output = Result<ProgramCurve, ControlError>>;
}

/// The result of a curve with another program.
pub struct ProgramCurve {
    /// Number of trials of each point.
    pub trials: Vec<usize>,
    /// The near and the far end's results, with the tallies of all these trials, point after point.
    pub ends: [EndResult; 2],
}

/// A test with another program: its pass, and the number of trials of each leg (empty for one each).
pub(super) type ProgramTest = Result<(BothEnds, Vec<usize>), ControlError>;

/// [`FarProgram`], as the far end of some tests of a plan.
pub(super) trait AnyFarProgram {
    /// One trial of `spec`, or all sizes of a curve, one for each of the `legs`.
    fn test<'a>(
        &'a mut self,
        number: u32,
        spec: &'a Spec,
        legs: &'a [Leg],
        sink: &'a mut dyn EventSink,
        cancel: &'a mut Cancel,
    ) -> Pin<Box<dyn Future<Output = ProgramTest> + 'a>>;
}

impl<F: FarProgram> AnyFarProgram for F {
    fn test<'a>(
        &'a mut self,
        number: u32,
        spec: &'a Spec,
        legs: &'a [Leg],
        sink: &'a mut dyn EventSink,
        cancel: &'a mut Cancel,
    ) -> Pin<Box<dyn Future<Output = ProgramTest> + 'a>> {
        Box::pin(async move {
            let ([near, far], repeats) = if spec.is_point() {
                let points: Vec<Spec> =
                    legs.iter().map(|leg| Spec { block: leg.block, stop: leg.stop, ..spec.clone() }).collect();
                let ProgramCurve { trials, ends } = self.curve(&points, cancel).await?;
                // A program's own limit may have left out the last sizes.
                let unmeasured = legs.len().saturating_sub(trials.len());
                (ends, trials.into_iter().chain(std::iter::repeat_n(0, unmeasured)).collect())
            } else {
                (self.trial(number, spec, sink, cancel).await?, Vec::new())
            };
            let failure = near.failure.as_ref().or(far.failure.as_ref()).cloned();
            Ok((BothEnds { near, far: Some(far), failure }, repeats))
        })
    }
}

/// Measures the first cell of `header` with `program` until it has converged, each cell of a sequence, or all cells once if they are
/// the points of a curve. After an error as well, the sinks get an outcome for each cell that has a trial, and the ending. The error is
/// returned, too.
pub async fn run_with_program<F: FarProgram>(
    program: &mut F,
    header: &RunHeader,
    schedule: &Schedule,
    sink: &mut dyn EventSink,
    cancel: Cancel,
) -> (Ending, Option<ControlError>) {
    if header.cells.first().is_some_and(|cell| cell.spec.is_point()) {
        let state = RunState::new(header, ScheduleKind::Curve);
        let mut run = ActiveRun::new(program, header, state, sink, cancel);
        let mut result = run.begin();
        if result.is_ok() {
            result = run.foreign_curve().await;
        }
        return run.end(result, None, None);
    }
    let mut ends = ProgramRun(program);
    let schedule = match schedule {
        Schedule::Sequence(unfixed) => Schedule::Sequence(*unfixed),
        _ => Schedule::Single(Unfixed::default()),
    };
    let run = ScheduledRun::new(header, &schedule, Methods::default());
    let mut run = ActiveRun::new(&mut ends, header, run, sink, cancel);
    let mut result = run.begin();
    if result.is_ok() {
        result = run.drive().await;
    }
    run.end(result, None, None)
}

/// The steps of a run with another program at the far end: trials only.
struct ProgramRun<'a, F>(&'a mut F);

impl<F: FarProgram> Ends for ProgramRun<'_, F> {
    async fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        _left_ns: Option<u64>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        let [near, far] = self.0.trial(number, spec, sink, cancel).await?;
        let failure = near.failure.as_ref().or(far.failure.as_ref()).cloned();
        Ok(BothEnds { near, far: Some(far), failure })
    }
}

impl<F: FarProgram> ActiveRun<'_, F, RunState> {
    /// One control connection, with as many trials as the other program makes.
    async fn foreign_curve(&mut self) -> Result<(), ControlError> {
        let cells = self.header.cells.clone();
        let points: Vec<Spec> = cells.iter().map(|cell| Spec::clone(&cell.spec)).collect();
        let begun = self.elapsed_ns();
        let phase =
            Phase { activity: "all sizes".into(), cells_done: 0, cells: cells.len() as u32, remaining_ns: None };
        self.sink.event(&Event::Phase(phase))?;
        self.begin_links();
        let ProgramCurve { trials, ends: [near, far] } = self.pair.curve(&points, &mut self.cancel).await?;
        let failure = near.failure.clone();
        let own = cells.iter().zip(&trials).flat_map(|(cell, count)| std::iter::repeat_n(Some(cell.id), *count));
        let positions: Vec<(Option<u32>, u32)> = own.zip(0..).collect();
        let duration_ns = self.elapsed_ns().saturating_sub(begun);
        let pass = Pass { started_ns: begun, duration_ns, lab: self.read_links(), ..Pass::default() };
        let links = self.links;
        self.run.record(pass, near, Some(far), &positions, links);
        self.send_events()?;
        self.interrupted()?;
        if let Some(reason) = failure {
            return Err(ControlError::Trial { address: "the curve was cut short".into(), reason });
        }
        // NetPIPE's own limit left out the sizes without a trial.
        self.run.cells.give_up(|_| true);
        Ok(())
    }
}

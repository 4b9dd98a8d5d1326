//! A curve that another program measures: all sizes in one pass over one control connection, in the program's own order.

use model::{Event, Leg, Pass, Phase};

use crate::state::RunState;
use crate::{Completed, Machine, PassResult, RunEnd, Step};

/// The one pass, or the end after it.
#[derive(Debug)]
pub(crate) enum Whole {
    Pass,
    End(RunEnd),
}

impl Whole {
    fn record(state: &mut RunState, pass: PassResult) -> RunEnd {
        let PassResult { begun_ns, duration_ns, lab, links, near, far, failure, repeats } = pass;
        // NetPIPE makes several trials of each size.
        let own = state.header.cells.iter().zip(&repeats);
        let own = own.flat_map(|(cell, count)| std::iter::repeat_n(Some(cell.id), *count));
        let positions: Vec<(Option<u32>, u32)> = own.zip(0..).collect();
        let pass = Pass { index: state.passes, started_ns: begun_ns, duration_ns, lab, ..Pass::default() };
        state.passes += 1;
        state.record(pass, near, far, &positions, links);
        match (state.interrupted(), failure) {
            (Some(end), _) => end,
            (None, Some(reason)) => RunEnd::CutShort { what: "the curve was cut short", reason },
            (None, None) => {
                // NetPIPE's own limit left out the sizes without a trial.
                state.cells.give_up(|_| true);
                RunEnd::Finished
            }
        }
    }
}

impl Machine for Whole {
    fn next(&mut self, state: &mut RunState, _: u64) -> Step {
        match (&self, state.header.cells.first()) {
            (Self::End(end), _) => Step::End(end.clone()),
            (Self::Pass, None) => Step::End(RunEnd::Finished),
            (Self::Pass, Some(first)) => {
                let (spec, cells) = (first.spec.clone(), state.header.cells.len() as u32);
                let legs = state.header.cells.iter().map(|cell| Leg::of(&cell.spec)).collect();
                let number = state.passes;
                state.event(Event::Phase(Phase {
                    activity: "all sizes".into(),
                    cells_done: 0,
                    cells,
                    remaining_ns: None,
                }));
                Step::pass(number, spec, legs)
            }
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, _: u64) {
        *self = Self::End(match result.alone() {
            Ok(Some(pass)) => Self::record(state, pass),
            Ok(None) => RunEnd::Finished,
            Err(failure) => failure.end(),
        });
    }
}

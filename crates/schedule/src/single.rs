//! One cell, trial after trial, until it has converged or the budget is spent.

use model::{Cell, RunHeader, SplitMix64};

use crate::state::RunState;
use crate::{Between, Completed, End, Machine, Step};

/// Mean pause between two trials, in which queues empty and timers expire, ns.
pub(crate) const GAP_NS: u64 = 10_000_000;

/// One cell in progress.
#[derive(Debug)]
pub(crate) struct Single {
    cell: Option<Cell>,
    at: At,
    /// Start of the trial in progress.
    begun: u64,
    /// Draws the pauses.
    random: SplitMix64,
}

#[derive(Debug)]
enum At {
    Idle,
    Trial,
    Gap,
    End(End),
}

impl Single {
    pub(crate) fn new(header: &RunHeader) -> Self {
        let cell = header.cells.first().cloned();
        let at = match &cell {
            None => At::End(End::Finished),
            Some(cell) if cell.spec.probe.is_some() => At::Idle,
            Some(_) => At::Trial,
        };
        Self { cell, at, begun: 0, random: SplitMix64::new(header.stopping.seed) }
    }

    fn after_trial(&self, state: &RunState, id: u32, now: u64) -> At {
        let trials = state.cells.trials_of(id).len() as u32;
        let over = trials >= state.header.stopping.max_trials || state.left_ns(now) < now - self.begun;
        if over || state.cells.is_converged(id) { At::End(End::Finished) } else { At::Gap }
    }
}

impl Machine for Single {
    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        let Some(cell) = &self.cell else { return Step::End(End::Finished) };
        match &self.at {
            At::Idle => {
                state.phase("round trips without load".into(), None);
                Step::Idle { spec: cell.spec.clone(), between: Between::default() }
            }
            At::Trial => {
                self.begun = now;
                state.trial_phase(now);
                Step::Trial { number: state.passes, spec: cell.spec.clone() }
            }
            // Trials at equal distances would be in step with anything periodic on the path.
            At::Gap => Step::Pause(GAP_NS / 2 + self.random.next_u64() % GAP_NS),
            At::End(end) => Step::End(end.clone()),
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        let Some(id) = self.cell.as_ref().map(|cell| cell.id) else { return };
        let result = match result {
            Completed::Idle(rtt) => {
                state.cells.idle(id, rtt);
                Completed::Done
            }
            other => other,
        };
        let before = state.cells.trials_of(id).len();
        let ended = state.pass(result, &[(Some(id), 0)]);
        self.at = match (ended, &self.at) {
            (Some(end), _) => At::End(end),
            (None, At::Trial) if state.cells.trials_of(id).len() == before => {
                At::End(End::CutShort { what: "the trial", reason: "it gave no result".into() })
            }
            (None, At::Trial) => self.after_trial(state, id, now),
            (None, _) => At::Trial,
        };
    }
}

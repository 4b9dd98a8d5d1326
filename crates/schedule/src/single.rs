//! One cell, trial after trial, until it has converged or the budget is spent.
//!
//! A trial that is too short for its path is followed by one of twice its length, on new connections, until the rate settles.

use model::{Cell, RunHeader, SplitMix64, Stop, Verdict};

use crate::fit::{LONGEST_NS, STEP_NS, Unfixed, with_length};
use crate::idle::IdleProbe;
use crate::state::RunState;
use crate::{Between, Completed, Machine, Preparation, RunEnd, Step};

/// Mean pause between two trials, in which queues empty and timers expire, ns.
pub(crate) const GAP_NS: u64 = 10_000_000;
/// Fewest trials that are worth more than one long one: two give no interval.
const SEVERAL: usize = 3;

/// One cell in progress.
#[derive(Debug)]
pub(crate) struct Single {
    cell: Option<Cell>,
    plan: Unfixed,
    at: At,
    /// Start of the trial in progress.
    begun: u64,
    /// Trials that were followed by a longer one.
    too_short: usize,
    /// Draws the pauses.
    random: SplitMix64,
    /// What it measures, if it is one of several cells.
    name: Option<&'static str>,
    /// Time that the later ones need at least, ns.
    later_ns: u64,
}

#[derive(Debug)]
enum At {
    /// The hosts get the settings of the cell.
    Prepare,
    Idle(Box<IdleProbe>),
    Trial,
    Gap,
    End(RunEnd),
}

impl Single {
    pub(crate) fn new(header: &RunHeader, plan: Unfixed) -> Self {
        Self::of(header.cells.first().cloned(), header.stopping.seed, plan)
    }

    /// One of several cells that are measured one after another.
    pub(crate) fn part(cell: &Cell, seed: u64, plan: Unfixed, name: &'static str, later_ns: u64) -> Self {
        Self { name: Some(name), later_ns, ..Self::of(Some(cell.clone()), seed, plan) }
    }

    fn of(cell: Option<Cell>, seed: u64, plan: Unfixed) -> Self {
        let at = match &cell {
            None => At::End(RunEnd::Finished),
            Some(_) => At::Prepare,
        };
        Self { cell, plan, at, begun: 0, too_short: 0, random: SplitMix64::new(seed), name: None, later_ns: 0 }
    }

    fn after_trial(&mut self, state: &mut RunState, id: u32, now: u64) -> At {
        let (took, left) = (now - self.begun, state.left_ns(now));
        if let Some(settles) = self.lengthened(state, id, took, left) {
            return if settles { At::Gap } else { At::End(RunEnd::Finished) };
        }
        let taken = state.cells.trials_of(id).len() - self.too_short;
        let most = state.header.stopping.max_trials as usize;
        if taken >= most || state.cells.is_converged(id) {
            return At::End(RunEnd::Finished);
        }
        // As many trials as give an interval of their own, or the one that is over, whose series gives it.
        let wanted = SEVERAL.min(most).saturating_sub(taken) as u64;
        let needed = if taken > 1 && wanted > 0 { 0 } else { took * wanted.max(1) };
        if left < needed { At::End(RunEnd::Finished) } else { At::Gap }
    }

    /// If no trial has settled so far: makes the next one longer. Returns whether there is time for it; `None` where the length stays.
    fn lengthened(&mut self, state: &mut RunState, id: u32, took: u64, left: u64) -> Option<bool> {
        let cell = self.cell.as_mut()?;
        let Stop::TimeNs(ns) = cell.spec.stop else { return None };
        let grew = |trial: &model::Trial| trial.verdicts.contains(&Verdict::NotSettled);
        let trials = state.cells.trials_of(id);
        if !self.plan.own_time || ns >= LONGEST_NS || trials.is_empty() || !trials.iter().all(grew) {
            return None;
        }
        let fits = left.saturating_sub(took.saturating_sub(ns)) / STEP_NS * STEP_NS;
        let longer = (2 * ns).min(fits).min(LONGEST_NS);
        // A trial that is hardly longer would not settle either.
        let worth = longer >= ns + ns / 2;
        if worth {
            cell.spec = with_length(&cell.spec, longer);
            state.cells.replace_spec(id, &cell.spec);
            self.too_short += 1;
        }
        Some(worth)
    }

    /// The time left: that of the trials which are still needed, but no more than the budget, and no less than the next trial.
    fn left_ns(&self, state: &RunState, now: u64) -> Option<u64> {
        let own = self.cell.as_ref()?.spec.timed_ns();
        if self.name.is_some() {
            return Some(own? + self.later_ns);
        }
        let each = now.checked_div(u64::from(state.passes)).max(own)?;
        let needed = each * u64::from(state.cells.trials_left());
        Some(needed.min(state.left_ns(now)).max(own.unwrap_or(0)))
    }
}

impl Machine for Single {
    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        let Some(cell) = &self.cell else { return Step::End(RunEnd::Finished) };
        if let At::Idle(probe) = &self.at {
            if let Some(step) = Step::idle(probe, Between::PAIR) {
                state.phase("round trips without load", self.name.and_then(|_| self.left_ns(state, now)));
                return step;
            }
            state.cells.idle(cell.id, probe.found());
            self.at = At::Trial;
        }
        match &self.at {
            At::Prepare => Step::Prepare(Preparation::settings_of(&cell.spec)),
            At::Idle(_) | At::Trial => {
                self.begun = now;
                let what = self.name.map_or_else(|| format!("trial {}", state.passes + 1), str::to_owned);
                state.phase(what, self.left_ns(state, now));
                Step::trial(state.passes, cell.spec.clone())
            }
            // Trials at equal distances would be in step with anything periodic on the path.
            At::Gap => Step::pause(GAP_NS / 2 + self.random.next_u64() % GAP_NS),
            At::End(end) => Step::End(end.clone()),
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        let Some(cell) = &self.cell else { return };
        let id = cell.id;
        let result = result.alone();
        match (&mut self.at, &result) {
            (At::Prepare, Ok(_)) => {
                let idle = At::Idle(Box::new(IdleProbe::new(&cell.spec)));
                return self.at = state.interrupted().map_or(idle, At::End);
            }
            (At::Idle(probe), Ok(found)) => {
                probe.completed(found.as_ref().map(|pass| &pass.near));
                return self.at =
                    state.interrupted().map_or_else(|| std::mem::replace(&mut self.at, At::Trial), At::End);
            }
            _ => {}
        }
        let before = state.cells.trials_of(id).len();
        let ended = state.pass(result, &[(Some(id), 0)]);
        self.at = match (ended, &self.at) {
            (Some(end), _) => At::End(end),
            (None, At::Trial) if state.cells.trials_of(id).len() == before => {
                At::End(RunEnd::CutShort { what: "the trial", reason: "it gave no result".into() })
            }
            (None, At::Trial) => self.after_trial(state, id, now),
            (None, _) => At::Trial,
        };
    }
}

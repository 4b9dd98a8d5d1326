//! Tests that are measured at the same time because they load the path for each other: groups of flows, and the hosts of a traffic.
//! They count as a whole: none has a trial without the others.

use std::collections::{BTreeMap, BTreeSet};

use analysis::plan::Slot;
use text::Text;

use super::{PlanRun, Test};
use crate::plan_parts::{failed_twice, set_failed_twice};
use crate::state::RunState;
use crate::{FailureKind, RunEnd, TestResult};

impl PlanRun {
    /// The combination of a cell that is measured at the same time as all others of its combination.
    pub(super) fn together(&self, cell: u32) -> Option<usize> {
        let slot = Slot::of_cell(&self.schedule.slots, cell)?;
        slot.together.then_some(slot.combination)
    }

    /// Takes for each slot the rounds that all slots of its combination have had, so that a run that was killed while it stored a step
    /// repeats that step as a whole.
    pub(super) fn level_rounds(&mut self) {
        let together = || self.schedule.slots.iter().filter(|slot| slot.together);
        let mut least: BTreeMap<usize, u32> = BTreeMap::new();
        for slot in together() {
            let rounds = self.rounds_done.get(&slot.cell).copied().unwrap_or(0);
            least.entry(slot.combination).and_modify(|least| *least = rounds.min(*least)).or_insert(rounds);
        }
        let levelled: Vec<(u32, u32)> = together().map(|slot| (slot.cell, least[&slot.combination])).collect();
        self.rounds_done.extend(levelled);
    }

    /// Why the tests of this step failed as a whole, if they did and the plan goes on: one of tests that start together could not
    /// be made. The others were interrupted, or measured a path with less load.
    pub(super) fn failed_as_a_whole(&self, state: &RunState, results: &[TestResult]) -> Option<Text> {
        if !self.tests.iter().any(|test| test.starts_together) {
            return None;
        }
        let failures = results.iter().filter_map(|result| result.pass.as_ref().err());
        let own = failures.filter(|failure| failure.kind != FailureKind::Interrupted);
        own.filter(|failure| self.goes_on_after(state, failure)).map(|failure| failure.reason.clone()).next()
    }

    /// The number of this step's tests on a host, where a host can have several.
    pub(super) fn tests_on(&self, host: usize) -> Option<u32> {
        let several = self.schedule.plan.traffic.is_some() || self.schedule.plan.light.is_some();
        let on = |test: &&Test| test.between.hosts.contains(&host);
        several.then(|| self.tests.iter().filter(on).count() as u32)
    }

    /// Notes the tests that have failed twice in this round: they have no trial in it. Ends the run if no test of the round succeeded.
    pub(super) fn give_up_failed(&mut self, state: &mut RunState) -> Option<RunEnd> {
        let failed = std::mem::take(&mut self.failed);
        let measured = state.pass_rounds.iter().any(|pass| pass.round == Some(self.round));
        let ended = !measured && !failed.is_empty();
        failed.keys().for_each(|cell| *self.rounds_done.entry(*cell).or_default() += 1);
        let (sets, apart): (BTreeMap<u32, Text>, _) =
            failed.into_iter().partition(|(cell, _)| self.together(*cell).is_some());
        state.notes.extend(failed_twice(&state.header, &self.schedule.slots, &apart, self.round));
        let mut noted: BTreeSet<usize> = BTreeSet::new();
        for (cell, reason) in sets {
            let Some(combination) = self.together(cell).filter(|combination| noted.insert(*combination)) else {
                continue;
            };
            let Some(first) = model::Cell::find(&state.header.cells, cell) else { continue };
            let of_set = |slot: &&Slot| slot.together && slot.combination == combination;
            let ids = self.schedule.slots.iter().filter(of_set).flat_map(Slot::cells).collect();
            state.notes.push(set_failed_twice(first, ids, self.round, &reason));
        }
        ended.then_some(RunEnd::Failed)
    }
}

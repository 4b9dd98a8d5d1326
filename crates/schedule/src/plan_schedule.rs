//! What a plan measures, and what an earlier part of its run has.

use analysis::plan::Slot;
use model::{Pass, Plan, Retest, Trial};

/// How a plan's cells are measured.
#[derive(Debug, Clone)]
pub struct PlanSchedule {
    /// The plan.
    pub plan: Plan,
    /// The cells, with the sizes of a curve in one slot: their combination of levels, and their hosts' numbers in the fleet.
    pub slots: Vec<Slot>,
    /// Trials of an earlier part of this run, which are kept.
    pub trials: Vec<Trial>,
    /// Passes of an earlier part of this run.
    pub passes: Vec<Pass>,
    /// Trials of an earlier part that test again what stands out.
    pub retests: Vec<Retest>,
}

impl PlanSchedule {
    /// Time that the earlier part of the run has spent, ns.
    #[must_use]
    pub fn spent_ns(&self) -> u64 {
        self.passes.iter().map(|pass| pass.started_ns + pass.duration_ns).max().unwrap_or(0)
    }

    /// Most tests of one host at the same time.
    pub(crate) fn per_host(&self) -> usize {
        self.plan.light.map_or(1, |tests| tests as usize)
    }

    /// The first cell of the slot that contains this one.
    pub(crate) fn first_of(&self, cell: u32) -> u32 {
        Slot::of_cell(&self.slots, cell).map_or(cell, |slot| slot.cell)
    }
}

//! A plan with its cells.

use analysis::plan::PlannedCell;
use model::{Plan, Shared, Spec, Stopping};

use crate::fleet::Fleet;

/// A plan with its cells and specs.
#[derive(Debug)]
pub struct ParsedPlan {
    /// The plan.
    pub plan: Plan,
    /// Its short name.
    pub name: Option<String>,
    /// The fleet whose hosts it names, if it has one.
    pub fleet: Option<Fleet>,
    /// The stop rule.
    pub rule: Stopping,
    /// Its cells; the sizes of a curve are consecutive.
    pub cells: Vec<PlanCell>,
}

/// A cell of a plan.
#[derive(Debug, Clone)]
pub struct PlanCell {
    /// Its levels, its hosts and its place in the plan.
    pub planned: PlannedCell,
    /// Its spec, with its settings.
    pub spec: Shared<Spec>,
}

impl ParsedPlan {
    /// The specs of the cells.
    pub fn specs(&self) -> impl Iterator<Item = &Shared<Spec>> {
        self.cells.iter().map(|cell| &cell.spec)
    }

    /// The spec of a cell by its number.
    #[must_use]
    pub fn spec(&self, cell: u32) -> &Shared<Spec> {
        &self.cells[cell as usize].spec
    }
}

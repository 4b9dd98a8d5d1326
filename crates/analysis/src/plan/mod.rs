//! Plans: their cells ([`expand()`]), the order of a block ([`block()`]), rounds of hosts ([`rounds()`]), and what their outcomes
//! say of the factors ([`of_plan`], [`tables`]).

mod best;
mod cells;
mod effects;
mod figures;
mod order;
mod rounds;
mod table;

pub use cells::{MAX_CELLS, PlannedCell, expand, of_set};
pub use effects::of_plan;
pub use figures::{FactorLine, factor_lines};
pub use order::{Slot, block, sizes};
pub use rounds::rounds;
pub use table::{Middle, PlanTable, tables};

use std::collections::BTreeMap;

use model::{Cell, Factor, FactorKind, Plan, Trial, Verdict};

use crate::outcome::Headline;

/// The names of what a plan's cells differ in, as its tables order them: its factors as written, then the hosts.
pub(crate) fn dimensions(plan: &Plan, cells: &[&Cell]) -> Vec<String> {
    let varied = plan.factors.iter().filter(|factor| factor.kind != FactorKind::Observed);
    let hosts = [Factor::FROM, Factor::TO].map(str::to_owned);
    let names = varied.map(|factor| factor.name.clone()).chain(hosts);
    let differ = |name: &String| {
        let mut levels = cells.iter().map(|cell| cell.levels.get(name));
        levels.next().is_some_and(|first| levels.any(|level| level != first))
    };
    names.filter(differ).collect()
}

/// The levels of `name` among `cells`, in the order of the plan.
pub(crate) fn levels(plan: &Plan, name: &str, cells: &[&Cell]) -> Vec<String> {
    let written = match name {
        Factor::FROM => plan.from.clone(),
        Factor::TO => plan.to.clone(),
        _ => plan
            .factors
            .iter()
            .find(|factor| factor.name == name)
            .map(|factor| factor.levels.clone())
            .unwrap_or_default(),
    };
    written.into_iter().filter(|level| cells.iter().any(|cell| cell.levels.get(name) == Some(level))).collect()
}

/// Whether a factor's levels are the sizes of curves.
pub(crate) fn sizes_of_curves(plan: &Plan, name: &str) -> bool {
    plan.factors.iter().any(|factor| factor.name == name && factor.kind == FactorKind::Sizes)
}

/// A cell's levels of `names` alone.
pub(crate) fn part<'a>(cell: &'a Cell, names: &'a [String]) -> BTreeMap<&'a str, &'a str> {
    names.iter().filter_map(|name| Some((name.as_str(), cell.levels.get(name)?.as_str()))).collect()
}

/// Cells whose values can be set against each other.
pub(crate) fn of_kind(cells: &[Cell], kind: Headline) -> Vec<&Cell> {
    cells.iter().filter(|cell| Headline::of(&cell.spec) == kind).collect()
}

/// What can be measured, in the order of tables.
pub(crate) const KINDS: [Headline; 3] = [Headline::RoundTrip, Headline::Transactions, Headline::Goodput];

/// Whether a trial was whole.
pub(crate) fn whole(trial: &Trial) -> bool {
    !trial.verdicts.contains(&Verdict::CutShort)
}

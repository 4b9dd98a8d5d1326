//! Plans: their cells ([`expand()`]), the order of a round ([`round()`]), its steps of host pairs ([`steps()`]), the effects of
//! the factors ([`of_plan`], [`tables`]), what groups of flows took
//! ([`group_shares`]), and what hosts that send at the same time get ([`traffic_curves`]).

mod asymmetry;
mod best;
mod cells;
mod clusters;
mod comparison;
mod curves;
mod effects;
mod fabric;
mod figures;
mod findings;
mod groups;
mod hosts;
mod knee;
mod limits;
mod logs;
mod matrix;
mod order;
mod outlier;
mod retest;
mod round;
mod sample;
mod standing;
mod steps;
mod table;
mod together;
mod traffic;
mod traffic_steps;
mod variation;

pub use cells::{ExpandError, MAX_CELLS, PlannedCell, expand, of_set};
pub use comparison::{ComparedTests, MOST_COMPARISONS};
pub use figures::{FactorLine, factor_lines};
pub use findings::{of_imported_matrix, of_plan};
pub use groups::{GroupShare, GroupShares, RoundMean, group_shares};
pub use hosts::of_hosts;
pub use knee::{Fall, Knee};
pub use order::{Slot, round, size_order};
pub use retest::{MOST_SUSPECTS, Suspect, pair_name, suspects};
pub use sample::{LEAST_PARTNERS, least_sample, sample};
pub use steps::{RoundRobin, steps, steps_sharing};
pub use table::{COMMON_GOODPUT, CellMean, PlanTable, tables, trial_measure};
pub use traffic::{TrafficError, doubling};
pub use traffic_steps::{Completion, TrafficCurve, TrafficStep, traffic_curves};

use std::collections::{BTreeMap, HashSet};

use model::{Cell, Factor, FactorKind, Plan, RunHeader, RunKind, Trial, Verdict};

use crate::outcome::Headline;

/// The names of the factors in which a plan's cells differ, in the order of its tables: its factors as written, then the hosts.
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

/// The levels of `name` in the plan.
fn written<'a>(plan: &'a Plan, name: &str) -> &'a [String] {
    match name {
        Factor::FROM => &plan.from,
        Factor::TO => &plan.to,
        _ => plan.factors.iter().find(|factor| factor.name == name).map_or(&[], |factor| &factor.levels),
    }
}

/// The levels of `name` among `cells`, in the order of the plan.
pub(crate) fn levels(plan: &Plan, name: &str, cells: &[&Cell]) -> Vec<String> {
    let met: HashSet<&String> = cells.iter().filter_map(|cell| cell.levels.get(name)).collect();
    written(plan, name).iter().filter(|level| met.contains(level)).cloned().collect()
}

/// Whether a factor's levels are the block sizes of curves.
pub(crate) fn sizes_of_curves(plan: &Plan, name: &str) -> bool {
    plan.factors.iter().any(|factor| factor.name == name && factor.kind == FactorKind::Sizes)
}

/// Whether a factor's levels are numbers of senders or receivers, or of permutations or cuts.
pub(crate) fn is_of_traffic(plan: &Plan, name: &str) -> bool {
    plan.factors.iter().any(|factor| factor.name == name && factor.kind == FactorKind::Traffic)
}

/// Whether a factor is one of the hosts of a matrix, where both ends vary.
pub(crate) fn is_host_of_matrix(header: &RunHeader, names: &[String], name: &str) -> bool {
    let hosts = [Factor::FROM, Factor::TO];
    hosts.contains(&name)
        && (header.kind == RunKind::Mesh || hosts.iter().all(|host| names.iter().any(|one| one == host)))
}

/// A cell's levels of the factors `names`.
pub(crate) fn part<'a>(cell: &'a Cell, names: &'a [String]) -> BTreeMap<&'a str, &'a str> {
    names.iter().filter_map(|name| Some((name.as_str(), cell.levels.get(name)?.as_str()))).collect()
}

/// Cells whose values can be compared.
pub(crate) fn of_kind(cells: &[Cell], kind: Headline) -> Vec<&Cell> {
    cells.iter().filter(|cell| Headline::of(&cell.spec) == kind).collect()
}

/// The factors that switch curves between round trips and streams: points of the same size that differ in nothing else are compared by
/// NetPIPE's rate. Other patterns are different questions, and are never compared with each other.
pub(crate) fn across_kinds(plan: &Plan, cells: &[Cell]) -> Vec<String> {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.spec.is_point()).collect();
    let kinds: Vec<Headline> = cells.iter().map(|cell| Headline::of(&cell.spec)).collect();
    if kinds.windows(2).all(|two| two[0] == two[1]) {
        return Vec::new();
    }
    let names = dimensions(plan, &cells);
    let is_across = |name: &String| {
        let rest: Vec<String> = names.iter().filter(|other| *other != name).cloned().collect();
        let mut met: BTreeMap<BTreeMap<&str, &str>, Headline> = BTreeMap::new();
        cells.iter().any(|cell| {
            let kind = Headline::of(&cell.spec);
            *met.entry(part(cell, &rest)).or_insert(kind) != kind
        })
    };
    names.iter().filter(|name| is_across(name)).cloned().collect()
}

/// The headline statistics, in the order of the tables.
pub(crate) const KINDS: [Headline; 3] = [Headline::RoundTrip, Headline::Transactions, Headline::Goodput];

/// Whether a trial was not cut short.
pub(crate) fn complete(trial: &Trial) -> bool {
    !trial.verdicts.contains(&Verdict::CutShort)
}

//! The figures of each curve of a plan: latency, peak, saturation and half peak, as a curve by itself has them.

use std::collections::BTreeMap;

use model::{Cell, Finding, Outcome, RunHeader};
use text::say;

use super::{dimensions, sizes_of_curves};
use crate::findings::of_points;

/// The levels of a curve.
type Levels<'a> = Vec<(&'a str, &'a str)>;

/// The findings of each curve, named by its levels, in the order of the plan.
pub(super) fn of_curves(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Finding> {
    let Some(plan) = &header.plan else { return Vec::new() };
    let points: Vec<&Cell> = header.cells.iter().filter(|cell| cell.spec.is_point()).collect();
    let mut names = dimensions(plan, &points);
    names.retain(|name| !sizes_of_curves(plan, name));
    let levels: BTreeMap<u32, Levels<'_>> = points
        .iter()
        .map(|cell| {
            let own = names.iter().filter_map(|name| Some((name.as_str(), cell.levels.get(name)?.as_str())));
            (cell.id, own.collect())
        })
        .collect();
    let mut curves: Vec<(&Levels<'_>, Vec<&Outcome>)> = Vec::new();
    for outcome in outcomes {
        let Some(own) = levels.get(&outcome.cell) else { continue };
        match curves.iter_mut().find(|(other, _)| *other == own) {
            Some((_, curve)) => curve.push(outcome),
            None => curves.push((own, vec![outcome])),
        }
    }
    let of = |(levels, curve): (&Levels<'_>, Vec<&Outcome>)| {
        let name = levels.iter().map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ");
        let named = move |finding: Finding| match name.as_str() {
            "" => finding,
            name => Finding { statement: say!("{name}: {}", finding.statement), ..finding },
        };
        of_points(&curve).into_iter().map(named)
    };
    curves.into_iter().flat_map(of).collect()
}

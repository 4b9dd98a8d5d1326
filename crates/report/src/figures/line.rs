//! Groups outcomes into series, with names for the legend.

use model::{Outcome, Run, RunKind};

use super::names::{Levels, levels, names, stalled};
use crate::sections::sides;

/// The most cells of a plan whose trials are drawn over time: a choice of cells shows others.
const MAX_OVER_TIME: usize = 500;

/// The outcomes behind one series.
pub(crate) struct Line<'a> {
    /// Index of the run.
    pub(crate) run: usize,
    /// Name in the legend, unique among the lines made together.
    pub(crate) name: String,
    /// The outcomes: those of a curve by ascending block, otherwise a single one.
    pub(crate) outcomes: Vec<&'a Outcome>,
    /// A ceiling to compare with, not a measured path.
    pub(crate) reference: bool,
    /// Of a plan's run, the levels of its cells.
    pub(crate) levels: Vec<(String, String)>,
}

/// Block-size curves: outcomes of a run that differ only in the block are one line.
pub(crate) fn curve_lines(runs: &[Run]) -> Vec<Line<'_>> {
    build(runs, |run| {
        let mut groups: Vec<Vec<&Outcome>> = Vec::new();
        if run.header.plan.is_some() {
            return plan_curves(run);
        }
        if run.header.kind != RunKind::Curve {
            return groups;
        }
        for outcome in &run.outcomes {
            // A stalled row of an import is a cell of its own, beside valid ones of the same block.
            let apart = |other: &Outcome| run.header.origin.is_some() && stalled(other) != stalled(outcome);
            let like = |group: &&mut Vec<&Outcome>| {
                group.iter().take(1).all(|first| same_but_block(first, outcome) && !apart(first))
            };
            match groups.iter_mut().find(like) {
                Some(group) => group.push(outcome),
                None => groups.push(vec![outcome]),
            }
        }
        groups.iter_mut().for_each(|group| group.sort_by_key(|outcome| outcome.spec.block));
        groups
    })
}

/// The curves of a plan: cells that differ only in the size.
fn plan_curves(run: &Run) -> Vec<Vec<&Outcome>> {
    let mut groups: Vec<(Levels<'_>, Vec<&Outcome>)> = Vec::new();
    for outcome in run.outcomes.iter().filter(|outcome| outcome.spec.is_point()) {
        let own = levels(run, outcome);
        match groups.iter_mut().find(|(other, _)| *other == own) {
            Some((_, group)) => group.push(outcome),
            None => groups.push((own, vec![outcome])),
        }
    }
    groups.iter_mut().for_each(|(_, group)| group.sort_by_key(|outcome| outcome.spec.block));
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Whether the trials of a run are drawn over time: of a mesh and of traffic they are many, and its steps tell more.
fn is_shown_over_time(run: &Run) -> bool {
    let Some(plan) = &run.header.plan else { return true };
    run.header.kind != RunKind::Mesh && plan.traffic.is_none() && run.header.cells.len() <= MAX_OVER_TIME
}

/// The outcomes that pass `wanted` of runs other than curves, each as a line; without the points of a plan's curves.
pub(crate) fn single_lines(runs: &[Run], wanted: fn(&Outcome) -> bool) -> Vec<Line<'_>> {
    build(runs, |run| {
        let single = run.header.kind != RunKind::Curve && is_shown_over_time(run);
        let is_wanted =
            |outcome: &&Outcome| single && wanted(outcome) && !(run.header.plan.is_some() && outcome.spec.is_point());
        sides::shown(run).into_iter().filter(is_wanted).map(|outcome| vec![outcome]).collect()
    })
}

fn build<'a>(runs: &'a [Run], groups: impl Fn(&'a Run) -> Vec<Vec<&'a Outcome>>) -> Vec<Line<'a>> {
    let groups: Vec<(usize, Vec<&Outcome>)> =
        runs.iter().enumerate().flat_map(|(run, of)| groups(of).into_iter().map(move |group| (run, group))).collect();
    let firsts: Vec<(usize, &Outcome)> =
        groups.iter().filter_map(|(run, group)| Some((*run, *group.first()?))).collect();
    let names = names(runs, &firsts);
    let mut lines: Vec<Line<'a>> = groups
        .into_iter()
        .filter(|(_, group)| !group.is_empty())
        .zip(names.into_iter().zip(&firsts))
        .map(|((run, outcomes), (name, (_, first)))| {
            let reference = first.spec.transport == model::Spec::CEILING;
            let owned = |(name, level): &(&str, &str)| ((*name).to_owned(), (*level).to_owned());
            let levels = levels(&runs[run], first).iter().map(owned).collect();
            Line { run, name, outcomes, reference, levels }
        })
        .collect();
    // Without a measured line, ceilings are drawn as ordinary lines.
    if lines.iter().all(|line| line.reference) {
        lines.iter_mut().for_each(|line| line.reference = false);
    }
    lines
}

fn same_but_block(a: &Outcome, b: &Outcome) -> bool {
    let (a, b) = (&a.spec, &b.spec);
    a.transport == b.transport && a.pattern == b.pattern && a.flows == b.flows && a.direction == b.direction
}

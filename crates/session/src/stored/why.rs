//! What limited stored runs, as one document.

use std::collections::{BTreeMap, BTreeSet};

use analysis::limiter::{between_runs, changes, jagged_against_smooth, regions, words};
use command::Failure;
use model::{
    Cell, CellWhy, Factor, Outcome, Pattern, Run, RunKind, RunWhy, SharedLimit, Spec, Summary, WhyDocument, median,
};
use text::{Text, say};

/// Pairs of hosts that are explained one by one. A run of more pairs tells which have the same limiter.
const WORST: usize = 5;

/// The bottlenecks of runs, or of one cell of them. `line` describes an outcome.
///
/// # Errors
/// No run has the cell.
pub fn explain(runs: &[Run], cell: Option<u32>, line: fn(&Outcome) -> Text) -> Result<WhyDocument, Failure> {
    let outcomes = || runs.iter().flat_map(|run| &run.outcomes);
    if let Some(cell) = cell.filter(|cell| !outcomes().any(|outcome| outcome.cell == *cell)) {
        let cells: Vec<String> = outcomes().map(|one| one.cell.to_string()).collect();
        return Err(Failure::usage(say!("`--cell {cell}`: no such cell; the cells are {}", cells.join(", "))));
    }
    let of_kind = |curve| runs.iter().filter(move |run| (run.header.kind == RunKind::Curve) == curve);
    let curves: Vec<(String, &[Outcome])> = of_kind(true).map(|run| (label(run), run.outcomes.as_slice())).collect();
    let singles: Vec<(String, &Outcome)> =
        of_kind(false).flat_map(|run| run.outcomes.iter().map(|outcome| (label(run), outcome))).collect();
    let named: Vec<(&str, &Outcome)> = singles.iter().map(|(name, outcome)| (name.as_str(), *outcome)).collect();
    Ok(WhyDocument {
        schema: WhyDocument::SCHEMA.into(),
        runs: runs.iter().map(|run| of_run(run, cell, line)).collect(),
        regions: regions(&curves),
        notes: between_runs(&named).into_iter().chain(jagged(runs)).collect(),
    })
}

/// Pairs each jagged curve with a smooth one.
fn jagged(runs: &[Run]) -> Vec<Text> {
    let pairs = runs.iter().enumerate().flat_map(|(at, one)| runs[at + 1..].iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| jagged_against_smooth((&label(one), &[one]), (&label(other), &[other]))).collect()
}

fn label(run: &Run) -> String {
    run.header.name.clone().unwrap_or_else(|| run.header.id.clone())
}

/// What limited an outcome, or each of its directions: as recorded, else computed.
fn of_outcome(run: &Run, outcome: &Outcome, line: fn(&Outcome) -> Text) -> Vec<CellWhy> {
    let mut computed = outcome.clone();
    if outcome.summary.limits().next().is_none() {
        analysis::set_why(&mut computed, &run.header, &run.passes);
    }
    let of = |direction, summary: &Summary| CellWhy {
        cell: outcome.cell,
        name: name(run, outcome.cell),
        outcome: line(outcome),
        direction,
        why: summary.why.as_deref().cloned(),
    };
    let each: Vec<CellWhy> =
        computed.summary.directions().map(|(direction, summary)| of(Some(direction), summary)).collect();
    if each.is_empty() { vec![of(None, &computed.summary)] } else { each }
}

/// The bottlenecks of a run's outcomes: as recorded, else computed from the recorded counters. Of a curve, its changes.
fn of_run(run: &Run, cell: Option<u32>, line: fn(&Outcome) -> Text) -> RunWhy {
    let header = &run.header;
    let selected = |outcome: &&Outcome| cell.is_none_or(|cell| outcome.cell == cell);
    let (cells, changes) = if header.kind == RunKind::Curve {
        let main: Vec<Outcome> =
            run.outcomes.iter().filter(|outcome| outcome.spec.transport != Spec::CEILING).cloned().collect();
        (Vec::new(), changes(&main))
    } else {
        // A size of a plan's curve shares its passes with the other sizes.
        let whole = run.outcomes.iter().filter(|outcome| !outcome.spec.is_point());
        (whole.filter(selected).flat_map(|outcome| of_outcome(run, outcome, line)).collect(), Vec::new())
    };
    let (id, name) = (header.id.clone(), header.name.clone());
    let (limits, worst) = if cell.is_none() && pairs(run).len() > WORST {
        (shared_limits(run, &cells), worst(run))
    } else {
        Default::default()
    };
    RunWhy { id, name, cells, limits, worst, changes }
}

/// The hosts of a cell, and its other levels but the pattern, which its line has: `n1 → n2, flows 4`. `None` for the only cell.
fn name(run: &Run, cell: u32) -> Option<String> {
    let levels = &Cell::find(&run.header.cells, cell).filter(|_| run.header.cells.len() > 1)?.levels;
    let hosts = [Factor::FROM, Factor::TO].map(|host| levels.get(host));
    let pair = match hosts {
        [Some(from), Some(to)] => Some(format!("{from} → {to}")),
        [from, to] => from.or(to).cloned(),
    };
    let plan = run.header.plan.as_ref();
    let shown = |name: &&String| {
        let is_pattern = |factor: &Factor| factor.name == **name && factor.key == "pattern";
        ![Factor::FROM, Factor::TO].contains(&name.as_str())
            && !plan.is_some_and(|plan| plan.factors.iter().any(is_pattern))
    };
    let rest = levels.iter().filter(|(name, _)| shown(name)).map(|(name, level)| format!("{name} {level}"));
    let parts: Vec<String> = pair.into_iter().chain(rest).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The hosts of a cell between two of them.
fn pair(run: &Run, cell: u32) -> Option<[&String; 2]> {
    let levels = &Cell::find(&run.header.cells, cell)?.levels;
    Some([levels.get(Factor::FROM)?, levels.get(Factor::TO)?])
}

fn pairs(run: &Run) -> BTreeSet<[&String; 2]> {
    run.outcomes.iter().filter_map(|outcome| pair(run, outcome.cell)).collect()
}

/// The cells by their pattern and limiter.
fn shared_limits(run: &Run, cells: &[CellWhy]) -> Vec<SharedLimit> {
    let patterns: BTreeMap<u32, Pattern> =
        run.outcomes.iter().map(|outcome| (outcome.cell, outcome.spec.pattern)).collect();
    let mut found: BTreeMap<(Pattern, Option<String>), Vec<u32>> = BTreeMap::new();
    for cell in cells {
        let Some(pattern) = patterns.get(&cell.cell) else { continue };
        let limiter = cell.why.as_ref().map(|why| words(why).to_owned());
        let own = found.entry((*pattern, limiter)).or_default();
        if own.last() != Some(&cell.cell) {
            own.push(cell.cell);
        }
    }
    let found = found.into_iter();
    let mut limits: Vec<SharedLimit> =
        found.map(|((pattern, limiter), cells)| SharedLimit { pattern, limiter, cells }).collect();
    limits.sort_by(|a, b| a.pattern.cmp(&b.pattern).then(b.cells.len().cmp(&a.cells.len())));
    limits
}

/// The worst cells of the worst pairs.
fn worst(run: &Run) -> Vec<u32> {
    let value =
        |outcome: &Outcome| outcome.estimate.as_ref().map(|estimate| estimate.value).filter(|value| *value > 0.0);
    let mut values: BTreeMap<Pattern, Vec<f64>> = BTreeMap::new();
    for outcome in &run.outcomes {
        values.entry(outcome.spec.pattern).or_default().extend(value(outcome));
    }
    let mut all: Vec<(f64, u32)> = Vec::new();
    for outcome in run.outcomes.iter().filter(|outcome| !outcome.spec.is_point()) {
        let middle = values.get(&outcome.spec.pattern).and_then(|values| median(values));
        let is_time = outcome.estimate.as_ref().is_some_and(|estimate| estimate.unit == "ns");
        if let Some((value, middle)) = value(outcome).zip(middle) {
            all.push((if is_time { middle / value } else { value / middle }, outcome.cell));
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut told = BTreeSet::new();
    let first = |(_, cell): &(f64, u32)| pair(run, *cell).is_some_and(|pair| told.insert(pair));
    let mut worst: Vec<u32> = all.into_iter().filter(first).map(|(_, cell)| cell).collect();
    worst.truncate(WORST);
    worst
}

#[cfg(test)]
mod tests {
    use model::{Estimate, LimiterKind, Pattern, RunHeader, Why};

    use super::*;

    /// A mesh of this many hosts in round trips and streams: streams to the last host are slow, and limited by its CPU.
    fn mesh(hosts: u32) -> Run {
        let mut run = Run::new(RunHeader { kind: RunKind::Mesh, ..RunHeader::default() });
        let factor = Factor { name: "pattern".into(), key: "pattern".into(), ..Factor::default() };
        run.header.plan = Some(Box::new(model::Plan { factors: vec![factor], ..model::Plan::default() }));
        let pairs = (1..=hosts).flat_map(|from| (1..=hosts).map(move |to| (from, to))).filter(|(from, to)| from != to);
        for ((from, to), pattern) in
            pairs.flat_map(|pair| [Pattern::Rr, Pattern::Stream].map(|pattern| (pair, pattern)))
        {
            let id = run.header.cells.len() as u32;
            let levels = [("from", format!("n{from}")), ("to", format!("n{to}")), ("pattern", pattern.to_string())];
            let levels = levels.map(|(name, level)| (name.to_owned(), level)).into();
            let cell = Cell { levels, ..Cell::new(id, Spec::new("tcp", pattern)) };
            let is_slow = to == hosts && pattern == Pattern::Stream;
            let mut outcome = analysis::outcome(&cell, Vec::new(), &run.header.stopping, analysis::Context::default());
            let value = if is_slow { 100.0 - f64::from(from) } else { 1_000.0 };
            outcome.estimate = Some(Estimate {
                statistic: "mean".into(),
                unit: "bit/s".into(),
                value,
                low: None,
                high: None,
                confidence: 0.95,
                method: "none".into(),
                n: 3,
            });
            let limiter = if is_slow { LimiterKind::ReceiverCpu } else { LimiterKind::Link };
            outcome.summary.why = Some(Box::new(Why {
                limiter,
                grade: Some(model::Grade::Strong),
                statement: "a limit".into(),
                parts: Vec::new(),
                evidence: Vec::new(),
                also: Vec::new(),
                losses: None,
                notes: Vec::new(),
                remedies: Vec::new(),
                missing: Vec::new(),
            }));
            run.header.cells.push(cell);
            run.outcomes.push(outcome);
        }
        run
    }

    fn explained(run: Run, cell: Option<u32>) -> RunWhy {
        explain(&[run], cell, |outcome| outcome.spec.pattern.to_string().into()).unwrap().runs.remove(0)
    }

    #[test]
    fn the_tests_of_a_mesh_are_named_by_their_hosts_and_grouped_by_their_limiters() {
        let found = explained(mesh(6), None);
        assert_eq!(found.cells.len(), 60);
        assert_eq!(found.cells[1].name.as_deref(), Some("n1 → n2"));
        let limits: Vec<_> =
            found.limits.iter().map(|limit| (limit.pattern, limit.limiter.as_deref(), limit.cells.len())).collect();
        let expected = [
            (Pattern::Rr, Some("link rate"), 30),
            (Pattern::Stream, Some("link rate"), 25),
            (Pattern::Stream, Some("receiver CPU"), 5),
        ];
        assert_eq!(limits, expected);
        let worst: Vec<Option<&str>> = found
            .worst
            .iter()
            .map(|id| found.cells.iter().find(|cell| cell.cell == *id).and_then(|cell| cell.name.as_deref()))
            .collect();
        assert_eq!(worst, ["n5 → n6", "n4 → n6", "n3 → n6", "n2 → n6", "n1 → n6"].map(Some));
    }

    #[test]
    fn one_test_or_few_pairs_are_explained_alone() {
        let one = explained(mesh(6), Some(3));
        assert_eq!((one.cells.len(), one.limits.len(), one.worst.len()), (1, 0, 0));
        assert!(explained(mesh(2), None).limits.is_empty());
    }
}

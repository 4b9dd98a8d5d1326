//! What limited stored runs, as one document.

use analysis::limiter::{between_runs, changes, regions};
use model::{CellWhy, Outcome, Run, RunWhy, Spec, Summary, WhyDocument};

use crate::failure::Failure;

/// The bottlenecks of runs, or of one cell of them. `line` describes an outcome.
///
/// # Errors
/// No run has the cell.
pub fn explain(runs: &[Run], cell: Option<u32>, line: fn(&Outcome) -> String) -> Result<WhyDocument, Failure> {
    let outcomes = || runs.iter().flat_map(|run| &run.outcomes);
    if let Some(cell) = cell.filter(|cell| !outcomes().any(|outcome| outcome.cell == *cell)) {
        let cells: Vec<String> = outcomes().map(|one| one.cell.to_string()).collect();
        return Err(Failure::usage(format!("`cell {cell}`: no such cell; the cells are {}", cells.join(", "))));
    }
    let of_kind = |curve| runs.iter().filter(move |run| (run.header.kind == "curve") == curve);
    let curves: Vec<(String, &[Outcome])> = of_kind(true).map(|run| (label(run), run.outcomes.as_slice())).collect();
    let singles: Vec<(String, &Outcome)> =
        of_kind(false).flat_map(|run| run.outcomes.iter().map(|outcome| (label(run), outcome))).collect();
    let named: Vec<(&str, &Outcome)> = singles.iter().map(|(name, outcome)| (name.as_str(), *outcome)).collect();
    Ok(WhyDocument {
        schema: WhyDocument::SCHEMA.into(),
        runs: runs.iter().map(|run| of_run(run, cell, line)).collect(),
        regions: regions(&curves),
        notes: between_runs(&named),
    })
}

fn label(run: &Run) -> String {
    run.header.name.clone().unwrap_or_else(|| run.header.id.clone())
}

/// What limited an outcome, or each of its directions: as recorded, else computed.
fn of_outcome(run: &Run, outcome: &Outcome, line: fn(&Outcome) -> String) -> Vec<CellWhy> {
    let mut computed = outcome.clone();
    if outcome.summary.limits().next().is_none() {
        analysis::set_why(&mut computed, &run.header, &run.passes);
    }
    let of = |direction, summary: &Summary| CellWhy {
        cell: outcome.cell,
        outcome: line(outcome),
        direction,
        why: summary.why.as_deref().cloned(),
    };
    let each: Vec<CellWhy> =
        computed.summary.directions().map(|(direction, summary)| of(Some(direction), summary)).collect();
    if each.is_empty() { vec![of(None, &computed.summary)] } else { each }
}

/// The bottlenecks of a run's outcomes: as recorded, else computed from the recorded counters. Of a curve, its changes.
fn of_run(run: &Run, cell: Option<u32>, line: fn(&Outcome) -> String) -> RunWhy {
    let header = &run.header;
    let selected = |outcome: &&Outcome| cell.is_none_or(|cell| outcome.cell == cell);
    let (cells, changes) = if header.kind == "curve" {
        let main: Vec<Outcome> =
            run.outcomes.iter().filter(|outcome| outcome.spec.transport != Spec::CEILING).cloned().collect();
        (Vec::new(), changes(&main))
    } else {
        // A size of a plan's curve shares its passes with the other sizes.
        let whole = run.outcomes.iter().filter(|outcome| !outcome.spec.is_point());
        (whole.filter(selected).flat_map(|outcome| of_outcome(run, outcome, line)).collect(), Vec::new())
    };
    RunWhy { id: header.id.clone(), name: header.name.clone(), cells, changes }
}

//! `thru why`: the bottleneck of a stored run, with evidence.

use std::path::PathBuf;

use clap::Args;
use model::{CellWhy, Outcome, Run, RunWhy, Spec, WhyDocument};
use session::Failure;

use super::show;
use crate::console;
use crate::output;

/// Flags of `thru why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru why                        the last run: where the sender's time went, and the evidence
  thru why before --cell 1        one cell of a run
  thru why mtu1500 mtu9000        several curves: which is best for which block sizes
  thru why outbound return        a run and one with --reverse: whether the directions differ

The analysis uses the recorded counters. Counters that a run did not record are listed as missing.")]
pub struct WhyArgs {
    /// Runs: ids, starts of ids, names, `last` or `last~1`.
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,

    /// Number of one cell to explain [default: all].
    #[arg(long, value_name = "N", value_parser = session::values::whole(0..=u32::MAX))]
    cell: Option<u32>,

    /// Print a JSON document.
    #[arg(long)]
    json: bool,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let runs: Vec<Run> =
        args.runs.iter().map(|name| show::load(name, args.store.as_deref())).collect::<Result<_, _>>()?;
    let explained: Vec<RunWhy> = runs.iter().map(|run| explain(run, args.cell)).collect();
    if let Some(cell) = args.cell.filter(|cell| !has(&runs, *cell)) {
        let cells: Vec<String> = runs.iter().flat_map(|run| &run.outcomes).map(|one| one.cell.to_string()).collect();
        return Err(Failure::usage(format!("--cell {cell}: no such cell; the cells are {}", cells.join(", "))));
    }
    let curves: Vec<(String, &[Outcome])> =
        runs.iter().filter(|run| run.header.kind == "curve").map(|run| (label(run), run.outcomes.as_slice())).collect();
    let singles: Vec<(String, &Outcome)> = runs
        .iter()
        .filter(|run| run.header.kind != "curve")
        .flat_map(|run| run.outcomes.iter().map(|outcome| (label(run), outcome)))
        .collect();
    let named: Vec<(&str, &Outcome)> = singles.iter().map(|(name, outcome)| (name.as_str(), *outcome)).collect();
    let document = WhyDocument {
        schema: WhyDocument::SCHEMA.into(),
        runs: explained,
        regions: analysis::limiter::regions(&curves),
        notes: analysis::limiter::between_runs(&named),
    };
    if args.json {
        console::document(&(serde_json::to_string_pretty(&document).map_err(Failure::other)? + "\n"));
    } else {
        out!("{}", report::why_report(&document, output::columns()));
    }
    Ok(0)
}

fn has(runs: &[Run], cell: u32) -> bool {
    runs.iter().any(|run| run.outcomes.iter().any(|outcome| outcome.cell == cell))
}

fn label(run: &Run) -> String {
    run.header.name.clone().unwrap_or_else(|| run.header.id.clone())
}

/// The bottlenecks of a run's outcomes: as recorded, else computed from the recorded counters. Of a curve, its changes.
fn explain(run: &Run, cell: Option<u32>) -> RunWhy {
    let header = &run.header;
    let selected = |outcome: &&Outcome| cell.is_none_or(|cell| outcome.cell == cell);
    let (cells, changes) = if header.kind == "curve" {
        let main: Vec<Outcome> =
            run.outcomes.iter().filter(|outcome| outcome.spec.transport != Spec::CEILING).cloned().collect();
        (Vec::new(), analysis::limiter::changes(&main))
    } else {
        let of = |outcome: &Outcome| CellWhy {
            cell: outcome.cell,
            outcome: report::outcome_line(outcome),
            why: outcome.summary.why.clone().or_else(|| analysis::why(outcome, &run.passes, &header.near, &header.far)),
        };
        // A size of a plan's curve shares its passes with the other sizes.
        let whole = run.outcomes.iter().filter(|outcome| !outcome.spec.is_point());
        (whole.filter(selected).map(of).collect(), Vec::new())
    };
    RunWhy { id: header.id.clone(), name: header.name.clone(), cells, changes }
}

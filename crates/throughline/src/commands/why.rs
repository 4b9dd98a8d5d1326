//! `thru why`: what held a stored run back, with the evidence.

use std::path::PathBuf;

use clap::Args;
use model::{CellWhy, Outcome, Run, RunWhy, Spec, WhyDocument};

use super::show;
use crate::failure::Failure;
use crate::output;

/// Flags of `thru why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru why                        the last run: where the sender's time went, and what speaks for it
  thru why before --cell 1        one cell of a run
  thru why mtu1500 mtu9000        several curves: which is best for which blocks
  thru why there back             a run and one with --reverse: whether the directions are alike

It works on what was recorded: what an older run did not record is named as missing.")]
pub struct WhyArgs {
    /// Runs: each an id, the start of one, a name, `last` or `last~1`.
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,

    /// One cell only, by its number.
    #[arg(long, value_name = "N")]
    cell: Option<u32>,

    /// As one JSON document.
    #[arg(long)]
    json: bool,

    /// The file that keeps runs [default: in the XDG data folder].
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
        return Err(Failure::usage(format!("--cell {cell}: there is no such outcome; there are {}", cells.join(", "))));
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
        out!("{}\n", serde_json::to_string_pretty(&document).map_err(Failure::other)?);
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

/// What held the outcomes of a run back: as it was recorded, else from what was; of a curve where it breaks.
fn explain(run: &Run, cell: Option<u32>) -> RunWhy {
    let header = &run.header;
    let wanted = |outcome: &&Outcome| cell.is_none_or(|cell| outcome.cell == cell);
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
        // A point of a plan's curve shares its passes with the other sizes.
        let whole = run.outcomes.iter().filter(|outcome| !outcome.spec.is_point());
        (whole.filter(wanted).map(of).collect(), Vec::new())
    };
    RunWhy { id: header.id.clone(), name: header.name.clone(), cells, changes }
}

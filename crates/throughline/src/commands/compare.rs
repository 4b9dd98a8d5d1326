//! `thru compare`: compares stored runs.

use std::path::PathBuf;

use clap::Args;
use command::failure::{self, Failure};
use model::{Ratio, Run};
use session::ab::check_tolerance;

use super::show;
use crate::console;
use crate::output;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Flags of `thru compare`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/compare.txt").trim_end())]
pub struct CompareArgs {
    /// Side A: one run, or several separated by commas. A run is an id or its first characters, a name, `last` or `last~1`.
    #[arg(value_name = "RUN[,RUN...]", value_delimiter = ',', num_args = 1, required = true)]
    a: Vec<String>,

    /// Side B, likewise.
    #[arg(value_name = "RUN[,RUN...]", value_delimiter = ',', num_args = 1, required = true)]
    b: Vec<String>,

    /// Largest difference that does not matter.
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    tolerance: Ratio,

    /// Print every cell, configuration difference and caveat, not only those that matter most.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,

    /// Print a JSON document.
    #[arg(long)]
    json: bool,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &CompareArgs) -> Result<u8, Failure> {
    check_tolerance(args.tolerance.0)?;
    let load = |names: &[String]| -> Result<Vec<Run>, Failure> {
        names.iter().map(|name| show::load(name, args.store.as_deref())).collect()
    };
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let ids = |runs: &[Run]| runs.iter().map(|run| run.header.id.clone()).collect::<Vec<_>>();
    if let Some(twice) = ids(&a).iter().find(|id| ids(&b).contains(id)) {
        return Err(Failure::usage(format!("run {twice} is on both sides: name different runs")));
    }
    let (a, b): (Vec<&Run>, Vec<&Run>) = (a.iter().collect(), b.iter().collect());
    let found = analysis::stored_runs(&a, &b, args.tolerance.0, CONFIDENCE).map_err(Failure::usage)?;
    if args.json {
        console::json(&found)?;
    } else {
        console::screen(&report::comparison(&found, output::layout(), args.verbose));
    }
    Ok(failure::of_answer(found.answer))
}

//! `thru why`: the bottleneck of a stored run, with evidence.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use model::Run;
use session::stored::why::explain;

use super::show;
use crate::console;
use crate::output;

/// Flags of `thru why`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/why.txt").trim_end())]
pub struct WhyArgs {
    /// The runs: ids or their first characters, names, `last` or `last~1`.
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,

    /// Explain only the cell with this number [default: all].
    #[arg(long, value_name = "N", value_parser = options::values::whole(0..=u32::MAX))]
    cell: Option<u32>,

    /// Print all evidence with its sources, notes, and what was not recorded, not only a screen.
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
pub fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let runs: Vec<Run> =
        args.runs.iter().map(|name| show::load(name, args.store.as_deref())).collect::<Result<_, _>>()?;
    let document = explain(&runs, args.cell, report::outcome_line)?;
    if args.json {
        console::json(&document)?;
    } else {
        let ids: Vec<&str> = runs.iter().map(|run| run.header.id.as_str()).collect();
        let cell = args.cell.map_or(String::new(), |cell| format!(" --cell {cell}"));
        let more = format!("`thru why {}{cell} -v`", ids.join(" "));
        console::screen(&report::why_report(&document, output::layout(), (!args.verbose).then_some(more.as_str())));
    }
    Ok(0)
}

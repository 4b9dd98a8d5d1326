//! `thru show`: runs from the store.

use std::path::{Path, PathBuf};

use clap::Args;
use command::Failure;
use model::Run;
use report::Distance;
use session::stored;

use crate::flags::form;
use crate::output;
use crate::registries;

/// Flags of `thru show`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/show.txt").trim_end())]
pub struct ShowArgs {
    /// The run: its id or the id's first characters, its name, `last`, or `last~1` for the one before. Several curves are shown
    /// side by side.
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,

    /// Print the JSON document.
    #[arg(long)]
    json: bool,

    /// Print the whole report, not only the answer: every row of a curve, hosts, cores, cost, all findings and caveats.
    #[arg(long, short, alias = "all")]
    verbose: bool,

    /// Also print rate times distance in bit-metres per second, as the Land Speed Record counts, for hosts this far apart, such
    /// as 10037km.
    #[arg(long, value_name = "KM", conflicts_with_all = ["json", "form"])]
    distance: Option<Distance>,

    #[arg(long = "as", value_name = "FORMAT", help = registries::form_help(), value_parser = form, conflicts_with = "json")]
    form: Option<&'static str>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &ShowArgs) -> Result<u8, Failure> {
    let store = args.store.as_deref();
    let runs = args.runs.iter().map(|run| load(run, store)).collect::<Result<Vec<Run>, Failure>>()?;
    let form = args.form.or(args.json.then_some("json"));
    output::print(form, &runs, args.verbose, args.distance, Some(&output::Stored(store)))?;
    Ok(0)
}

/// A run from the store.
pub fn load(reference: &str, store: Option<&Path>) -> Result<Run, Failure> {
    stored::load(reference, store, |damage| errln!("thru: {damage}"))
}

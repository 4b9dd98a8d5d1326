//! `thru export`: runs in another format.

use std::path::{Path, PathBuf};

use clap::Args;
use command::Failure;
use command::setup::read_store;
use report::View;

use super::show::load;
use crate::flags::AxisFlags;
use crate::output;
use crate::registries;

/// Flags of `thru export`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/export.txt").trim_end())]
pub struct ExportArgs {
    /// The runs: ids or their first characters, names, `last` or `last~1`.
    #[arg(value_name = "RUN", required_unless_present = "all")]
    runs: Vec<String>,

    /// Write every run of the store, oldest first.
    #[arg(long, conflicts_with = "runs")]
    all: bool,

    /// Name of the format, or its file extension.
    #[arg(short, long, value_name = "FORMAT", value_parser = registries::formats(), ignore_case = true)]
    format: String,

    /// File to write, or a folder if the format has several files; `-` is standard output.
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    output: PathBuf,

    #[command(flatten)]
    axes: AxisFlags,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &ExportArgs) -> Result<u8, Failure> {
    let store = args.store.as_deref();
    let every = if args.all { all(store)? } else { Vec::new() };
    let runs = args.runs.iter().chain(&every).map(|run| load(run, store)).collect::<Result<Vec<_>, _>>()?;
    for path in output::write_pieces(&args.format, View { axes: args.axes.axes(), ..View::new(&runs) }, &args.output)? {
        outln!("{}", path.display());
    }
    Ok(0)
}

/// The ids of all runs, oldest first.
fn all(store: Option<&Path>) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = read_store(store)?.list(usize::MAX)?.into_iter().map(|row| row.id).collect();
    ids.reverse();
    Ok(ids)
}

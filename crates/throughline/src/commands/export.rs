//! `thru export`: a run in another format.

use std::path::PathBuf;

use clap::Args;
use report::View;
use session::Failure;

use super::show::load;
use crate::flags::AxisFlags;
use crate::output;
use crate::registries;

/// Flags of `thru export`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/export.txt").trim_end())]
pub struct ExportArgs {
    /// The run: its id, the start of its id, its name, `last` or `last~1`.
    run: String,

    /// The format, by its name or by an extension of its files.
    #[arg(long, value_name = "FORMAT", value_parser = registries::formats(), ignore_case = true)]
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
    let runs = [load(&args.run, args.store.as_deref())?];
    for path in output::write_pieces(&args.format, View { axes: args.axes.axes(), ..View::new(&runs) }, &args.output)? {
        outln!("{}", path.display());
    }
    Ok(0)
}

//! `thru report`: pages and pictures of one or several runs.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use options::values::whole;
use report::{ChosenCells, View};

use super::show::load;
use crate::flags::AxisFlags;
use crate::{output, registries};

/// Flags of `thru report`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/report.txt").trim_end())]
pub struct ReportArgs {
    /// The runs: ids or their first characters, names, `last` or `last~1`.
    #[arg(required = true)]
    runs: Vec<String>,

    #[arg(short, long, value_name = "FILE", required = true, help = registries::page_help())]
    output: PathBuf,

    /// Draw only this figure, such as throughput, saturation, signature, goodput, latency, tcp-window, time-sequence, host-cpu or
    /// topology [default: all].
    #[arg(long)]
    figure: Option<String>,

    /// Only these cells of a plan, by the levels of its factors; several times for more [default: all].
    #[arg(long = "cell", value_name = "FACTOR=LEVEL,...")]
    cells: Vec<ChosenCells>,

    /// Width of a .png or .svg in pixels; below 960 the layout is narrow [default: 1600].
    #[arg(long, value_name = "PIXELS", value_parser = whole(100..=10_000_u32))]
    width: Option<u32>,

    #[command(flatten)]
    axes: AxisFlags,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let ending = args.output.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if !report::FORMATS.iter().any(|format| format.is_page && format.extensions.contains(&ending.as_str())) {
        return Err(Failure::usage(format!(
            "{}: use the extension {}; `thru export` writes other formats",
            args.output.display(),
            registries::page_extensions()
        )));
    }
    let mut runs = args.runs.iter().map(|run| load(run, args.store.as_deref())).collect::<Result<Vec<_>, _>>()?;
    if !args.cells.is_empty() {
        let chosen = runs.into_iter().map(|run| report::chosen(run, &args.cells));
        runs = chosen.collect::<Result<_, _>>().map_err(Failure::usage)?;
    }
    let (figure, pixels, axes) = (args.figure.as_deref(), args.width, args.axes.axes());
    for path in output::write_pieces(&ending, View { figure, pixels, axes, ..View::new(&runs) }, &args.output)? {
        outln!("{}", path.display());
    }
    Ok(0)
}

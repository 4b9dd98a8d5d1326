//! `thru import`: results of other tools, as runs in the store.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use command::Failure;
use import::ImportFormat;
use model::Run;
use session::stored::imports::{self, ImportEvent, ImportRequest};

/// Flags of `thru import`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/import.txt").trim_end())]
pub struct ImportArgs {
    /// The files to import, plain or compressed with gzip.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The format of all files [default: detected].
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(import::FORMATS.iter().map(possible)))]
    format: Option<String>,

    /// Name of the runs; the second and later ones get `-2`, `-3` ... added [default: the file name].
    #[arg(long, value_parser = options::values::name)]
    name: Option<String>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &ImportArgs) -> Result<u8, Failure> {
    let request = ImportRequest {
        files: &args.files,
        format: args.format.as_deref().and_then(import::format),
        name: args.name.as_deref(),
        store: args.store.as_deref(),
    };
    imports::import(&request, |event| match event {
        ImportEvent::Refused { file, line: Some(line), reason } => errln!("thru: {}:{line}: {reason}", file.display()),
        ImportEvent::Refused { file, line: None, reason } => errln!("thru: {}: {reason}", file.display()),
        ImportEvent::Stored(run) => outln!("{}", line(run)),
    })?;
    Ok(0)
}

/// A format as `--format` takes it.
fn possible(format: &ImportFormat) -> PossibleValue {
    PossibleValue::new(format.name).help(format.help)
}

/// One line about a stored run.
fn line(run: &Run) -> String {
    let header = &run.header;
    let version = &header.tool.near_version;
    // A run of this program has a version without a name.
    let tool = if header.origin.is_some() { version.clone() } else { format!("thru {version}") };
    let rows: usize = run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
    let name = header.name.as_deref().unwrap_or_default();
    let cells = run.outcomes.len();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{}  {name}: {} by {tool}, {rows} measurement{} in {cells} cell{}",
        header.id,
        header.kind,
        plural(rows),
        plural(cells)
    )
}

//! Reads specs from command-line arguments: flags as after `thru stream` (rr, transfer, curve).

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use model::{Spec, Stop};

use crate::commands::{curve, rr, stream, transfer};
use crate::usage;
use session::failure::Failure;

/// The commands that can come first.
pub const PATTERNS: [&str; 4] = ["stream", "rr", "transfer", CURVE];
/// The command that is several measurements.
pub const CURVE: &str = "curve";

/// Flags of those commands that apply to the whole run, not to one spec.
pub const RUN_WIDE: [&str; 14] = [
    "host",
    "from",
    "token_file",
    "target",
    "budget",
    "trials",
    "seed",
    "json",
    "live",
    "quiet",
    "name",
    "store",
    "no_store",
    "as",
];

/// The arguments.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
struct SpecArgs {
    #[command(subcommand)]
    command: SpecCommand,
}

/// The command that comes first.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed a few times")]
enum SpecCommand {
    /// Goodput.
    Stream(stream::StreamArgs),
    /// Transactions.
    Rr(rr::RrArgs),
    /// A fixed amount.
    Transfer(transfer::TransferArgs),
    /// All block sizes.
    Curve(curve::CurveArgs),
}

/// Why arguments give no spec.
#[derive(Debug)]
pub enum SpecError {
    /// The value of a flag is wrong.
    Value(String),
    /// Any other usage error.
    Usage(String),
    /// A flag that applies to the whole run.
    RunWide(String),
    /// The flags cannot be combined.
    Conflict(Failure),
}

/// The spec of `words`, which begin with one of [`PATTERNS`].
///
/// # Errors
/// [`SpecError`] for arguments that the command does not take or that apply to the whole run, and for a curve, which has many specs.
pub fn spec(words: &[String]) -> Result<Spec, SpecError> {
    let mut specs = specs(words)?.into_iter();
    match (specs.next(), words.first().is_some_and(|word| word == CURVE)) {
        (Some(spec), false) => Ok(spec),
        _ => Err(SpecError::Usage(format!("'{CURVE}' is several measurements: measure one size with rr or stream"))),
    }
}

/// The specs of `words`: one, or one for each size of a curve. The trials of a curve are as long as `--time`.
///
/// # Errors
/// [`SpecError`] for arguments that the command does not take or that apply to the whole run.
pub fn specs(words: &[String]) -> Result<Vec<Spec>, SpecError> {
    let matches = SpecArgs::command().try_get_matches_from(words).map_err(|error| wrong(&error))?;
    if let Some(flag) = matches.subcommand().and_then(|(_, matches)| run_wide(matches)) {
        return Err(SpecError::RunWide(flag));
    }
    match SpecArgs::from_arg_matches(&matches).map_err(|error| wrong(&error))?.command {
        SpecCommand::Stream(args) => one(args.spec()),
        SpecCommand::Rr(args) => one(args.spec()),
        SpecCommand::Transfer(args) => one(args.spec()),
        SpecCommand::Curve(args) => {
            let stop = args.leg().map(|time| Stop::AboutNs(time.0));
            let timed = |spec: Spec| Spec { stop: stop.unwrap_or(spec.stop), ..spec };
            args.specs().map(|specs| specs.into_iter().map(timed).collect()).map_err(SpecError::Conflict)
        }
    }
}

fn one(spec: Result<Spec, Failure>) -> Result<Vec<Spec>, SpecError> {
    spec.map(|spec| vec![spec]).map_err(SpecError::Conflict)
}

/// The clap definition of a command.
pub fn command(pattern: &str) -> Option<Command> {
    SpecArgs::command().find_subcommand(pattern).cloned()
}

fn wrong(error: &clap::Error) -> SpecError {
    let sentence = usage::sentence(error);
    match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue | ErrorKind::TooManyValues => SpecError::Value(sentence),
        _ => SpecError::Usage(sentence),
    }
}

fn run_wide(matches: &ArgMatches) -> Option<String> {
    let typed = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let id = RUN_WIDE.iter().find(typed)?;
    Some(if *id == "host" { "HOST".to_owned() } else { format!("--{}", id.replace('_', "-")) })
}

//! The measurement in a word of the command line: flags as after `thru stream` (rr, transfer).

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use options::{TestKind, TestOptions, row};

use crate::commands::{rr, stream, transfer};
use crate::{habits, usage};

/// IDs of the flags that are short for options, or other programs' spellings of them.
pub const SHORT_FOR_OPTIONS: [&str; 2] = ["window", "rate_of_flow"];

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
}

/// Why arguments give no spec.
#[derive(Debug)]
pub enum SpecError {
    /// An unknown flag, or a value that its flag does not take.
    Usage(String),
    /// A flag that applies to the whole run.
    RunWide(String),
}

/// A measurement as a command line has it.
#[derive(Debug)]
pub struct Worded {
    /// What it measures.
    pub options: TestOptions,
    /// Whether it leaves the length of a trial open.
    pub own_time: bool,
}

/// The measurement of `words`, which begin with `stream`, `rr` or `transfer`.
///
/// # Errors
/// [`SpecError`] for arguments that the command does not take or that apply to the whole run, and for a curve, which has many specs.
pub fn worded(words: &[String]) -> Result<Worded, SpecError> {
    let curve = TestKind::Curve.name();
    if words.first().is_some_and(|word| word == curve) {
        return Err(SpecError::Usage(format!("'{curve}' is several measurements: measure one size with rr or stream")));
    }
    let wrong = |error: clap::Error| SpecError::Usage(usage::sentence(&error));
    let command = SpecArgs::command();
    let words = habits::of_side(words, &command).map_err(SpecError::Usage)?;
    let matches = command.try_get_matches_from(words).map_err(wrong)?;
    if let Some(flag) = matches.subcommand().and_then(|(command, matches)| run_wide(command, matches)) {
        return Err(SpecError::RunWide(flag));
    }
    let options = match SpecArgs::from_arg_matches(&matches).map_err(wrong)?.command {
        SpecCommand::Stream(args) => args.options(),
        SpecCommand::Rr(args) => args.options(),
        SpecCommand::Transfer(args) => args.options(),
    };
    let own_time = options.time.is_none();
    Ok(Worded { options, own_time })
}

/// The flag on the command line, as it is typed, that applies to the whole run: any flag that is not an option of a test.
fn run_wide(command: &str, matches: &ArgMatches) -> Option<String> {
    let test = TestKind::read(command).ok()?;
    let typed = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        let of_spec = SHORT_FOR_OPTIONS.contains(&id) || row(id, test).is_some();
        !of_spec && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let all = SpecArgs::command();
    let arg = all.find_subcommand(command)?.get_arguments().find(typed)?;
    Some(match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => "HOST".to_owned(),
    })
}

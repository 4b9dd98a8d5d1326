//! The one reader of specs that stand in words: flags as one would type them after `thru stream` (rr, transfer, curve).

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use model::{Spec, Stop};

use crate::commands::{curve, rr, stream, transfer};
use crate::failure::Failure;
use crate::usage;

/// The commands that words can begin with.
pub const PATTERNS: [&str; 4] = ["stream", "rr", "transfer", CURVE];
/// The one of them that is many measurements.
pub const CURVE: &str = "curve";

/// Flags of those commands that belong to the command as a whole, not to one of its specs.
pub const OF_THE_WHOLE: [&str; 14] = [
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

/// What stands in words.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
struct Words {
    #[command(subcommand)]
    command: Wanted,
}

/// The command they begin with.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed a few times")]
enum Wanted {
    /// Goodput.
    Stream(stream::StreamArgs),
    /// Transactions.
    Rr(rr::RrArgs),
    /// A fixed amount.
    Transfer(transfer::TransferArgs),
    /// All block sizes.
    Curve(curve::CurveArgs),
}

/// Why words make no spec.
#[derive(Debug)]
pub enum Wrong {
    /// What is wrong with the value of a flag.
    Value(String),
    /// What else no such command takes.
    Words(String),
    /// A flag, as it is typed, that belongs to the command as a whole.
    OfTheWhole(String),
    /// The flags make no sense together.
    Together(Failure),
}

/// The one spec that `words` describe; the first one is one of [`PATTERNS`].
///
/// # Errors
/// [`Wrong`] for words that no measuring command would take, or that belong to the whole; a curve, which is many specs.
pub fn spec(words: &[String]) -> Result<Spec, Wrong> {
    let mut specs = specs(words)?.into_iter();
    match (specs.next(), words.first().is_some_and(|word| word == CURVE)) {
        (Some(spec), false) => Ok(spec),
        _ => Err(Wrong::Words(format!("'{CURVE}' is many measurements: name one of its sizes with rr or stream"))),
    }
}

/// The specs that `words` describe: one, or one for each size of a curve, whose trials are as long as `--time` says.
///
/// # Errors
/// [`Wrong`] for words that no measuring command would take, or that belong to the whole.
pub fn specs(words: &[String]) -> Result<Vec<Spec>, Wrong> {
    let matches = Words::command().try_get_matches_from(words).map_err(|error| wrong(&error))?;
    if let Some(flag) = matches.subcommand().and_then(|(_, matches)| of_the_whole(matches)) {
        return Err(Wrong::OfTheWhole(flag));
    }
    match Words::from_arg_matches(&matches).map_err(|error| wrong(&error))?.command {
        Wanted::Stream(args) => one(args.spec()),
        Wanted::Rr(args) => one(args.spec()),
        Wanted::Transfer(args) => one(args.spec()),
        Wanted::Curve(args) => {
            let stop = args.leg().map(|time| Stop::AboutNs(time.0));
            let timed = |spec: Spec| Spec { stop: stop.unwrap_or(spec.stop), ..spec };
            args.specs().map(|specs| specs.into_iter().map(timed).collect()).map_err(Wrong::Together)
        }
    }
}

fn one(spec: Result<Spec, Failure>) -> Result<Vec<Spec>, Wrong> {
    spec.map(|spec| vec![spec]).map_err(Wrong::Together)
}

/// A command's flags as clap has them.
pub fn command(pattern: &str) -> Option<Command> {
    Words::command().find_subcommand(pattern).cloned()
}

fn wrong(error: &clap::Error) -> Wrong {
    let sentence = usage::sentence(error);
    match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue | ErrorKind::TooManyValues => Wrong::Value(sentence),
        _ => Wrong::Words(sentence),
    }
}

fn of_the_whole(matches: &ArgMatches) -> Option<String> {
    let typed = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let id = OF_THE_WHOLE.iter().find(typed)?;
    Some(if *id == "host" { "HOST".to_owned() } else { format!("--{}", id.replace('_', "-")) })
}

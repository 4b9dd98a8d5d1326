//! The measurement in a word of the command line: flags as after `thru stream` (rr, transfer).

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use session::draft::{SpecDraft, TestKind};

use crate::commands::{rr, stream, transfer};
use crate::usage;

/// IDs of the flags of the commands that measure that apply to the whole run, not to one spec.
#[rustfmt::skip]
pub const RUN_WIDE: [&str; 24] = [
    "host", "far_host", "from", "token_file", "no_path", "target", "budget", "trials", "seed", "name", "group", "store", "no_store",
    "json", "live", "tui", "quiet", "verbose", "each", "as", "iperf3_json", "username", "rsa_public_key_path", "use_pkcs1_padding",
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
    pub draft: SpecDraft,
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
    let matches = SpecArgs::command().try_get_matches_from(words).map_err(wrong)?;
    if let Some(flag) = matches.subcommand().and_then(|(command, matches)| run_wide(command, matches)) {
        return Err(SpecError::RunWide(flag));
    }
    let draft = match SpecArgs::from_arg_matches(&matches).map_err(wrong)?.command {
        SpecCommand::Stream(args) => args.draft(),
        SpecCommand::Rr(args) => args.draft(),
        SpecCommand::Transfer(args) => args.draft(),
    };
    let own_time = draft.time.is_none();
    Ok(Worded { draft, own_time })
}

/// A flag of a command that applies to the whole run, as it is typed.
fn run_wide(command: &str, matches: &ArgMatches) -> Option<String> {
    let typed = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        RUN_WIDE.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let all = SpecArgs::command();
    let arg = all.find_subcommand(command)?.get_arguments().find(typed)?;
    Some(match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => "HOST".to_owned(),
    })
}

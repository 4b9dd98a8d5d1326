//! Errors of the command line. Errors about values have our own text, the others that of clap.

use std::error::Error;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use command::Failure;
use options::closest;

use crate::{console, habits};

/// Exit code of a usage error.
const USAGE: u8 = 2;
/// Flags that have a new name, with that name.
const RENAMED: [(&str, &str); 1] = [("--wad", "--cc-rules")];

/// Prints the requested help, or the error of a command line; `file` is the one that added options to it. Returns the exit code.
///
/// # Errors
/// Help cannot be written to standard output.
pub fn refuse(error: &clap::Error, file: Option<&Path>) -> Result<u8, Failure> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let printed = error.print();
        // Requested help goes to standard output; help because of a missing argument goes to standard error.
        return if error.use_stderr() {
            Ok(USAGE)
        } else {
            printed.or_else(|error| console::failed(&error)).map(|()| 0)
        };
    }
    let own = of_value(error).or_else(|| of_renamed(error)).is_some();
    let details = match error.kind() {
        _ if own => String::new(),
        ErrorKind::UnknownArgument => of_unknown(error),
        _ => details(&error.to_string()),
    };
    err!("thru: {}\n{details}", sentence(error));
    if let Some(file) = file {
        errln!("thru: this command line includes the options in {}", file.display());
    }
    Ok(USAGE)
}

/// Prints the description of every command, the exit codes, environment variables and files.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print_all(command: &mut clap::Command) -> Result<u8, Failure> {
    command.print_long_help().or_else(|error| console::failed(&error)).map(|()| 0)
}

/// The error in one sentence.
pub fn sentence(error: &clap::Error) -> String {
    of_value(error).or_else(|| of_renamed(error)).unwrap_or_else(|| {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        first.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// The error of a value: its flag, and what is wrong with the value.
fn of_value(error: &clap::Error) -> Option<String> {
    let flag = context(error, ContextKind::InvalidArg)?.split([' ', '=', '[']).find(|word| !word.is_empty())?;
    let what = match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::ValueValidation, _) => error.source()?.to_string(),
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(known))) if !known.is_empty() => {
            format!("'{}' is not one of {}", context(error, ContextKind::InvalidValue)?, known.join(", "))
        }
        _ => return None,
    };
    Some(format!("{}: {what}", flag.trim_matches(['<', '>', '[', ']', '.'])))
}

/// The error of a flag that has a new name.
fn of_renamed(error: &clap::Error) -> Option<String> {
    let flag = context(error, ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let (old, new) = RENAMED.iter().find(|(old, _)| flag.split(['=', ' ']).next() == Some(old))?;
    Some(format!("{old} is now called {new}"))
}

/// What follows the error of an unknown flag: a known one if that is nearly the same, and usage.
fn of_unknown(error: &clap::Error) -> String {
    let bare = |flag: &str| flag.split(['=', ' ']).next().unwrap_or_default().trim_start_matches('-').to_owned();
    let flag = context(error, ContextKind::InvalidArg).map(bare).unwrap_or_default();
    let suggested = context(error, ContextKind::SuggestedArg).map(|known| known.trim_start_matches('-').to_owned());
    let others = habits::long_names().map(|name| name.trim_start_matches('-'));
    let known: Vec<&str> = suggested.as_deref().into_iter().chain(others).collect();
    let near = closest(&flag, &known).filter(|_| flag.len() > 1);
    let tip = near.map_or_else(String::new, |known| format!("\n  tip: did you mean '--{known}'?\n"));
    let text = error.to_string();
    let usage = text.find("Usage:").map_or_else(String::new, |at| format!("\n{}", &text[at..]));
    tip + &usage
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// clap's text after the first paragraph: suggestions and usage.
fn details(text: &str) -> String {
    text.split_once("\n\n").map_or_else(String::new, |(_, rest)| format!("\n{rest}"))
}

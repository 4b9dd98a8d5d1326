//! What is wrong with a command line, in words of our own where a value is wrong.

use std::error::Error;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::console;
use crate::failure::Failure;

/// Exit code of wrong usage.
const WRONG: u8 = 2;

/// Answers a command line that is none: with the help that was asked for, or with what is wrong. Returns the exit code.
///
/// # Errors
/// Where help cannot be written to standard output.
pub fn refuse(error: &clap::Error) -> Result<u8, Failure> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let printed = error.print();
        // Help that was asked for is a result; who typed too little reads it on standard error, if at all.
        return if error.use_stderr() {
            Ok(WRONG)
        } else {
            printed.or_else(|error| console::failed(&error)).map(|()| 0)
        };
    }
    let behind = if of_value(error).is_some() { String::new() } else { behind(&error.to_string()) };
    err!("thru: {}\n{behind}", sentence(error));
    Ok(WRONG)
}

/// What is wrong, in one sentence.
pub fn sentence(error: &clap::Error) -> String {
    of_value(error).unwrap_or_else(|| {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        first.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// The flag, and what its value is not.
fn of_value(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg)?.split([' ', '=', '[']).find(|word| !word.is_empty())?;
    let what = match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::ValueValidation, _) => error.source()?.to_string(),
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(known))) if !known.is_empty() => {
            format!("'{}' is none of {}", text(ContextKind::InvalidValue)?, known.join(", "))
        }
        _ => return None,
    };
    Some(format!("{}: {what}", flag.trim_matches(['<', '>', '[', ']', '.'])))
}

/// What clap says behind the first paragraph: what may have been meant, and the usage.
fn behind(text: &str) -> String {
    text.split_once("\n\n").map_or_else(String::new, |(_, rest)| format!("\n{rest}"))
}

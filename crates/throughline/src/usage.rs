//! What is wrong with a command line, in words of our own where a value is wrong.

use std::error::Error;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Exit code of wrong usage.
const WRONG: u8 = 2;

/// Ends a command line that is none: with the help that was asked for, or with what is wrong.
pub fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // Where nobody reads there is nobody to tell.
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(WRONG) } else { ExitCode::SUCCESS };
    }
    let behind = if of_value(error).is_some() { String::new() } else { behind(&error.to_string()) };
    // In one write, as a failure is said.
    let text = format!("thru: {}\n{behind}", sentence(error));
    eprint!("{text}");
    ExitCode::from(WRONG)
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

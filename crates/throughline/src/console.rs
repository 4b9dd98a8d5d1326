//! Standard output and standard error of all commands. A closed or full output does not end a command in the middle, and control
//! characters never reach the terminal.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use command::Failure;
use serde::Serialize;
use text::{RateUnit, Spelling, Text};

/// The error after which nothing more is written to standard output.
static WRITE_ERROR: Mutex<Option<io::Error>> = Mutex::new(None);

/// The unit of rates, if it is not the usual one.
static RATES: OnceLock<RateUnit> = OnceLock::new();

/// Prints one line to standard output, as [`text::say!`] writes it and without control characters.
macro_rules! outln {
    ($($words:tt)*) => { $crate::console::out(&($crate::console::line(&text::say!($($words)*)) + "\n")) };
}

/// Prints text with its own line ends to standard output, without other control characters.
macro_rules! out {
    ($($words:tt)*) => { $crate::console::out(&$crate::console::lines(&text::say!($($words)*))) };
}

/// Prints one line to standard error, without control characters.
macro_rules! errln {
    ($($words:tt)*) => { $crate::console::err(&($crate::console::line(&text::say!($($words)*)) + "\n")) };
}

/// Prints text with its own line ends to standard error, without other control characters.
macro_rules! err {
    ($($words:tt)*) => { $crate::console::err(&$crate::console::lines(&text::say!($($words)*))) };
}

/// Shows rates in this unit from now on.
pub fn show_rates_in(rates: RateUnit) {
    let _ = RATES.set(rates);
}

/// How texts are spelled on this command's screens and in its reports.
pub fn spelling() -> Spelling {
    Spelling { rates: RATES.get().copied().unwrap_or_default(), ..Spelling::default() }
}

/// A text on one line.
pub fn line(text: &Text) -> String {
    model::plain(&text.shown(spelling())).into_owned()
}

/// A text with its own line ends.
pub fn lines(text: &Text) -> String {
    model::plain_lines(&text.shown(spelling())).into_owned()
}

/// Prints a document, such as JSON or a source, to standard output as it is, without control characters other than line ends.
pub fn document(text: &str) {
    out(&model::plain_lines(text));
}

/// Prints a document as JSON to standard output.
pub fn json(document: &impl Serialize) -> Result<(), Failure> {
    self::document(&(serde_json::to_string_pretty(document)? + "\n"));
    Ok(())
}

/// Writes to standard output. After an error the command goes on to its end; [`finish`] returns the error.
pub fn out(text: &str) {
    let mut failed = write_error();
    if failed.is_none() {
        *failed = io::stdout().lock().write_all(text.as_bytes()).err();
    }
}

/// Writes to standard error in one write, since other processes under mpirun print at the same time. Errors are ignored.
pub fn err(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints the error that ends a command.
pub fn fail(failure: &Failure) {
    err!("thru: {}\n", failure.shown(spelling().rates));
}

/// Flushes standard output.
///
/// # Errors
/// Not all of the output could be written. A reader that closed its end (`thru runs | head`) is not an error.
pub fn finish() -> Result<(), Failure> {
    let mut failure = write_error();
    match failure.take().or_else(|| io::stdout().flush().err()) {
        Some(error) => failed(&error),
        None => Ok(()),
    }
}

/// The failure of a write to standard output; none if the reader closed its end.
pub fn failed(error: &io::Error) -> Result<(), Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(Failure::output(format!("cannot write to standard output: {error}")))
}

fn write_error() -> MutexGuard<'static, Option<io::Error>> {
    WRITE_ERROR.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Standard output and standard error, as every command writes to them: never in a way that a closed or full output ends the
//! command in the middle, and never with what a terminal would act upon.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;

/// Why standard output takes nothing more.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints one line, whatever the texts in it hold.
macro_rules! outln {
    ($($words:tt)*) => { $crate::console::out(&(model::plain(&format!($($words)*)) + "\n")) };
}

/// Prints text that brings its own line ends.
macro_rules! out {
    ($($words:tt)*) => { $crate::console::out(&model::plain_lines(&format!($($words)*))) };
}

/// One line for people on standard error, whatever the texts in it hold.
macro_rules! errln {
    ($($words:tt)*) => { $crate::console::err(&(model::plain(&format!($($words)*)) + "\n")) };
}

/// Text for people on standard error that brings its own line ends.
macro_rules! err {
    ($($words:tt)*) => { $crate::console::err(&model::plain_lines(&format!($($words)*))) };
}

/// Writes to standard output. Where that fails, the command goes on to its end, and [`finish`] says so.
pub fn out(text: &str) {
    let mut lost = lost();
    if lost.is_none() {
        *lost = io::stdout().lock().write_all(text.as_bytes()).err();
    }
}

/// Writes to standard error, in one write: under mpirun others print at the same time. A terminal that is gone hears nothing.
pub fn err(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Ends the output.
///
/// # Errors
/// Where not all of it could be written. A reader that went away (`thru runs | head`) had what it wanted.
pub fn finish() -> Result<(), Failure> {
    let mut lost = lost();
    match lost.take().or_else(|| io::stdout().flush().err()) {
        Some(error) => failed(&error),
        None => Ok(()),
    }
}

/// What a failed write to standard output means.
pub fn failed(error: &io::Error) -> Result<(), Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(Failure::output(format!("cannot write to standard output: {error}")))
}

fn lost() -> MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

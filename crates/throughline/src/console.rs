//! Standard output and standard error of all commands. A closed or full output does not end a command in the middle, and control
//! characters never reach the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use clap::builder::styling::{AnsiColor, Style};
use command::Failure;
use report::Tone;
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

/// Prints a screen to standard output, without control characters other than line ends. On a terminal its answer and its grades have
/// colours.
pub fn screen(text: &str) {
    out(&painted(&model::plain_lines(text), has_colours()));
}

/// Whether standard output shows colours: it is a terminal that has them, and `NO_COLOR` is not set.
fn has_colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_none = std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
    io::stdout().is_terminal() && !has_none && !is_set("NO_COLOR")
}

/// A screen with the colours of its parts.
fn painted(screen: &str, has_colours: bool) -> String {
    if !has_colours {
        return screen.to_owned();
    }
    let paint = |(tone, part): (Tone, &str)| match style(tone) {
        None => part.to_owned(),
        Some(style) => {
            // A line end has no colour, so that nothing of it reaches the next line.
            let (part, end) = part.strip_suffix('\n').map_or((part, ""), |part| (part, "\n"));
            format!("{style}{part}{style:#}{end}")
        }
    };
    report::toned(screen).into_iter().map(paint).collect()
}

fn style(tone: Tone) -> Option<Style> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some(Style::new().bold()),
        Tone::Good => Some(AnsiColor::Green.on_default()),
        Tone::Doubtful => Some(AnsiColor::Yellow.on_default()),
        Tone::Bad => Some(AnsiColor::Red.on_default().bold()),
        Tone::Faint => Some(Style::new().dimmed()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_no_character_and_end_before_a_line_does() {
        let screen = "x (run 1)\n\nGoodput      1.00 Gbit/s (3 trials, trust high)\n";
        assert_eq!(painted(screen, false), screen);
        let colours = painted(screen, true);
        assert!(colours.contains("\u{1b}[1m1.00 Gbit/s\u{1b}[0m") && colours.contains("\u{1b}[32mtrust high\u{1b}[0m"));
        assert!(colours.lines().all(|line| line.matches('\u{1b}').count() % 2 == 0), "{colours:?}");
    }
}

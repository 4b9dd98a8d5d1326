//! A measurement on the whole terminal (`--tui`).

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use command::Failure;
use command::setup::{command_line, own_program};
use model::Event;
use rustix::process::{Signal, getpid, kill_process};
use tui::{RunNews, RunView, TerminalScreen, ViewLook, Wish};

/// The measurement on the whole terminal.
pub struct FullScreen {
    screen: TerminalScreen<RunView>,
    notes: Vec<String>,
}

impl FullScreen {
    /// Takes the terminal over.
    pub fn open() -> Result<Self, Failure> {
        let view = RunView::new(command_line().join(" "), look());
        // What the user wants ends the measurement in order first.
        let screen = TerminalScreen::open(view, |_| end()).map_err(|error| no_terminal(&error, "--tui"))?;
        Ok(Self { screen, notes: Vec::new() })
    }

    /// Shows an event.
    pub fn event(&self, event: &Event) {
        self.screen.tell(RunNews::Event(Box::new(event.clone())));
    }

    /// Shows what is done now.
    pub fn status(&self, text: &str) {
        self.screen.tell(RunNews::Status(text.to_owned()));
    }

    /// Shows a line, and prints it later, too.
    pub fn note(&mut self, line: &str) {
        self.screen.tell(RunNews::Note(line.to_owned()));
        self.notes.push(line.to_owned());
    }

    /// Puts the terminal back, with the notes, and the last picture of a run that has `begun`. Starts this command again if the user
    /// wanted that.
    pub fn close(self, begun: bool) -> Result<(), Failure> {
        let closed = self.screen.close();
        if closed.wish == Some(Wish::Restart) {
            return Err(again());
        }
        if begun {
            closed.picture.iter().for_each(|line| outln!("{line}"));
            out!("\n");
        }
        self.notes.iter().for_each(|line| errln!("thru: {line}"));
        Ok(())
    }
}

/// How screens look: `NO_COLOR`, and the unit of rates.
pub fn look() -> ViewLook {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    ViewLook { plain, rates: crate::console::spelling().rates }
}

/// Ends this command as Ctrl-C does.
pub fn end() {
    let _ = kill_process(getpid(), Signal::INT);
}

/// The failure to take the terminal over.
pub fn no_terminal(error: &std::io::Error, option: &str) -> Failure {
    Failure::usage(format!("{option} needs a terminal: {error}; omit it, or use --live or --json in scripts"))
}

/// Becomes this command again; returns only if that fails.
fn again() -> Failure {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match own_program() {
        Ok(program) => Failure::other(format!("cannot start again: {}", Command::new(program).args(words).exec())),
        Err(failure) => failure,
    }
}

//! The screen of a measuring command: progress on standard error, or the events on standard output.

use std::io::IsTerminal;

use command::Failure;
use model::{Event, EventSink, SinkError};
use report::LiveLines;
use session::Screen;
use text::Text;

use super::live::LiveSink;
use super::progress::Progress;
use super::screen::FullScreen;
use crate::console;
use crate::flags::Output;
use crate::shape::Lines;

/// Shows a run on the terminal, as the flags say.
pub struct Terminal {
    progress: Option<Progress>,
    live: Option<LiveSink>,
    lines: Option<LiveLines>,
    full: Option<FullScreen>,
}

impl Terminal {
    /// Progress, unless the flags want quiet or the events; `lines` if standard output is for people.
    ///
    /// # Errors
    /// The whole terminal is wanted, and there is none.
    pub fn new(output: &Output, lines: Lines) -> Result<Self, Failure> {
        let shown = output.is_text() && lines != Lines::Off;
        let full = output.tui.then(FullScreen::open).transpose()?;
        Ok(Self {
            progress: (!output.quiet && !output.live && full.is_none()).then(Progress::new),
            live: output.live.then_some(LiveSink),
            lines: shown.then(|| LiveLines::new(lines == Lines::Each, console::spelling())),
            full,
        })
    }

    /// Progress on a terminal only: plain lines of every pass would fill a log.
    pub fn watching(quiet: bool) -> Self {
        let progress = (!quiet && std::io::stderr().is_terminal()).then(Progress::new);
        Self { progress, live: None, lines: None, full: None }
    }

    /// Does what may print lines to standard output, without the progress line.
    pub fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.beside(print),
            None => print(),
        }
    }

    /// Leaves the terminal to the result, or to the failure of a run that has not `begun`. Starts this command again if the user
    /// wanted that.
    pub fn close(self, begun: bool) -> Result<(), Failure> {
        self.full.map_or(Ok(()), |full| full.close(begun))
    }
}

impl EventSink for Terminal {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Some(full) = &self.full {
            full.event(event);
        }
        if let Some(progress) = &mut self.progress {
            let lines = self.lines.as_mut().map(|lines| lines.event(event)).unwrap_or_default();
            if !lines.is_empty() {
                progress.print(&lines);
            }
            progress.event(event)?;
        }
        self.live.as_mut().map_or(Ok(()), |live| live.event(event))
    }
}

impl Screen for Terminal {
    fn status(&mut self, what: &Text) {
        if let Some(progress) = &mut self.progress {
            progress.status(what);
        }
        if let Some(full) = &self.full {
            full.status(&console::line(what));
        }
    }

    fn note(&mut self, line: &Text) {
        if let Some(full) = &mut self.full {
            return full.note(&console::line(line));
        }
        if let Some(progress) = &mut self.progress {
            progress.finish();
        }
        errln!("thru: {line}");
    }
}

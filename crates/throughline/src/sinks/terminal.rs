//! The screen of a measuring command: progress on standard error, or the events on standard output.

use model::{Event, EventSink, SinkError};
use report::LiveLines;
use session::Screen;

use super::live::Live;
use super::progress::Progress;
use crate::flags::Output;
use crate::job::Lines;

/// Shows a run on the terminal, as the flags say.
pub struct Terminal {
    progress: Option<Progress>,
    live: Option<Live>,
    lines: Option<LiveLines>,
}

impl Terminal {
    /// Progress, unless the flags want quiet or the events; `lines` if standard output is for people.
    pub fn new(output: &Output, lines: Lines) -> Self {
        let shown = output.is_text() && lines != Lines::Off;
        Self {
            progress: (!output.quiet && !output.live).then(Progress::new),
            live: output.live.then_some(Live),
            lines: shown.then(|| LiveLines::new(lines == Lines::Each)),
        }
    }
}

impl EventSink for Terminal {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
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
    fn status(&mut self, what: &str) {
        if let Some(progress) = &mut self.progress {
            progress.status(what);
        }
    }

    fn note(&mut self, line: &str) {
        if let Some(progress) = &mut self.progress {
            progress.finish();
        }
        errln!("thru: {line}");
    }
}

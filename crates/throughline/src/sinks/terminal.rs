//! The screen of a measuring command: progress on standard error, or the events on standard output.

use model::{Event, EventSink, SinkError};
use session::Screen;

use super::live::Live;
use super::progress::Progress;
use crate::flags::Output;

/// Shows a run on the terminal, as the flags say.
pub struct Terminal {
    progress: Option<Progress>,
    live: Option<Live>,
}

impl Terminal {
    /// Progress, unless the flags want quiet or the events.
    pub fn new(output: &Output) -> Self {
        Self { progress: (!output.quiet && !output.live).then(Progress::new), live: output.live.then_some(Live) }
    }
}

impl EventSink for Terminal {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Some(progress) = &mut self.progress {
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

//! All receivers of a run's events together.

use model::{Event, EventSink, SinkError};

use super::collect::Collect;
use super::live::Live;
use super::progress::Progress;

/// All sinks of a run. An error of the store ends the run, after the other sinks have received the event.
pub struct Sinks<'a> {
    collect: &'a mut Collect,
    /// The progress line, where it is shown.
    pub progress: Option<Progress>,
    live: Option<Live>,
    recorder: Option<store::Recorder>,
    /// The first event of a run that has no result yet.
    pending_start: Option<Event>,
}

impl EventSink for Sinks<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.collect.event(event)?;
        if let Some(progress) = &mut self.progress {
            progress.event(event)?;
        }
        let kept = self.keep(event);
        let shown = self.live.as_mut().map_or(Ok(()), |live| live.event(event));
        kept.and(shown)
    }
}

impl<'a> Sinks<'a> {
    /// The sinks that are given.
    pub fn new(
        collect: &'a mut Collect,
        progress: Option<Progress>,
        live: Option<Live>,
        recorder: Option<store::Recorder>,
    ) -> Self {
        Self { collect, progress, live, recorder, pending_start: None }
    }
}

impl Sinks<'_> {
    /// Stores an event. A run is stored from its first result on: one that is refused before it measures anything is not stored.
    fn keep(&mut self, event: &Event) -> Result<(), SinkError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        match event {
            Event::Run(_) => {
                self.pending_start = Some(event.clone());
                Ok(())
            }
            Event::Interval { .. } | Event::Phase(_) => Ok(()),
            Event::End(_) if self.pending_start.is_some() => Ok(()),
            _ => {
                self.pending_start.take().map_or(Ok(()), |start| recorder.event(&start))?;
                recorder.event(event)
            }
        }
    }
}

//! All receivers of a run's events together.

use command::Failure;
use model::{Event, EventSink, Run, SinkError};
use text::Text;

use super::collect::Collect;
use super::screen::Screen;
use crate::run::followers::Followers;
use crate::run::on_bus::OnBus;

/// All sinks of a run. An error of the store ends the run, after the other sinks have received the event.
pub(super) struct Sinks<'s> {
    collect: Collect,
    screen: &'s mut dyn Screen,
    recorder: Option<store::Recorder>,
    followers: Followers,
    /// Where the run is kept for others.
    on_bus: Option<OnBus>,
    /// The first event of a run that has no result yet.
    pending_start: Option<Event>,
}

impl EventSink for Sinks<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.collect.event(event)?;
        let kept = self.keep(event).and_then(|kept| self.summarise(event, kept));
        let shown = self.screen.event(event);
        let store = self.recorder.as_ref().map(store::Recorder::path);
        self.followers.event(event, store, matches!(kept, Ok(true)));
        if let Some(bus) = self.on_bus.as_mut().filter(|_| kept.is_ok()) {
            bus.event(event);
        }
        kept.and(shown)
    }
}

impl<'s> Sinks<'s> {
    /// The document, the screen and, where there is one, the store.
    pub(super) fn new(screen: &'s mut dyn Screen, recorder: Option<store::Recorder>) -> Self {
        Self {
            collect: Collect::default(),
            screen,
            recorder,
            followers: Followers::new(),
            on_bus: None,
            pending_start: None,
        }
    }

    /// Shows what is done now.
    pub(super) fn status(&mut self, what: impl Into<Text>) {
        self.screen.status(&what.into());
    }

    /// Shows a line in any case.
    pub(super) fn note(&mut self, line: impl Into<Text>) {
        self.screen.note(&line.into());
    }

    /// Continues a run: what it has goes before what is measured now.
    pub(super) fn resume(&mut self, run: Run) -> Result<(), Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.resume(&run.header.id)?;
        }
        self.collect.0 = Some(run);
        Ok(())
    }

    /// Keeps the run on a bus as well.
    pub(super) fn keep_on(&mut self, bus: OnBus) {
        self.on_bus = Some(bus);
    }

    /// Waits until the bus has the run, if it is kept on one; false if it does not take it.
    pub(super) async fn leave_bus(&mut self) -> bool {
        let Some(bus) = self.on_bus.take() else { return true };
        match bus.finish().await {
            Some(line) => {
                self.note(line);
                false
            }
            None => true,
        }
    }

    /// The document of the run.
    pub(super) fn document(self) -> Result<Run, Failure> {
        self.collect.0.ok_or_else(|| Failure::other("the run did not start"))
    }

    /// Stores the answer of a run that has ended, if that was kept.
    fn summarise(&mut self, event: &Event, kept: bool) -> Result<bool, SinkError> {
        let ended = (kept && matches!(event, Event::End(_))).then_some(self.collect.0.as_ref()).flatten();
        if let Some((run, recorder)) = ended.zip(self.recorder.as_mut()) {
            recorder.summarise(&report::summary(run)).map_err(|error| SinkError(error.to_string()))?;
        }
        Ok(kept)
    }

    /// Stores an event, and says whether it did. A run is stored from its first result on: one that is refused before it measures
    /// anything is not stored.
    fn keep(&mut self, event: &Event) -> Result<bool, SinkError> {
        let Some(recorder) = &mut self.recorder else { return Ok(false) };
        match event {
            Event::Run(_) => {
                self.pending_start = Some(event.clone());
                Ok(false)
            }
            transient if transient.is_transient() => Ok(false),
            Event::End(_) if self.pending_start.is_some() => Ok(false),
            _ => {
                self.pending_start.take().map_or(Ok(()), |start| recorder.event(&start))?;
                recorder.event(event).map(|()| true)
            }
        }
    }
}

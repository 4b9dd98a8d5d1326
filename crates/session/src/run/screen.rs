//! What shows a run while it is conducted.

use model::{EventSink, Text};

/// The place where a user sees a run: a terminal, or nothing. It also gets every event.
pub trait Screen: EventSink {
    /// What is done now, before the first trial.
    fn status(&mut self, what: &Text);

    /// A line that must be seen, even where progress is not shown.
    fn note(&mut self, line: &Text);
}

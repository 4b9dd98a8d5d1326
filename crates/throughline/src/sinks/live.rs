//! The events of a run as lines of JSON, when they happen.

use std::io::Write;

use model::{Event, EventSink, SinkError};

/// Writes each event to standard output and flushes it.
pub struct LiveSink;

impl EventSink for LiveSink {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        let line = serde_json::to_string(event).map_err(|error| SinkError(error.to_string()))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| {
            SinkError(format!("cannot write to standard output: {error}; the reader of --live closed it"))
        })
    }
}

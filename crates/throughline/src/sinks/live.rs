//! The run as lines of JSON while it happens.

use std::io::Write;

use model::{Event, EventSink, SinkError};

/// Writes each event to standard output, flushed, so that a pipe sees it at once.
pub struct Live;

impl EventSink for Live {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        let line = serde_json::to_string(event).map_err(|error| SinkError(error.to_string()))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| {
            SinkError(format!("standard output: {error}; it was closed while --live was writing to it"))
        })
    }
}

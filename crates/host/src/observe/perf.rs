//! Cycles and instructions of all cores together, if the machine and its permissions allow counting them.

use std::io;

use super::{ObservedValues, Observer};
use crate::sys::{ProcessorEvents, Sys};

/// Counters that run since the observer was made.
pub(super) struct Perf(Box<dyn ProcessorEvents>);

impl Perf {
    pub(super) fn start(sys: &dyn Sys) -> io::Result<Self> {
        let events = sys.processor_events();
        events.map(Self).map_err(|error| io::Error::new(error.kind(), format!("perf_event_open: {error}")))
    }
}

impl Observer for Perf {
    fn read(&mut self, _: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
        for (name, count) in self.0.read()? {
            reading.counter(format_args!("perf.{name}"), count);
        }
        Ok(())
    }
}

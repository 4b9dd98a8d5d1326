//! The stream that joins measuring, storing and showing: what `--live` prints, and what the store appends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Advice, Cell, Ending, Finding, Interval, Outcome, Pass, RunHeader, Trial};

/// One thing that happened in a run, in order. As NDJSON each is one line with its kind under `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "events are few and passed by reference")]
pub enum Event {
    /// The run starts.
    Run(RunHeader),
    /// Cells were added to the plan (an adaptive curve).
    Cells {
        /// The new cells.
        cells: Vec<Cell>,
    },
    /// Where the run stands; for people who wait.
    Phase(Phase),
    /// A live reading of a trial that is under way; not kept.
    Interval {
        /// The pass.
        pass: u32,
        /// `near` or `far`.
        end: String,
        /// The reading.
        interval: Interval,
    },
    /// A trial ended.
    Trial(Trial),
    /// A pass ended.
    Pass(Pass),
    /// A cell is done.
    Outcome(Outcome),
    /// Something was concluded.
    Finding(Finding),
    /// A search through settings came to an end.
    Advice(Advice),
    /// The run ended.
    End(Ending),
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// What is going on, such as `waiting for 2 others` or `pass 7: 31 of 124 sizes left`.
    pub activity: String,
    /// Cells that need no more trials.
    pub cells_done: u32,
    /// All cells.
    pub cells: u32,
    /// Expected time left in ns, as far as it can be told.
    pub remaining_ns: Option<u64>,
}

/// Takes events: the store, the live output, the progress display.
pub trait EventSink {
    /// Takes one event. An error ends the run cleanly: what was taken before it stays.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;
}

/// An event could not be kept or shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

impl<S: EventSink + ?Sized> EventSink for &mut S {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        (**self).event(event)
    }
}

impl EventSink for Vec<Box<dyn EventSink + '_>> {
    /// Every sink gets every event; the first failure is reported after all had it.
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.iter_mut().map(|sink| sink.event(event)).fold(Ok(()), Result::and)
    }
}

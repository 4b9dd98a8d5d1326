//! The stream of events from the measurement to the store and the display: what `--live` prints and the store appends.

use std::time::Duration;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use text::{Said, say};

use crate::{Advice, Cell, Ending, Finding, Interval, Live, Outcome, Pass, Reading, Retest, RunHeader, Text, Trial};

/// One event of a run, in order. In NDJSON each event is one line, with its kind in `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(clippy::large_enum_variant, reason = "events are few and passed by reference")]
pub enum Event {
    /// The run starts.
    Run(RunHeader),
    /// Cells were added to the run (an adaptive curve, or a search).
    Cells {
        /// The new cells.
        cells: Vec<Cell>,
    },
    /// The progress of the run, for display.
    Phase(Phase),
    /// A live reading of a running trial; not stored.
    Interval {
        /// The pass.
        pass: u32,
        /// `near` or `far`.
        end: String,
        /// The reading.
        interval: Interval,
    },
    /// The counts of a running trial so far, about once a second; not stored.
    Reading {
        /// The pass.
        pass: u32,
        /// `near` or `far`.
        end: String,
        /// The counts.
        reading: Reading,
    },
    /// A trial ended.
    Trial(Trial),
    /// A trial ended that tests again what stands out.
    Retest(Retest),
    /// A pass ended.
    Pass(Pass),
    /// A cell is done.
    Outcome(Outcome),
    /// A conclusion.
    Finding(Finding),
    /// A search through settings ended.
    Advice(Advice),
    /// The run ended.
    End(Ending),
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Phase {
    /// The current activity, such as `trial 3` or `pass 7: 31 sizes left`.
    #[serde(with = "text::as_string")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub activity: Text,
    /// Cells that need no more trials.
    pub cells_done: u32,
    /// All cells.
    pub cells: u32,
    /// Estimated remaining time, ns; null if it is unknown.
    pub remaining_ns: Option<u64>,
}

impl Phase {
    /// How much of the run is done after `elapsed`, 0 to 1: by the time left, otherwise by cells. `None` if neither is known. The cells of
    /// a plan are done only near its end, because they are measured in rounds.
    #[must_use]
    pub fn share(&self, elapsed: Duration) -> Option<f64> {
        let elapsed = elapsed.as_nanos() as f64;
        let by_time = self.remaining_ns.map(|left| elapsed / (elapsed + left as f64)).filter(|share| share.is_finite());
        by_time.or_else(|| (self.cells > 1).then(|| f64::from(self.cells_done.min(self.cells)) / f64::from(self.cells)))
    }

    /// The same phase this much later, while nothing else is heard. What takes longer than was thought has no known time left.
    #[must_use]
    pub fn after(&self, time: Duration) -> Self {
        let passed = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let remaining_ns = self.remaining_ns.and_then(|left| left.checked_sub(passed)).filter(|left| *left > 0);
        Self { remaining_ns, ..self.clone() }
    }
}

impl Said for Phase {
    fn say(&self) -> Text {
        let done = if self.cells > 1 && self.cells_done > 0 {
            say!(", {} of {} done", self.cells_done, self.cells)
        } else {
            Text::default()
        };
        let left = match self.remaining_ns.map(|ns| ns.div_ceil(1_000_000_000)) {
            None => Text::default(),
            Some(seconds @ 0..120) => say!(", about {seconds} s left"),
            Some(seconds @ 120..600) => say!(", about {} min {:02} s left", seconds / 60, seconds % 60),
            Some(seconds) => say!(", about {} min left", seconds.div_ceil(60)),
        };
        say!("{}{done}{left}", self.activity)
    }
}

impl Event {
    /// A report of the `end` (`near` or `far`) of a trial that runs.
    #[must_use]
    pub fn live(pass: u32, end: &str, live: Live) -> Self {
        let end = end.to_owned();
        match live {
            Live::Interval(interval) => Self::Interval { pass, end, interval },
            Live::Reading(reading) => Self::Reading { pass, end, reading },
        }
    }

    /// Whether it is only for display, and not part of the record of a run.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Phase(_) | Self::Interval { .. } | Self::Reading { .. })
    }
}

/// A receiver of events: the store, the live output, the progress display.
pub trait EventSink {
    /// Receives one event. An error ends the run in order: earlier events are kept.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;
}

/// An event could not be stored or shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

impl<S: EventSink + ?Sized> EventSink for &mut S {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        (**self).event(event)
    }
}

impl EventSink for Vec<Box<dyn EventSink + '_>> {
    /// Every sink gets every event; the first error is returned after all sinks had it.
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.iter_mut().map(|sink| sink.event(event)).fold(Ok(()), Result::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_follows_the_time_left_and_otherwise_the_cells() {
        let second = Duration::from_secs(1);
        let phase = |cells, cells_done, remaining_ns| Phase { cells, cells_done, remaining_ns, ..Phase::default() };
        assert_eq!(phase(24, 0, Some(3_000_000_000)).share(second), Some(0.25));
        assert_eq!(phase(24, 6, None).share(second), Some(0.25));
        assert_eq!(phase(1, 0, None).share(second), None);
        assert_eq!(phase(1, 0, Some(0)).share(Duration::ZERO), None);
    }

    #[test]
    fn the_time_left_falls_while_nothing_is_heard() {
        let activity = "trial 1".into();
        let phase = Phase { activity, remaining_ns: Some(10_000_000_000), ..Phase::default() };
        assert_eq!(phase.say().plain(), "trial 1, about 10 s left");
        assert_eq!(phase.after(Duration::from_millis(6500)).say().plain(), "trial 1, about 4 s left");
        assert_eq!(phase.after(Duration::from_secs(11)).say().plain(), "trial 1", "longer than was thought");
        assert_eq!(phase.after(Duration::from_secs(11)).share(Duration::from_secs(11)), None);
        let unknown = Phase { remaining_ns: None, ..phase };
        assert_eq!(unknown.after(Duration::from_secs(1)).say().plain(), "trial 1");
    }
}

//! The readings of the trial that runs.

use std::collections::BTreeMap;

use model::{Reading, Spec, Trial};

use super::counts::Counts;

/// Joins the readings of both ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Readings {
    /// Those whose other end is due, by number.
    due: BTreeMap<u32, Counts>,
    /// The last whole one.
    last: Option<Counts>,
}

impl Readings {
    /// Adds a reading of an end (`near` or `far`). When it completes a moment, returns the counts of the moment before in this trial
    /// and those of this one.
    pub(super) fn add(&mut self, spec: &Spec, end: &str, reading: &Reading) -> Option<(Option<Counts>, Counts)> {
        let counts = self.due.entry(reading.number).or_default();
        counts.end(end).add(reading);
        if !counts.is_complete(spec) {
            return None;
        }
        let counts = self.due.remove(&reading.number)?;
        // Earlier ones are no longer waited for.
        self.due.retain(|number, _| *number > reading.number);
        Some((self.last.replace(counts.clone()), counts))
    }

    /// The trial has ended: the counts of its last moment, if it had any, and its totals.
    pub(super) fn end(&mut self, trial: &Trial) -> (Option<Counts>, Counts) {
        self.due.clear();
        let before = self.last.take();
        let counts = Counts::at_end(trial, before.as_ref());
        (before, counts)
    }
}

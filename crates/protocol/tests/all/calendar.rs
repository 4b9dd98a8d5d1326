//! What is going to happen in a simulation.

use std::collections::BTreeMap;
use std::time::Duration;

/// Events in order of their times; those at the same time happen as they were scheduled.
#[derive(Debug)]
pub(super) struct Calendar<T> {
    due: BTreeMap<(Duration, u64), T>,
    scheduled: u64,
}

impl<T> Default for Calendar<T> {
    fn default() -> Self {
        Self { due: BTreeMap::new(), scheduled: 0 }
    }
}

impl<T> Calendar<T> {
    pub(super) fn schedule(&mut self, at: Duration, event: T) {
        self.scheduled += 1;
        self.due.insert((at, self.scheduled), event);
    }

    /// Takes the next event, with its time.
    pub(super) fn next(&mut self) -> Option<(Duration, T)> {
        self.due.pop_first().map(|((at, _), event)| (at, event))
    }

    pub(super) fn clear(&mut self) {
        self.due.clear();
    }
}

//! The flags that stop a trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags shared by a trial's threads and whoever may end it.
#[derive(Debug, Default)]
pub struct Signals {
    stop: AtomicBool,
    abort: AtomicBool,
}

impl Signals {
    /// Fresh flags.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Ends the trial early: senders stop, connections are broken, and the counts are returned as cut short.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::SeqCst);
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether senders and requesters should stop.
    #[inline]
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn aborting(&self) -> bool {
        self.abort.load(Ordering::Relaxed)
    }

    /// Ends the trial as its clock does: senders and requesters stop, data in flight is counted.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

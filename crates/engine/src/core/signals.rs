//! The flags that stop a trial.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Flags shared by a trial's threads and whoever may end it.
#[derive(Default)]
pub struct Signals {
    stop: AtomicBool,
    abort: AtomicBool,
    before_start: Mutex<Option<BeforeStart>>,
}

type BeforeStart = Box<dyn FnOnce() + Send>;

impl Signals {
    /// Fresh flags.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Calls this once all threads are ready, with their buffers and payload, and before any of them moves data. They wait for it.
    pub fn before_start(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_start.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(call));
    }

    /// All threads are ready.
    pub(crate) fn ready(&self) {
        let call = self.before_start.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(call) = call {
            call();
        }
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

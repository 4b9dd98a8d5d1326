//! Where the threads of a trial wait until all have arrived.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier whose number of threads is not known before they start: one of them may fail to start.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    arrived: usize,
    open: bool,
}

impl Gate {
    /// Waits until it is opened.
    pub(super) fn pass(&self) {
        let mut state = self.lock();
        state.arrived += 1;
        self.changed.notify_all();
        while !state.open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for this many threads.
    pub(super) fn gather(&self, threads: usize) {
        let mut state = self.lock();
        while state.arrived < threads {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for this many threads and releases them.
    pub(super) fn open(&self, threads: usize) {
        self.gather(threads);
        self.lock().open = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn nobody_passes_before_all_are_there() {
        let (gate, passed) = (Gate::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let enter = || {
                gate.pass();
                passed.fetch_add(1, Ordering::SeqCst);
            };
            scope.spawn(enter);
            scope.spawn(enter);
            while gate.lock().arrived < 2 {
                std::thread::yield_now();
            }
            assert_eq!(passed.load(Ordering::SeqCst), 0);
            gate.open(2);
        });
        assert_eq!(passed.load(Ordering::SeqCst), 2);
    }
}

//! A library that a process has once and that one thread may call at a time. Measuring threads take no lock: the right
//! to call belongs to a channel, from its first message to its last.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::now_ns;

/// The library, once started, and whether some thread may be calling it.
pub(crate) struct Exclusive<T: 'static> {
    library: OnceLock<T>,
    held: AtomicBool,
}

/// The right to call the library, until it is dropped.
pub(crate) struct ExclusiveHandle<T: 'static> {
    exclusive: &'static Exclusive<T>,
    library: &'static T,
}

impl<T> Exclusive<T> {
    pub(crate) const fn new() -> Self {
        Self { library: OnceLock::new(), held: AtomicBool::new(false) }
    }

    /// The library, if it is started, for queries that need no call.
    pub(crate) fn library(&self) -> Option<&T> {
        self.library.get()
    }

    /// Starts it. False if it was already started.
    pub(crate) fn start(&self, library: T) -> bool {
        self.library.set(library).is_ok()
    }

    /// The right to call, unless another thread has it or nothing is started.
    pub(crate) fn take(&'static self) -> Option<ExclusiveHandle<T>> {
        let library = self.library.get()?;
        // Not `then_some`: a value created and dropped there would end another thread's right.
        (!self.held.swap(true, Ordering::SeqCst)).then(|| ExclusiveHandle { exclusive: self, library })
    }

    /// The same, waiting for it.
    pub(crate) fn wait(&'static self, deadline_ns: u64) -> Option<ExclusiveHandle<T>> {
        loop {
            let held = self.take();
            if held.is_some() || self.library.get().is_none() || now_ns() > deadline_ns {
                return held;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl<T> Deref for ExclusiveHandle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.library
    }
}

impl<T> Drop for ExclusiveHandle<T> {
    fn drop(&mut self) {
        self.exclusive.held.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_at_a_time_and_none_before_the_start() {
        static EXCLUSIVE: Exclusive<u32> = Exclusive::new();
        assert!(EXCLUSIVE.take().is_none());
        assert!(EXCLUSIVE.start(5) && !EXCLUSIVE.start(6));
        let first = EXCLUSIVE.take().expect("free");
        assert!(EXCLUSIVE.take().is_none());
        assert!(EXCLUSIVE.wait(now_ns()).is_none(), "also after a refusal");
        assert_eq!(*first, 5);
        drop(first);
        assert!(EXCLUSIVE.wait(now_ns()).is_some());
    }
}

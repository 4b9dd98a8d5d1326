//! A library that a process has once and that one thread may call at a time. Measuring threads take no lock: the library
//! belongs to a channel, from its first message to its last.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::now_ns;

/// Where the library is while nobody calls it.
pub(crate) struct Exclusive<T: 'static>(Mutex<Place<T>>);

enum Place<T> {
    /// It was not started.
    Absent,
    Free(T),
    /// Some handle has it, or it has ended.
    Taken,
}

/// The library itself, until it is dropped. `T` need not be `Sync`: no second thread can refer to it.
pub(crate) struct ExclusiveHandle<T: 'static> {
    exclusive: &'static Exclusive<T>,
    /// None only while the handle is dropped or taken apart.
    library: Option<T>,
}

impl<T> Exclusive<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Place::Absent))
    }

    fn place(&self) -> MutexGuard<'_, Place<T>> {
        // Its value is replaced in one step: a panic elsewhere leaves it right.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was started; true also after its end.
    pub(crate) fn is_started(&self) -> bool {
        !matches!(*self.place(), Place::Absent)
    }

    /// Starts it. False if it was already started.
    pub(crate) fn start(&self, library: T) -> bool {
        let mut place = self.place();
        let absent = matches!(*place, Place::Absent);
        if absent {
            *place = Place::Free(library);
        }
        absent
    }

    /// The library, unless another thread has it or there is none.
    pub(crate) fn take(&'static self) -> Option<ExclusiveHandle<T>> {
        let mut place = self.place();
        if !matches!(*place, Place::Free(_)) {
            return None;
        }
        let Place::Free(library) = std::mem::replace(&mut *place, Place::Taken) else { return None };
        Some(ExclusiveHandle { exclusive: self, library: Some(library) })
    }

    /// The same, waiting for it.
    pub(crate) fn wait(&'static self, deadline_ns: u64) -> Option<ExclusiveHandle<T>> {
        loop {
            let held = self.take();
            if held.is_some() || !self.is_started() || now_ns() > deadline_ns {
                return held;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl<T> ExclusiveHandle<T> {
    /// Takes the library away for good: nobody has it after that.
    pub(crate) fn into_inner(mut self) -> Option<T> {
        self.library.take()
    }
}

impl<T> Deref for ExclusiveHandle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.library {
            Some(library) => library,
            // Both functions that take it have the handle to themselves.
            None => unreachable!("a handle has its library until its end"),
        }
    }
}

impl<T> Drop for ExclusiveHandle<T> {
    fn drop(&mut self) {
        if let Some(library) = self.library.take() {
            *self.exclusive.place() = Place::Free(library);
        }
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

    #[test]
    fn nobody_has_what_was_taken_away() {
        // As MPI, which is no thread's but the holder's.
        static EXCLUSIVE: Exclusive<std::cell::Cell<u32>> = Exclusive::new();
        assert!(!EXCLUSIVE.is_started() && EXCLUSIVE.start(5.into()) && EXCLUSIVE.is_started());
        let held = EXCLUSIVE.take().expect("free");
        assert_eq!(held.into_inner().map(|library| library.get()), Some(5));
        assert!(EXCLUSIVE.wait(now_ns()).is_none() && !EXCLUSIVE.start(6.into()) && EXCLUSIVE.is_started());
    }
}

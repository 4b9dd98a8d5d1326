//! What is in flight, by the time at which it is due.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Entries with due times, in order of time, and in order of arrival for equal times.
///
/// Entries that arrive in order, which on most paths is all, are in a queue; only the others need sorting.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    line: VecDeque<Due<T>>,
    strays: BinaryHeap<Due<T>>,
    pushed: u64,
}

#[derive(Debug)]
struct Due<T> {
    at_ns: u64,
    order: u64,
    what: T,
}

impl<T> Due<T> {
    fn key(&self) -> (u64, u64) {
        (self.at_ns, self.order)
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    /// Reversed, because the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> Schedule<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { line: VecDeque::with_capacity(capacity), strays: BinaryHeap::with_capacity(1_024), pushed: 0 }
    }

    /// Adds an entry. `astray`: later entries will be due before it.
    pub(crate) fn push(&mut self, at_ns: u64, what: T, astray: bool) {
        let due = Due { at_ns, order: self.pushed, what };
        self.pushed += 1;
        if astray || self.line.back().is_some_and(|last| last.at_ns > at_ns) {
            self.strays.push(due);
        } else {
            self.line.push_back(due);
        }
    }

    fn stray_is_first(&self) -> bool {
        match (self.line.front(), self.strays.peek()) {
            (Some(line), Some(stray)) => stray.key() < line.key(),
            (line, stray) => line.is_none() && stray.is_some(),
        }
    }

    /// The first due entry, and its time, ns.
    pub(crate) fn first(&self) -> Option<(u64, &T)> {
        let first = if self.stray_is_first() { self.strays.peek() } else { self.line.front() };
        first.map(|due| (due.at_ns, &due.what))
    }

    /// Removes it.
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let first = if self.stray_is_first() { self.strays.pop() } else { self.line.pop_front() };
        first.map(|due| (due.at_ns, due.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn things_come_out_by_time_and_then_as_they_came(
            pushes in prop::collection::vec((0_u64..50, any::<bool>(), 0_usize..3), 0..200),
        ) {
            let mut schedule = Schedule::new(4);
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, (at, astray, pops)) in pushes.into_iter().enumerate() {
                schedule.push(at, number, astray);
                model.push((at, number));
                model.sort_unstable();
                for _ in 0..pops {
                    prop_assert_eq!(schedule.first().map(|(at, what)| (at, *what)), model.first().copied());
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(schedule.pop(), expected);
                }
            }
            let rest: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
            prop_assert_eq!(rest, model);
        }
    }
}

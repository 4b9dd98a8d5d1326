//! Which datagrams have arrived: new, duplicate or late.

use std::ops::Range;

/// Remembers the last 65,536 sequence numbers, so that a duplicate is not taken for a new datagram.
pub(crate) struct Sequence {
    /// One past the highest number seen.
    next: u64,
    /// Bit `n % WINDOW` is set when number `n` of the window has come.
    seen: Vec<u64>,
}

/// Classification of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Higher than all before.
    New,
    /// Lower than a previous one, and not seen before (or too old to know).
    Late,
    /// Seen before.
    Duplicate,
}

const WINDOW: u64 = 1 << 16;

impl Sequence {
    pub(crate) fn new() -> Self {
        Self { next: 0, seen: vec![0; (WINDOW / 64) as usize] }
    }

    /// Classifies `number` and remembers it.
    #[inline]
    pub(crate) fn arrive(&mut self, number: u64) -> Arrival {
        // No sender counts that far, and it has no next number.
        if number == u64::MAX {
            return Arrival::Duplicate;
        }
        if number >= self.next {
            // Clear what falls out of the window; after a gap of a whole window that is everything.
            if number - self.next >= WINDOW {
                self.seen.fill(0);
            } else {
                self.clear(self.next..number);
            }
            self.next = number + 1;
            self.set(number);
            return Arrival::New;
        }
        if self.next - number > WINDOW {
            return Arrival::Late;
        }
        if self.is_set(number) {
            return Arrival::Duplicate;
        }
        self.set(number);
        Arrival::Late
    }

    /// One past the highest number seen.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    fn slot(number: u64) -> (usize, u64) {
        let at = number % WINDOW;
        ((at / 64) as usize, 1 << (at % 64))
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = Self::slot(number);
        self.seen[word] |= bit;
    }

    /// Clears by words where it can: a sender may leave a large gap before each datagram.
    fn clear(&mut self, numbers: Range<u64>) {
        let mut number = numbers.start;
        while number < numbers.end {
            let (word, bit) = Self::slot(number);
            let whole = bit == 1 && numbers.end - number >= 64;
            self.seen[word] &= if whole { 0 } else { !bit };
            number += if whole { 64 } else { 1 };
        }
    }

    fn is_set(&self, number: u64) -> bool {
        let (word, bit) = Self::slot(number);
        self.seen[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn the_last_number_there_is_changes_nothing() {
        let mut sequence = Sequence::new();
        let arrivals = [3, u64::MAX, 3, u64::MAX - 1, u64::MAX].map(|number| sequence.arrive(number));
        assert_eq!(arrivals.map(|arrival| arrival == Arrival::New), [true, false, false, true, false]);
        assert_eq!(sequence.next(), u64::MAX);
    }

    proptest! {
        #[test]
        fn distinct_numbers_are_counted_once(numbers in prop::collection::vec(0u64..2_000, 0..4_000)) {
            let mut sequence = Sequence::new();
            let distinct = numbers.iter().filter(|number| sequence.arrive(**number) != Arrival::Duplicate).count();
            prop_assert_eq!(distinct, numbers.iter().collect::<HashSet<_>>().len());
        }

        #[test]
        fn jumps_of_any_size_are_survived(jumps in prop::collection::vec(0u64..200_000, 1..60)) {
            let mut sequence = Sequence::new();
            let mut number = 0;
            for jump in jumps {
                number += jump + 1;
                prop_assert_eq!(sequence.arrive(number), Arrival::New);
                prop_assert_eq!(sequence.arrive(number), Arrival::Duplicate);
            }
        }

        #[test]
        fn sent_datagrams_are_received_or_lost_and_copies_are_not_late_ones(
            fates in prop::collection::vec((0u8..4, 0u64..40), 1..400),
        ) {
            // Each datagram is lost or arrives up to three times, each copy some positions later.
            let mut arrivals: Vec<(u64, u64)> = fates.iter().zip(0u64..).flat_map(|((copies, delay), number)| {
                (0..u64::from(*copies)).map(move |copy| (number + delay * (copy + 1), number))
            }).collect();
            arrivals.sort();
            let mut sequence = Sequence::new();
            let mut counts = [0u64; 3];
            let (mut highest, mut overtaken, mut seen) = (None, 0, HashSet::new());
            for (_, number) in &arrivals {
                counts[sequence.arrive(*number) as usize] += 1;
                if seen.insert(*number) && highest.is_some_and(|highest| *number < highest) {
                    overtaken += 1;
                }
                highest = highest.max(Some(*number));
            }
            let [new, late, duplicate] = counts;
            let (sent, never) = (fates.len() as u64, fates.iter().filter(|(copies, _)| *copies == 0).count() as u64);
            prop_assert_eq!(sent, new + late + never, "sent = received + lost");
            prop_assert_eq!(late, overtaken, "a late one is received, not lost");
            prop_assert_eq!(new + late + duplicate, arrivals.len() as u64, "each arrival is one of the three");
        }
    }
}

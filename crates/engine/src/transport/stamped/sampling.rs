//! Which exchanges are stamped. Both ends know it by the number of the exchange alone.

use model::Stamps;

/// Place in its block of the first stamped exchange, and how many follow each other.
const FIRST: u64 = 8;
const STAMPED: u64 = 4;
/// Blocks of which the stamps are kept. Beyond, one of every two is left out, then three of every four, and so on, so that the
/// sample is even over the trial and its memory is limited.
const BLOCKS: u64 = 4_096;

/// Most stamped exchanges that are kept.
pub(super) const KEPT: usize = (BLOCKS * STAMPED) as usize;

/// What is done with an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Treatment {
    /// Nothing.
    #[default]
    Plain,
    /// It is stamped.
    Stamped,
    /// Before it the stamps are read, which may delay it at either end.
    After,
}

impl Treatment {
    /// That of exchange `number`.
    #[inline]
    pub(super) fn of(number: u64) -> Self {
        let treatment = match number % Stamps::BLOCK {
            place if (FIRST..FIRST + STAMPED).contains(&place) => Self::Stamped,
            place if place == FIRST + STAMPED => Self::After,
            _ => return Self::Plain,
        };
        if is_kept(number, every(number)) { treatment } else { Self::Plain }
    }
}

/// Of the exchanges from each multiple of this number on, the first block has stamped ones, from exchange `number` on.
#[inline]
pub(super) fn every(number: u64) -> u64 {
    let filled = number / Stamps::BLOCK / BLOCKS;
    Stamps::BLOCK * filled.checked_ilog2().map_or(1, |doublings| 2 << doublings.min(40))
}

/// Whether exchange `number` is in a block with stamped ones.
#[inline]
pub(super) fn is_kept(number: u64, every: u64) -> bool {
    number % every < Stamps::BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quarter_is_stamped_and_the_next_exchange_is_left_out() {
        let treatments: Vec<Treatment> = (0..16).map(Treatment::of).collect();
        assert_eq!(treatments[..8], [Treatment::Plain; 8]);
        assert_eq!(treatments[8..12], [Treatment::Stamped; 4]);
        assert_eq!(treatments[12..], [Treatment::After, Treatment::Plain, Treatment::Plain, Treatment::Plain]);
        assert_eq!((16..32).map(Treatment::of).collect::<Vec<_>>(), treatments);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_limited_and_even(end in 0u64..3_000_000) {
            let every = every(end);
            let kept: Vec<u64> = (0..end).filter(|n| Treatment::of(*n) == Treatment::Stamped && is_kept(*n, every)).collect();
            prop_assert!(kept.len() <= KEPT + STAMPED as usize);
            // No block that the last interval asks for was left out before.
            let blocks = kept.iter().map(|n| n / every).collect::<std::collections::BTreeSet<_>>().len() as u64;
            prop_assert!(blocks >= end.saturating_sub(Stamps::BLOCK).div_ceil(every));
        }
    }
}

//! NetPIPE's schedule of block sizes.

/// The block sizes of NetPIPE 3.7.2 (and, for perturbations of 3 and 0, of 5.x): powers of two and the points halfway
/// between, each with its neighbours `perturbation` bytes below and above once the steps are wide enough.
///
/// Source: the size rule of NPtcp 3.7.2's main loop; 1 B to 8 MiB with a perturbation of 3 gives its 124 points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetpipeSizes {
    /// First block, in bytes; at least 1.
    pub first: u64,
    /// The largest centre, in bytes; a perturbed point may pass it by `perturbation`.
    pub last: u64,
    /// Distance of the two neighbours in bytes; 0 for none.
    pub perturbation: u64,
}

impl NetpipeSizes {
    /// NPtcp's default range: 1 B up to 10,000,000 B, which ends at 8 MiB + 3.
    pub const DEFAULT: Self = Self { first: 1, last: 10_000_000, perturbation: 3 };

    /// All sizes in bytes, in NPtcp's order: the neighbours of two centres that are close to each other overlap.
    #[must_use]
    pub fn list(self) -> Vec<u64> {
        let mut sizes = Vec::new();
        let mut centre = self.first.max(1);
        let mut step = if centre > 1 { centre / 2 } else { 1 };
        let mut turn: u32 = u32::from(centre > 1);
        while centre <= self.last {
            if turn > 2 && turn % 2 == 1 {
                step = step.saturating_mul(2);
            }
            if self.perturbation > 0 && step > self.perturbation + 1 {
                sizes.extend([centre - self.perturbation, centre, centre + self.perturbation]);
            } else {
                sizes.push(centre);
            }
            centre = centre.saturating_add(step.max(1));
            turn += 1;
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn default_list_is_the_published_one() {
        let sizes = NetpipeSizes::DEFAULT.list();
        assert_eq!(sizes.len(), 124);
        assert_eq!(sizes[..16], [1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35]);
        assert_eq!(sizes[121..], [8_388_605, 8_388_608, 8_388_611]);
        // Every block of a whole default curve that NPtcp 3.7.2 wrote.
        let recorded = include_str!("../testdata/netpipe372_sizes.txt");
        let recorded: Vec<u64> = recorded.lines().filter_map(|line| line.trim().parse().ok()).collect();
        assert_eq!(sizes, recorded);
    }

    #[test]
    fn unperturbed_and_offset_ranges_match_netpipe() {
        let plain = NetpipeSizes { perturbation: 0, ..NetpipeSizes::DEFAULT }.list();
        assert_eq!(plain.len(), 46);
        let part = NetpipeSizes { first: 64, last: 1000, perturbation: 3 }.list();
        assert_eq!(part[..9], [61, 64, 67, 93, 96, 99, 125, 128, 131]);
        assert_eq!(part[part.len() - 3..], [765, 768, 771]);
        // NPtcp -i starts at 5 without perturbation.
        let integrity = NetpipeSizes { first: 5, last: 10_000_000, perturbation: 0 }.list();
        assert_eq!(integrity[..10], [5, 7, 9, 13, 17, 25, 33, 49, 65, 97]);
        assert_eq!(integrity.len(), 43);
    }

    proptest! {
        #[test]
        fn any_range_stays_inside_and_ends(first in 1u64..100_000, span in 0u64..20_000_000, perturbation in 0u64..9) {
            let sizes = NetpipeSizes { first, last: first + span, perturbation }.list();
            prop_assert!(!sizes.is_empty());
            prop_assert!(sizes.iter().all(|&size| size >= 1 && size <= first + span + perturbation));
            let centres = NetpipeSizes { first, last: first + span, perturbation: 0 }.list();
            prop_assert!(centres.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(centres.iter().all(|centre| sizes.contains(centre)));
        }
    }
}

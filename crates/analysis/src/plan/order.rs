//! The order of a block: every cell once, in steps of cells that run at the same time.

use crate::stats::SplitMix64;

use super::rounds;

/// Where a cell stands in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The cell.
    pub cell: u32,
    /// Its combination of the levels that are dear to change.
    pub plot: usize,
    /// Its combination of all levels but the hosts.
    pub combination: usize,
    /// Its near host.
    pub near: usize,
    /// Its far host.
    pub far: usize,
}

/// Spreads the numbers of blocks over the seeds (the odd constant is 2^64 over the golden ratio, as SplitMix64 steps).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The steps of block number `block`: what is dear to change stays for as long as there are cells with it (a split plot), and
/// within that each combination of the other levels takes its pairs of hosts in rounds.
///
/// With a seed, plots, combinations within a plot and rounds within a combination come in an order of this block's own, so that
/// drift does not pass for an effect; without one all stand as in `places`. The order rests on nothing but the seed and the
/// number: a resumed run goes on in it.
#[must_use]
pub fn block(places: &[Place], seed: Option<u64>, block: u32) -> Vec<Vec<u32>> {
    let mut random =
        seed.map(|seed| SplitMix64::new(SplitMix64::new(seed ^ SPREAD.wrapping_mul(u64::from(block) + 1)).next_u64()));
    let mut mix = |list: &mut Vec<usize>| {
        if let Some(random) = &mut random {
            random.shuffle(list);
        }
    };
    let mut steps = Vec::new();
    let mut plots = distinct(places.iter().map(|place| place.plot));
    mix(&mut plots);
    for plot in plots {
        let mut combinations =
            distinct(places.iter().filter(|place| place.plot == plot).map(|place| place.combination));
        mix(&mut combinations);
        for combination in combinations {
            let own: Vec<&Place> = places.iter().filter(|place| place.combination == combination).collect();
            let pairs: Vec<(usize, usize)> = own.iter().map(|place| (place.near, place.far)).collect();
            let rounds = rounds(&pairs);
            let mut order: Vec<usize> = (0..rounds.len()).collect();
            mix(&mut order);
            steps.extend(order.into_iter().map(|at| rounds[at].iter().map(|own_at| own[*own_at].cell).collect()));
        }
    }
    steps
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `plots` x `combinations` cells for each pair of `hosts` hosts.
    fn places(plots: usize, combinations: usize, hosts: usize) -> Vec<Place> {
        let mut places = Vec::new();
        for plot in 0..plots {
            for combination in 0..combinations {
                for (near, far) in (0..hosts).flat_map(|near| (0..hosts).map(move |far| (near, far))) {
                    if near != far {
                        let cell = places.len() as u32;
                        places.push(Place { cell, plot, combination: plot * combinations + combination, near, far });
                    }
                }
            }
        }
        places
    }

    #[test]
    fn without_a_seed_all_stand_as_written() {
        assert_eq!(
            block(&places(2, 2, 2), None, 5),
            [[0], [1], [2], [3], [4], [5], [6], [7]].map(|cell| cell.to_vec())
        );
    }

    #[test]
    fn blocks_differ_and_repeat_themselves() {
        let places = places(1, 8, 2);
        let blocks: Vec<_> = (0..4).map(|number| block(&places, Some(7), number)).collect();
        assert!(blocks.windows(2).all(|pair| pair[0] != pair[1]), "{blocks:?}");
        assert_eq!(blocks[3], block(&places, Some(7), 3));
    }

    #[test]
    fn every_cell_comes_early_as_often_as_late() {
        let places = places(1, 4, 2);
        let mut first = [0; 8];
        for number in 0..4_000 {
            first[block(&places, Some(3), number)[0][0] as usize] += 1;
        }
        assert!(first.iter().all(|count| (400..600).contains(count)), "{first:?}");
    }

    proptest! {
        #[test]
        fn a_block_is_complete_and_changes_what_is_dear_once_for_each_level(
            plots in 1usize..4, combinations in 1usize..4, hosts in 2usize..6, seed: u64, number: u32,
        ) {
            let places = places(plots, combinations, hosts);
            let steps = block(&places, Some(seed), number);
            let mut cells: Vec<u32> = steps.iter().flatten().copied().collect();
            let walked: Vec<usize> = cells.iter().map(|cell| places[*cell as usize].plot).collect();
            prop_assert_eq!(walked.windows(2).filter(|pair| pair[0] != pair[1]).count(), plots - 1);
            for step in &steps {
                let of: Vec<&Place> = step.iter().map(|cell| &places[*cell as usize]).collect();
                prop_assert!(of.iter().all(|place| place.combination == of[0].combination));
                let mut hosts: Vec<usize> = of.iter().flat_map(|place| [place.near, place.far]).collect();
                hosts.sort_unstable();
                prop_assert!(hosts.windows(2).all(|two| two[0] != two[1]));
            }
            cells.sort_unstable();
            prop_assert_eq!(cells, (0..places.len() as u32).collect::<Vec<_>>());
        }
    }
}

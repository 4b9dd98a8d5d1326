//! The order of a round: every cell once, in steps of cells that run at the same time.

use std::ops::Range;

use model::SplitMix64;

use super::steps;

/// The position of a cell in the design of its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The cell; of a curve the first one.
    pub cell: u32,
    /// Number of cells that are measured over the same connections: the sizes of a curve, with consecutive numbers; 1 otherwise.
    pub sizes: u32,
    /// Its combination of the levels that are expensive to change.
    pub plot: usize,
    /// Its combination of all levels except the hosts and groups.
    pub combination: usize,
    /// Its near host.
    pub near: usize,
    /// Its far host.
    pub far: usize,
    /// Numbers of what it shares with others beside its hosts, such as the uplink of a rack: one test at a time.
    pub shared: Vec<usize>,
    /// It is measured at the same time as all others of its combination, also on the same hosts.
    pub together: bool,
}

impl Slot {
    /// All of its cells.
    #[must_use]
    pub fn cells(&self) -> Range<u32> {
        self.cell..self.cell + self.sizes
    }

    /// The slot that contains this cell. They are in the order of their cells.
    #[must_use]
    pub fn of_cell(all: &[Self], cell: u32) -> Option<&Self> {
        let at = all.partition_point(|slot| slot.cells().end <= cell);
        all.get(at).filter(|slot| slot.cells().contains(&cell))
    }
}

/// The steps of round number `round`. All cells with the same levels of expensive factors follow each other (a split plot); within
/// these each combination of the other levels takes its pairs of hosts in steps, or all of its slots in one step.
///
/// A host has at most `per_host` tests in a step, one unless they are light: their steps are so many of those with one test per host.
///
/// With a seed, plots, combinations within a plot and steps within a combination have a random order in each round, so drift does
/// not look like an effect; without one all are in the order of `slots`. The order depends only on the seed and the number, so a
/// resumed run continues it.
#[must_use]
pub fn round(slots: &[Slot], per_host: usize, seed: Option<u64>, round: u32) -> Vec<Vec<u32>> {
    let mut random = seed.map(|seed| random_of(seed, round));
    let mut mix = |list: &mut Vec<usize>| {
        if let Some(random) = &mut random {
            random.shuffle(list);
        }
    };
    let mut steps = Vec::new();
    let mut plots = distinct(slots.iter().map(|slot| slot.plot));
    mix(&mut plots);
    for plot in plots {
        let mut combinations = distinct(slots.iter().filter(|slot| slot.plot == plot).map(|slot| slot.combination));
        mix(&mut combinations);
        for combination in combinations {
            let own: Vec<&Slot> = slots.iter().filter(|slot| slot.combination == combination).collect();
            if own.iter().any(|slot| slot.together) {
                steps.push(own.iter().map(|slot| slot.cell).collect());
                continue;
            }
            let pairs: Vec<(usize, usize)> = own.iter().map(|slot| (slot.near, slot.far)).collect();
            let host_steps = if own.iter().all(|slot| slot.shared.is_empty()) {
                steps::steps(&pairs)
            } else {
                let shared: Vec<&[usize]> = own.iter().map(|slot| slot.shared.as_slice()).collect();
                steps::steps_sharing(&pairs, &shared)
            };
            let mut order: Vec<usize> = (0..host_steps.len()).collect();
            mix(&mut order);
            for order in order.chunks(per_host.max(1)) {
                let tests = order.iter().flat_map(|at| &host_steps[*at]);
                steps.push(tests.map(|own_at| own[*own_at].cell).collect());
            }
        }
    }
    steps
}

/// The order of a curve's sizes in round number `round`. The first round ascends, because the time of large blocks is estimated from
/// the small ones; with a seed the later rounds are shuffled, each differently.
#[must_use]
pub fn size_order(slot: &Slot, seed: Option<u64>, round: u32) -> Vec<u32> {
    let mut order: Vec<u32> = slot.cells().collect();
    if let Some(seed) = seed.filter(|_| round > 0) {
        random_of(seed.wrapping_add(u64::from(slot.cell)), round).shuffle(&mut order);
    }
    order
}

pub(super) fn random_of(seed: u64, round: u32) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new(seed ^ SplitMix64::STEP.wrapping_mul(u64::from(round) + 1)).next_u64())
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
    fn slots(plots: usize, combinations: usize, hosts: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        for plot in 0..plots {
            for combination in 0..combinations {
                for (near, far) in (0..hosts).flat_map(|near| (0..hosts).map(move |far| (near, far))) {
                    if near != far {
                        let cell = slots.len() as u32;
                        slots.push(Slot {
                            cell,
                            sizes: 1,
                            plot,
                            combination: plot * combinations + combination,
                            near,
                            far,
                            shared: Vec::new(),
                            together: false,
                        });
                    }
                }
            }
        }
        slots
    }

    #[test]
    fn a_cell_is_found_in_its_slot() {
        let mut slots = slots(1, 1, 3);
        slots[1].sizes = 3;
        slots[2..].iter_mut().for_each(|slot| slot.cell += 2);
        let found: Vec<Option<u32>> = (0..9).map(|cell| Some(Slot::of_cell(&slots, cell)?.cell)).collect();
        assert_eq!(found, [Some(0), Some(1), Some(1), Some(1), Some(4), Some(5), Some(6), Some(7), None]);
    }

    #[test]
    fn without_a_seed_the_order_is_as_written() {
        assert_eq!(
            round(&slots(2, 2, 2), 1, None, 5),
            [[0], [1], [2], [3], [4], [5], [6], [7]].map(|cell| cell.to_vec())
        );
    }

    #[test]
    fn groups_of_a_combination_are_one_step_on_the_same_hosts() {
        let slot = |cell| Slot {
            cell,
            sizes: 1,
            plot: 0,
            combination: cell as usize / 3,
            near: 0,
            far: 1,
            shared: Vec::new(),
            together: true,
        };
        let slots: Vec<Slot> = (0..6).map(slot).collect();
        assert_eq!(round(&slots, 1, None, 0), [[0, 1, 2], [3, 4, 5]]);
        let mut shuffled = round(&slots, 1, Some(1), 0);
        shuffled.sort();
        assert_eq!(shuffled, [[0, 1, 2], [3, 4, 5]]);
    }

    #[test]
    fn rounds_differ_and_are_repeatable() {
        let slots = slots(1, 8, 2);
        let rounds: Vec<_> = (0..4).map(|number| round(&slots, 1, Some(7), number)).collect();
        assert!(rounds.windows(2).all(|pair| pair[0] != pair[1]), "{rounds:?}");
        assert_eq!(rounds[3], round(&slots, 1, Some(7), 3));
    }

    #[test]
    fn every_cell_comes_early_as_often_as_late() {
        let slots = slots(1, 4, 2);
        let mut first = [0; 8];
        for number in 0..4_000 {
            first[round(&slots, 1, Some(3), number)[0][0] as usize] += 1;
        }
        assert!(first.iter().all(|count| (400..600).contains(count)), "{first:?}");
    }

    #[test]
    fn a_curve_ascends_in_the_first_round_and_is_shuffled_in_each_later_one() {
        let slot =
            Slot { cell: 7, sizes: 9, plot: 0, combination: 0, near: 0, far: 1, shared: Vec::new(), together: false };
        let up: Vec<u32> = (7..16).collect();
        assert_eq!((size_order(&slot, Some(1), 0), size_order(&slot, None, 5)), (up.clone(), up.clone()));
        let (second, third) = (size_order(&slot, Some(1), 1), size_order(&slot, Some(1), 2));
        assert!(second != third && second != up && second == size_order(&slot, Some(1), 1));
        let mut sorted = third;
        sorted.sort_unstable();
        assert_eq!(sorted, up);
    }

    proptest! {
        #[test]
        fn light_tests_share_hosts_up_to_the_limit_and_take_fewer_steps(
            hosts in 2usize..9, per_host in 1usize..5, seed: u64, number: u32,
        ) {
            let slots = slots(1, 1, hosts);
            let apart = round(&slots, 1, Some(seed), number).len();
            let steps = round(&slots, per_host, Some(seed), number);
            prop_assert_eq!(steps.len(), apart.div_ceil(per_host));
            for step in &steps {
                let on = |host: usize| {
                    step.iter().filter(|cell| [slots[**cell as usize].near, slots[**cell as usize].far].contains(&host)).count()
                };
                prop_assert!((0..hosts).all(|host| on(host) <= per_host), "{:?}", step);
            }
            let mut cells: Vec<u32> = steps.concat();
            cells.sort_unstable();
            prop_assert_eq!(cells, (0..slots.len() as u32).collect::<Vec<_>>());
        }

        #[test]
        fn a_round_is_complete_and_changes_expensive_levels_once_each(
            plots in 1usize..4, combinations in 1usize..4, hosts in 2usize..6, seed: u64, number: u32,
        ) {
            let slots = slots(plots, combinations, hosts);
            let steps = round(&slots, 1, Some(seed), number);
            let mut cells: Vec<u32> = steps.iter().flatten().copied().collect();
            let walked: Vec<usize> = cells.iter().map(|cell| slots[*cell as usize].plot).collect();
            prop_assert_eq!(walked.windows(2).filter(|pair| pair[0] != pair[1]).count(), plots - 1);
            for step in &steps {
                let of: Vec<&Slot> = step.iter().map(|cell| &slots[*cell as usize]).collect();
                prop_assert!(of.iter().all(|slot| slot.combination == of[0].combination));
                let mut hosts: Vec<usize> = of.iter().flat_map(|slot| [slot.near, slot.far]).collect();
                hosts.sort_unstable();
                prop_assert!(hosts.windows(2).all(|two| two[0] != two[1]));
            }
            cells.sort_unstable();
            prop_assert_eq!(cells, (0..slots.len() as u32).collect::<Vec<_>>());
        }
    }
}

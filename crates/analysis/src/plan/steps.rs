//! Steps of host pairs in which no host takes part in two tests.

use std::collections::{BTreeMap, BTreeSet};

/// Divides pairs of hosts (numbers; the first of a pair is its near end) into steps in which every host has at most one pair, and
/// returns the indices of each step's pairs in `pairs`.
///
/// All ordered pairs of n hosts take 2(n - 1) steps for an even n and 2n for an odd one, by the circle method of the round-robin
/// tournament (Kirkman, 1847), each of its rounds once per direction; pairs between two separate groups take as many steps as the
/// larger group has hosts. Both are minimal. For other sets of pairs the better of the circle method and a greedy assignment is
/// used.
#[must_use]
pub fn steps(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let near: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let far: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    if near.is_disjoint(&far) {
        return shorter([latin(pairs, &near, &far), greedy(pairs)]);
    }
    shorter([circle(pairs, &near.union(&far).copied().collect::<Vec<_>>()), greedy(pairs)])
}

fn shorter(schedules: [Vec<Vec<usize>>; 2]) -> Vec<Vec<usize>> {
    let [one, other] = schedules;
    if other.len() < one.len() { other } else { one }
}

/// Two groups: near host i is paired with far host i + k in step k, modulo the larger number.
fn latin(pairs: &[(usize, usize)], near: &BTreeSet<usize>, far: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let slots = |hosts: &BTreeSet<usize>| -> BTreeMap<usize, usize> {
        hosts.iter().enumerate().map(|(slot, host)| (*host, slot)).collect()
    };
    let (rows, columns) = (slots(near), slots(far));
    let size = rows.len().max(columns.len());
    by_step(pairs, |(from, to)| (columns[&to] + size - rows[&from]) % size)
}

/// One group: all hosts but the last one form a circle, and in round k those are paired whose positions add up to k.
fn circle(pairs: &[(usize, usize)], hosts: &[usize]) -> Vec<Vec<usize>> {
    let seats: BTreeMap<usize, usize> = hosts.iter().enumerate().map(|(slot, host)| (*host, slot)).collect();
    // With an odd number of hosts one position is empty.
    let around = (hosts.len() + hosts.len() % 2).saturating_sub(1).max(1);
    by_step(pairs, |(from, to)| {
        let (a, b) = (seats[&from], seats[&to]);
        let round = if a == around || b == around { 2 * a.min(b) } else { a + b } % around;
        2 * round + usize::from(a > b)
    })
}

/// Each pair in the first step in which both of its hosts are free; pairs of the busiest hosts first.
fn greedy(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut degree: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, to) in pairs {
        *degree.entry(*from).or_default() += 1;
        *degree.entry(*to).or_default() += 1;
    }
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(degree[&pairs[*at].0].max(degree[&pairs[*at].1])));
    let mut steps: Vec<(BTreeSet<usize>, Vec<usize>)> = Vec::new();
    for at in order {
        let (from, to) = pairs[at];
        let free = steps.iter_mut().find(|(busy, _)| !busy.contains(&from) && !busy.contains(&to));
        let step = match free {
            Some(step) => step,
            None => {
                steps.push(Default::default());
                let last = steps.len() - 1;
                &mut steps[last]
            }
        };
        step.0.extend([from, to]);
        step.1.push(at);
    }
    steps.into_iter().map(|(_, pairs)| pairs).collect()
}

/// Pairs by the number of their step, without empty steps.
fn by_step(pairs: &[(usize, usize)], step: impl Fn((usize, usize)) -> usize) -> Vec<Vec<usize>> {
    let mut steps: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, pair) in pairs.iter().enumerate() {
        steps.entry(step(*pair)).or_default().push(at);
    }
    steps.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_pairs(hosts: usize) -> Vec<(usize, usize)> {
        (0..hosts).flat_map(|from| (0..hosts).filter(move |to| *to != from).map(move |to| (from, to))).collect()
    }

    /// Checks that every pair occurs once, and no host twice in a step; returns the number of steps.
    fn checked_steps(pairs: &[(usize, usize)]) -> usize {
        let steps = steps(pairs);
        let mut seen: Vec<usize> = steps.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..pairs.len()).collect::<Vec<_>>(), "{pairs:?}");
        for step in &steps {
            let mut hosts: Vec<usize> = step.iter().flat_map(|at| [pairs[*at].0, pairs[*at].1]).collect();
            hosts.sort_unstable();
            assert!(hosts.windows(2).all(|two| two[0] != two[1]), "{step:?} of {pairs:?}");
        }
        steps.len()
    }

    #[test]
    fn all_pairs_of_two_to_twelve_hosts_take_the_fewest_steps() {
        for hosts in 2..=12 {
            let fewest = if hosts % 2 == 0 { 2 * (hosts - 1) } else { 2 * hosts };
            assert_eq!(checked_steps(&all_pairs(hosts)), fewest, "{hosts} hosts");
        }
    }

    #[test]
    fn two_groups_take_as_many_steps_as_the_larger_has_hosts() {
        for near in 1..6 {
            for far in 1..6 {
                let pairs: Vec<_> = (0..near).flat_map(|from| (10..10 + far).map(move |to| (from, to))).collect();
                assert_eq!(checked_steps(&pairs), near.max(far), "{near} by {far}");
            }
        }
        assert_eq!(steps(&[]), Vec::<Vec<usize>>::new());
    }

    proptest! {
        #[test]
        fn any_pairs_have_steps(wanted in prop::collection::btree_set((0usize..7, 0usize..7), 0..30)) {
            let pairs: Vec<_> = wanted.into_iter().filter(|(from, to)| from != to).collect();
            prop_assert!(checked_steps(&pairs) <= pairs.len());
        }
    }
}

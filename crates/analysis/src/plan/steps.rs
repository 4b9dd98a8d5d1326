//! Steps of host pairs in which no host takes part in two tests.

use std::collections::{BTreeMap, BTreeSet};

/// Divides pairs of hosts (numbers; the first of a pair is its near end) into steps in which every host has at most one pair, and
/// returns the indices of each step's pairs in `pairs`.
///
/// All ordered pairs of n hosts take 2(n - 1) steps for an even n and 2n for an odd one, by the circle method of the round-robin
/// tournament (Kirkman, 1847), each of its rounds once per direction; pairs between two separate groups take as many steps as the
/// larger group has hosts. Both are minimal. For other sets of pairs the better of the circle method and an assignment by load is
/// used.
#[must_use]
pub fn steps(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let near: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let far: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    if near.is_disjoint(&far) {
        return shorter([latin(pairs, &near, &far), steps_sharing(pairs, &vec![&[][..]; pairs.len()])]);
    }
    shorter([
        circle(pairs, &near.union(&far).copied().collect::<Vec<_>>()),
        steps_sharing(pairs, &vec![&[][..]; pairs.len()]),
    ])
}

/// As [`steps`], with further things of which each step uses each at most once: `shared` has their numbers, for each pair.
#[must_use]
pub fn steps_sharing(pairs: &[(usize, usize)], shared: &[&[usize]]) -> Vec<Vec<usize>> {
    let needs = pairs.iter().zip(shared).map(|((near, far), shared)| {
        let hosts = [Need::Host(*near), Need::Host(*far)];
        hosts.into_iter().chain(shared.iter().map(|number| Need::Shared(*number))).collect()
    });
    busiest_first(&needs.collect::<Vec<_>>())
}

/// What a test has for itself while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Host(usize),
    Shared(usize),
}

/// Steps that begin with the tests whose needs have the most tests left. No schedule has fewer steps than the busiest need has tests;
/// this one has seldom more than one or two beyond that.
fn busiest_first(needs: &[Vec<Need>]) -> Vec<Vec<usize>> {
    let mut left: BTreeMap<Need, usize> = BTreeMap::new();
    needs.iter().flatten().for_each(|need| *left.entry(*need).or_default() += 1);
    let mut open: Vec<usize> = (0..needs.len()).collect();
    let mut steps = Vec::new();
    while !open.is_empty() {
        let load = |at: &usize| {
            let loads = needs[*at].iter().map(|need| left[need]);
            (loads.clone().max().unwrap_or(0), loads.sum::<usize>())
        };
        open.sort_by_cached_key(|at| std::cmp::Reverse(load(at)));
        let mut busy: BTreeSet<Need> = BTreeSet::new();
        let mut step = Vec::new();
        open.retain(|at| {
            let free = needs[*at].iter().all(|need| !busy.contains(need));
            if free {
                busy.extend(&needs[*at]);
                step.push(*at);
            }
            !free
        });
        for need in step.iter().flat_map(|at| &needs[*at]) {
            if let Some(left) = left.get_mut(need) {
                *left -= 1;
            }
        }
        steps.push(step);
    }
    steps
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

    #[test]
    fn racks_have_one_test_at_a_time_in_the_fewest_steps() {
        // Three racks of four hosts; a test uses the uplinks of its racks, unless they are the same.
        let pairs = all_pairs(12);
        let shared: Vec<Vec<usize>> = pairs
            .iter()
            .map(|(near, far)| if near / 4 == far / 4 { vec![] } else { vec![near / 4, far / 4] })
            .collect();
        let steps = steps_sharing(&pairs, &shared.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for step in &steps {
            let mut used: Vec<usize> = step.iter().flat_map(|at| shared[*at].clone()).collect();
            used.sort_unstable();
            assert!(used.windows(2).all(|two| two[0] != two[1]), "{step:?}");
        }
        // Each rack exchanges 2 x 4 x 8 tests over its uplink; with three racks, only two can be used at a time.
        assert_eq!(steps.iter().map(Vec::len).sum::<usize>(), pairs.len());
        assert_eq!(steps.len(), 96);
    }

    proptest! {
        #[test]
        fn a_step_has_each_thing_once_and_the_number_of_steps_is_near_the_least(
            wanted in prop::collection::btree_set((0usize..9, 10usize..19), 1..60),
        ) {
            let pairs: Vec<_> = wanted.into_iter().collect();
            let most = (0..20)
                .map(|host| pairs.iter().filter(|(near, far)| *near == host || *far == host).count())
                .max()
                .unwrap_or(0);
            let number = steps_sharing(&pairs, &vec![&[][..]; pairs.len()]).len();
            prop_assert!(number >= most && number <= most + 2, "{} steps, {} at least", number, most);
        }

        #[test]
        fn any_pairs_have_steps(wanted in prop::collection::btree_set((0usize..7, 0usize..7), 0..30)) {
            let pairs: Vec<_> = wanted.into_iter().filter(|(from, to)| from != to).collect();
            prop_assert!(checked_steps(&pairs) <= pairs.len());
        }
    }
}

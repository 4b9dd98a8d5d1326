//! Rounds of pairs in which no host is in two tests at once.

use std::collections::{BTreeMap, BTreeSet};

/// Puts pairs of hosts (each a number; the first of a pair is its near end) into rounds in which every host has at most one
/// pair, and returns the places of each round's pairs in `pairs`.
///
/// Every ordered pair of n hosts takes 2(n - 1) rounds for an even n and 2n for an odd one, by the circle method of the
/// round-robin tournament (Kirkman, 1847), each of its rounds once in either direction; hosts of two separate groups take as
/// many rounds as the larger group has hosts. Both are the fewest there can be. For anything else the better of the circle and of
/// taking pairs as they fit is used.
#[must_use]
pub fn rounds(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let near: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let far: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    if near.is_disjoint(&far) {
        let directions = [latin(pairs, &near, &far), fitting(pairs)];
        return fewest(directions);
    }
    fewest([circle(pairs, &near.union(&far).copied().collect::<Vec<_>>()), fitting(pairs)])
}

fn fewest(directions: [Vec<Vec<usize>>; 2]) -> Vec<Vec<usize>> {
    let [one, other] = directions;
    if other.len() < one.len() { other } else { one }
}

/// Two groups: near host i meets far host i + k in round k, modulo the larger number.
fn latin(pairs: &[(usize, usize)], near: &BTreeSet<usize>, far: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let slots = |hosts: &BTreeSet<usize>| -> BTreeMap<usize, usize> {
        hosts.iter().enumerate().map(|(slot, host)| (*host, slot)).collect()
    };
    let (rows, columns) = (slots(near), slots(far));
    let size = rows.len().max(columns.len());
    gather(pairs, |(from, to)| (columns[&to] + size - rows[&from]) % size)
}

/// One group: hosts sit in a circle but for the last one, and in round k those meet whose places add up to k.
fn circle(pairs: &[(usize, usize)], hosts: &[usize]) -> Vec<Vec<usize>> {
    let seats: BTreeMap<usize, usize> = hosts.iter().enumerate().map(|(slot, host)| (*host, slot)).collect();
    // An odd number has an empty chair in the middle.
    let around = (hosts.len() + hosts.len() % 2).saturating_sub(1).max(1);
    gather(pairs, |(from, to)| {
        let (a, b) = (seats[&from], seats[&to]);
        let round = if a == around || b == around { 2 * a.min(b) } else { a + b } % around;
        2 * round + usize::from(a > b)
    })
}

/// Each pair in the first round that has both of its hosts free; the busiest hosts' pairs first.
fn fitting(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut degree: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, to) in pairs {
        *degree.entry(*from).or_default() += 1;
        *degree.entry(*to).or_default() += 1;
    }
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(degree[&pairs[*at].0].max(degree[&pairs[*at].1])));
    let mut rounds: Vec<(BTreeSet<usize>, Vec<usize>)> = Vec::new();
    for at in order {
        let (from, to) = pairs[at];
        let free = rounds.iter_mut().find(|(busy, _)| !busy.contains(&from) && !busy.contains(&to));
        let round = match free {
            Some(round) => round,
            None => {
                rounds.push(Default::default());
                let last = rounds.len() - 1;
                &mut rounds[last]
            }
        };
        round.0.extend([from, to]);
        round.1.push(at);
    }
    rounds.into_iter().map(|(_, slots)| slots).collect()
}

/// Pairs by the number of their round, without rounds that nobody has.
fn gather(pairs: &[(usize, usize)], round: impl Fn((usize, usize)) -> usize) -> Vec<Vec<usize>> {
    let mut rounds: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, pair) in pairs.iter().enumerate() {
        rounds.entry(round(*pair)).or_default().push(at);
    }
    rounds.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_pairs(hosts: usize) -> Vec<(usize, usize)> {
        (0..hosts).flat_map(|from| (0..hosts).filter(move |to| *to != from).map(move |to| (from, to))).collect()
    }

    /// Every pair once, and no host twice in a round.
    fn assert_rounds(pairs: &[(usize, usize)]) -> usize {
        let rounds = rounds(pairs);
        let mut seen: Vec<usize> = rounds.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..pairs.len()).collect::<Vec<_>>(), "{pairs:?}");
        for round in &rounds {
            let mut hosts: Vec<usize> = round.iter().flat_map(|at| [pairs[*at].0, pairs[*at].1]).collect();
            hosts.sort_unstable();
            assert!(hosts.windows(2).all(|two| two[0] != two[1]), "{round:?} of {pairs:?}");
        }
        rounds.len()
    }

    #[test]
    fn a_tournament_has_the_fewest_rounds_for_two_to_twelve_hosts() {
        for hosts in 2..=12 {
            let fewest = if hosts % 2 == 0 { 2 * (hosts - 1) } else { 2 * hosts };
            assert_eq!(assert_rounds(&all_pairs(hosts)), fewest, "{hosts} hosts");
        }
    }

    #[test]
    fn two_groups_take_as_many_rounds_as_the_larger_has_hosts() {
        for near in 1..6 {
            for far in 1..6 {
                let pairs: Vec<_> = (0..near).flat_map(|from| (10..10 + far).map(move |to| (from, to))).collect();
                assert_eq!(assert_rounds(&pairs), near.max(far), "{near} by {far}");
            }
        }
        assert_eq!(rounds(&[]), Vec::<Vec<usize>>::new());
    }

    proptest! {
        #[test]
        fn any_pairs_find_their_rounds(wanted in prop::collection::btree_set((0usize..7, 0usize..7), 0..30)) {
            let pairs: Vec<_> = wanted.into_iter().filter(|(from, to)| from != to).collect();
            prop_assert!(assert_rounds(&pairs) <= pairs.len());
        }
    }
}

//! Steps of host pairs in which no host takes part in two tests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use model::SplitMix64;

/// All unordered pairs of hosts, in the fewest steps in which no host has two pairs: one less than there are hosts if their number is
/// even, otherwise as many as there are hosts. By the circle method of the round-robin tournament (Kirkman, 1847): all hosts but the
/// last one form a circle, and in step k those are paired whose places add up to k.
///
/// A step is computed when it is asked for, so that the pairs of any number of hosts take no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundRobin {
    hosts: usize,
}

impl RoundRobin {
    /// For so many hosts.
    #[must_use]
    pub fn new(hosts: usize) -> Self {
        Self { hosts }
    }

    /// Number of steps.
    #[must_use]
    pub fn steps(self) -> usize {
        if self.hosts < 2 { 0 } else { self.circle() }
    }

    /// Hosts on the circle. With an odd number of hosts the place of the last one is empty, and who would be paired with it rests.
    fn circle(self) -> usize {
        (self.hosts + self.hosts % 2).saturating_sub(1).max(1)
    }

    /// The step of the pair of two different hosts.
    #[must_use]
    pub fn step_of(self, one: usize, other: usize) -> usize {
        let circle = self.circle();
        let sum = if one.max(other) == circle { 2 * one.min(other) } else { one + other };
        sum % circle
    }

    /// The pairs of a step, the lower host first.
    pub fn pairs(self, step: usize) -> impl Iterator<Item = (usize, usize)> {
        let circle = self.circle();
        // The host whose place is paired with itself: twice its place is the step, modulo an odd number.
        let alone = if step.is_multiple_of(2) { step / 2 } else { (step + circle) / 2 };
        let last = (self.hosts > circle).then_some((alone, circle));
        let around = (1..=circle / 2).map(move |distance| {
            let (up, down) = (alone + distance, alone + circle - distance);
            let around = |place: usize| if place < circle { place } else { place - circle };
            let (one, other) = (around(up), around(down));
            (one.min(other), one.max(other))
        });
        last.into_iter().chain(around).filter(move |_| self.hosts > 1)
    }
}

/// Divides pairs of hosts (numbers; the first of a pair is its near end) into steps in which every host has at most one pair, and
/// returns the indices of each step's pairs in `pairs`.
///
/// All ordered pairs of n hosts take 2(n - 1) steps for an even n and 2n for an odd one, the steps of [`RoundRobin`] once per
/// direction; pairs between two separate groups take as many steps as the larger group has hosts. Both are minimal. For other sets of
/// pairs the better of these and an assignment by load is used.
#[must_use]
pub fn steps(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let near: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let far: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let regular = if near.is_disjoint(&far) {
        latin(pairs, &near, &far)
    } else {
        circle(pairs, &near.union(&far).copied().collect::<Vec<_>>())
    };
    // No schedule has fewer steps than a host has tests.
    if regular.len() <= fewest(pairs) {
        return regular;
    }
    let by_load = steps_sharing(pairs, &vec![&[][..]; pairs.len()]);
    if by_load.len() < regular.len() { by_load } else { regular }
}

/// The number of tests of the busiest host.
fn fewest(pairs: &[(usize, usize)]) -> usize {
    let mut tests: HashMap<usize, usize> = HashMap::new();
    pairs.iter().flat_map(|(near, far)| [near, far]).for_each(|host| *tests.entry(*host).or_default() += 1);
    tests.into_values().max().unwrap_or(0)
}

/// As [`steps`], with further things of which each step uses each at most once: `shared` has their numbers, for each pair.
#[must_use]
pub fn steps_sharing(pairs: &[(usize, usize)], shared: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut numbers: HashMap<(bool, usize), usize> = HashMap::new();
    let mut number = |thing: (bool, usize)| {
        let next = numbers.len();
        *numbers.entry(thing).or_insert(next)
    };
    let needs = pairs.iter().zip(shared).map(|((near, far), shared)| {
        let hosts = [*near, *far].map(|host| number((false, host)));
        let shared: BTreeSet<usize> = shared.iter().map(|thing| number((true, *thing))).collect();
        Needs { hosts, shared: shared.into_iter().collect() }
    });
    let needs: Vec<Needs> = needs.collect();
    let mut schedule = BusiestFirst::new(&needs, numbers.len());
    let mut steps: Vec<Vec<usize>> = Vec::new();
    let mut open = needs.len();
    while open > 0 {
        let step = schedule.step(steps.len());
        open -= step.len();
        steps.push(step);
    }
    steps
}

/// What a test has for itself while it runs.
struct Needs {
    hosts: [usize; 2],
    shared: Vec<usize>,
}

/// How many tests of a class are looked at for the one whose hosts have the most tests left.
const LOOK: usize = 32;

/// A test, or one of a class: tests that share the same things, of which a step has one at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Test(usize),
    Class(usize),
}

/// Makes steps that begin with the tests whose needs have the most tests left. No schedule has fewer steps than the busiest need has
/// tests; this one has seldom more than one or two beyond that.
struct BusiestFirst<'a> {
    needs: &'a [Needs],
    /// Tests that are left, for each need.
    left: Vec<usize>,
    /// The last step that uses each need.
    used: Vec<Option<usize>>,
    /// Open tests that share nothing.
    apart: Vec<usize>,
    /// Open tests of each class.
    classes: Vec<VecDeque<usize>>,
}

impl<'a> BusiestFirst<'a> {
    fn new(needs: &'a [Needs], things: usize) -> Self {
        let mut left = vec![0; things];
        let mut apart = Vec::new();
        let mut members: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
        for (at, own) in needs.iter().enumerate() {
            own.hosts.iter().chain(&own.shared).for_each(|need| left[*need] += 1);
            if own.shared.is_empty() {
                apart.push(at);
            } else {
                members.entry(&own.shared).or_default().push(at);
            }
        }
        // Neighbours in the order of the pairs have a host in common; those in this order seldom have.
        let mixed = |mut tests: Vec<usize>| {
            SplitMix64::new(0).shuffle(&mut tests);
            tests.into()
        };
        let classes = members.into_values().map(mixed).collect();
        Self { needs, left, used: vec![None; things], apart, classes }
    }

    /// The tests that the busiest need of a test has left, and those of all of its needs.
    fn load(&self, test: usize) -> (usize, usize) {
        let Needs { hosts, shared } = &self.needs[test];
        let all = hosts.iter().chain(shared).map(|need| self.left[*need]);
        all.fold((0, 0), |(most, sum), left| (most.max(left), sum + left))
    }

    fn is_free(&self, needs: &[usize], step: usize) -> bool {
        needs.iter().all(|need| self.used[*need] != Some(step))
    }

    /// Takes a test of a class for a step, if its things are free and one of its tests has free hosts.
    fn take(&mut self, class: usize, step: usize) -> Option<usize> {
        let tests = &self.classes[class];
        let shared = &self.needs[*tests.front()?].shared;
        if !self.is_free(shared, step) {
            return None;
        }
        let free = tests.iter().enumerate().filter(|(_, test)| self.is_free(&self.needs[**test].hosts, step));
        let place = free.take(LOOK).max_by_key(|(place, test)| (self.load(**test), Reverse(*place)))?.0;
        self.classes[class].remove(place)
    }

    fn step(&mut self, step: usize) -> Vec<usize> {
        let tests = self.apart.iter().map(|test| (Reverse(self.load(*test)), Next::Test(*test)));
        let classes = self.classes.iter().enumerate();
        let classes =
            classes.filter_map(|(class, tests)| Some((Reverse(self.load(*tests.front()?)), Next::Class(class))));
        let mut order: Vec<(Reverse<(usize, usize)>, Next)> = tests.chain(classes).collect();
        order.sort_unstable();
        let mut taken = Vec::new();
        for (_, next) in order {
            let test = match next {
                Next::Test(test) => Some(test).filter(|test| self.is_free(&self.needs[*test].hosts, step)),
                Next::Class(class) => self.take(class, step),
            };
            if let Some(test) = test {
                let Needs { hosts, shared } = &self.needs[test];
                hosts.iter().chain(shared).for_each(|need| self.used[*need] = Some(step));
                taken.push(test);
            }
        }
        for test in &taken {
            let Needs { hosts, shared } = &self.needs[*test];
            hosts.iter().chain(shared).for_each(|need| self.left[*need] -= 1);
        }
        let used = &self.used;
        // A test whose hosts are used in this step may be another one of them.
        let chosen: BTreeSet<usize> = taken.iter().copied().collect();
        self.apart.retain(|test| used[self.needs[*test].hosts[0]] != Some(step) || !chosen.contains(test));
        taken
    }
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

/// One group: the steps of [`RoundRobin`], each once per direction.
fn circle(pairs: &[(usize, usize)], hosts: &[usize]) -> Vec<Vec<usize>> {
    let seats: BTreeMap<usize, usize> = hosts.iter().enumerate().map(|(slot, host)| (*host, slot)).collect();
    let tournament = RoundRobin::new(hosts.len());
    by_step(pairs, |(from, to)| {
        let (a, b) = (seats[&from], seats[&to]);
        2 * tournament.step_of(a, b) + usize::from(a > b)
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
    fn a_round_robin_has_each_pair_once_and_no_host_twice_in_a_step() {
        for hosts in (0..=64).chain([127, 128, 999, 1_000]) {
            let tournament = RoundRobin::new(hosts);
            let fewest = if hosts < 2 { 0 } else { hosts - 1 + hosts % 2 };
            assert_eq!(tournament.steps(), fewest, "{hosts} hosts");
            let mut seen = vec![false; hosts * hosts];
            let mut last = vec![usize::MAX; hosts];
            for step in 0..tournament.steps() {
                for (one, other) in tournament.pairs(step) {
                    assert!(one < other && other < hosts, "{one} and {other} of {hosts}");
                    assert_eq!(tournament.step_of(other, one), step);
                    assert!(!std::mem::replace(&mut seen[one * hosts + other], true), "{one} and {other} of {hosts}");
                    for host in [one, other] {
                        assert_ne!(std::mem::replace(&mut last[host], step), step, "{host} of {hosts} in {step}");
                    }
                }
            }
            let pairs = seen.iter().filter(|seen| **seen).count();
            assert_eq!(pairs, hosts * hosts.saturating_sub(1) / 2, "{hosts} hosts");
        }
        assert_eq!(RoundRobin::new(1).pairs(0).count(), 0);
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

    /// Racks of hosts, with one test at a time in each rack, or on its uplink; returns the number of steps and the least there can be.
    fn racked(racks: usize, size: usize, uplink: bool) -> (usize, usize) {
        let pairs = all_pairs(racks * size);
        let rack = |host: usize| host / size;
        let shared: Vec<Vec<usize>> = pairs
            .iter()
            .map(|(near, far)| match (rack(*near), rack(*far)) {
                (near, far) if near == far && uplink => vec![],
                (near, far) => vec![near, far],
            })
            .collect();
        let steps = steps_sharing(&pairs, &shared.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut seen: Vec<usize> = steps.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..pairs.len()).collect::<Vec<_>>());
        for step in &steps {
            let hosts: Vec<usize> = step.iter().flat_map(|at| [pairs[*at].0, pairs[*at].1]).collect();
            assert_eq!(hosts.iter().collect::<BTreeSet<_>>().len(), hosts.len(), "{step:?}");
            let things: Vec<usize> =
                step.iter().flat_map(|at| shared[*at].iter().copied().collect::<BTreeSet<_>>()).collect();
            assert_eq!(things.iter().collect::<BTreeSet<_>>().len(), things.len(), "{step:?}");
        }
        let outward = 2 * size * size * (racks - 1);
        let busiest = if uplink { outward } else { outward + size * (size - 1) };
        // Of an odd number of racks, one is idle in each step.
        let in_pairs = size * size * racks * (racks - 1);
        (steps.len(), busiest.max(in_pairs.div_ceil(racks / 2)))
    }

    #[test]
    fn many_racks_take_few_more_steps_than_the_busiest_has_tests() {
        for (racks, size, uplink) in [(8, 6, true), (8, 6, false), (5, 8, true), (2, 10, true)] {
            let (steps, fewest) = racked(racks, size, uplink);
            assert!(steps * 100 <= fewest * 104, "{racks} racks of {size}: {steps} steps, {fewest} at least");
        }
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

//! Sets of pairs of hosts that send at the same time.

use std::collections::{BTreeMap, BTreeSet};

use model::{Plan, PlanTraffic, SplitMix64, TrafficKind};
use text::Said;
use thiserror::Error;

use super::order::random_of;

/// Fewest hosts of traffic: with two, all kinds are the same pair.
const LEAST_HOSTS: usize = 3;

/// A mistake in the hosts that send at the same time, or in their number.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum TrafficError {
    /// A level of its factor that is not a number of hosts or sets.
    #[error("{factor}: '{level}' is not a positive whole number")]
    NotWhole {
        /// The factor.
        factor: &'static str,
        /// What the user wrote.
        level: String,
    },
    /// No level of its factor.
    #[error("{} needs the number of `{factor}`", kind.name())]
    NoNumber {
        /// The traffic.
        kind: TrafficKind,
        /// The factor.
        factor: &'static str,
    },
    /// More hosts around a hub than there are.
    #[error("{}: {number} is too many: {} of {hub} has at most {most}", kind.factor().unwrap_or_default(), kind.name())]
    TooMany {
        /// The traffic.
        kind: TrafficKind,
        /// The host that all others send to or receive from.
        hub: String,
        /// The number of other hosts in the plan.
        number: usize,
        /// How many there are.
        most: usize,
    },
    /// Near and far hosts differ, and each host is to send and to receive.
    #[error("{} runs within one set of hosts: give `--from` and `--to` the same hosts", kind.name())]
    Apart {
        /// The traffic.
        kind: TrafficKind,
    },
    /// Too few hosts.
    #[error("{} needs {LEAST_HOSTS} hosts or more", kind.name())]
    FewHosts {
        /// The traffic.
        kind: TrafficKind,
    },
}

/// Numbers of senders or receivers up to all of them: 1, 2, 4, and so on.
#[must_use]
pub fn doubling(all: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> =
        std::iter::successors(Some(1), |number| Some(number * 2)).take_while(|number| *number < all).collect();
    numbers.extend((all > 0).then_some(all));
    numbers
}

/// The sets of a plan's traffic at one level of its factor, each a list of pairs of hosts, the near one first. Incast has a set for
/// each far host, fan-out one for each near host, the others have one.
///
/// Senders of an incast, and receivers of a fan-out, are taken from the clusters in turn, in the order of the plan: so the sets of
/// fewer hosts are parts of those of more, and none is within one cluster.
///
/// # Errors
/// [`TrafficError`].
pub(super) fn sets(
    plan: &Plan,
    traffic: PlanTraffic,
    level: Option<&str>,
) -> Result<Vec<Vec<[String; 2]>>, TrafficError> {
    let kind = traffic.kind;
    let number: usize = match (kind.factor(), level) {
        (None, _) => 1,
        (Some(factor), Some(level)) => {
            let number = level.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| TrafficError::NotWhole { factor, level: level.to_owned() })?
        }
        (Some(factor), None) => return Err(TrafficError::NoNumber { kind, factor }),
    };
    if kind.has_hub() {
        let (hubs, others) = if kind == TrafficKind::Incast { (&plan.to, &plan.from) } else { (&plan.from, &plan.to) };
        return hubs.iter().map(|hub| around(plan, kind, hub, others, number)).collect();
    }
    let (from, to): (BTreeSet<&String>, BTreeSet<&String>) = (plan.from.iter().collect(), plan.to.iter().collect());
    if from != to {
        return Err(TrafficError::Apart { kind });
    }
    if from.len() < LEAST_HOSTS {
        return Err(TrafficError::FewHosts { kind });
    }
    let mut random = random_of(traffic.seed, u32::try_from(number).unwrap_or(u32::MAX));
    let pairs = match kind {
        TrafficKind::Bisection => across(&cut(&clusters(plan, &plan.from), &mut random)),
        TrafficKind::Permutation => derangement(plan.from.len(), &mut random).into_iter().enumerate().collect(),
        _ => ring(plan.from.len()),
    };
    Ok(vec![pairs.into_iter().map(|(near, far)| [plan.from[near].clone(), plan.from[far].clone()]).collect()])
}

/// The pairs of `hub` with the first `number` of the `others`.
fn around(
    plan: &Plan,
    kind: TrafficKind,
    hub: &String,
    others: &[String],
    number: usize,
) -> Result<Vec<[String; 2]>, TrafficError> {
    let others: Vec<&String> = others.iter().filter(|other| *other != hub).collect();
    let most = others.len();
    if number > most {
        return Err(TrafficError::TooMany { kind, hub: hub.clone(), number, most });
    }
    let order = in_turn(&clusters(plan, &others));
    let pair = |at: usize| {
        let other = others[at].clone();
        if kind == TrafficKind::Incast { [other, hub.clone()] } else { [hub.clone(), other] }
    };
    Ok(order.into_iter().take(number).map(pair).collect())
}

/// The number of each host's cluster.
fn clusters<H: AsRef<str>>(plan: &Plan, hosts: &[H]) -> Vec<usize> {
    let mut known: Vec<Option<&str>> = Vec::new();
    let number = |host: &H| {
        let cluster = plan.cluster_of(host.as_ref());
        known.iter().position(|other| *other == cluster).unwrap_or_else(|| {
            known.push(cluster);
            known.len() - 1
        })
    };
    hosts.iter().map(number).collect()
}

/// All hosts, one of each cluster in turn.
fn in_turn(clusters: &[usize]) -> Vec<usize> {
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (host, cluster) in clusters.iter().enumerate() {
        let turn = taken.entry(*cluster).or_default();
        order.push((*turn, *cluster, host));
        *turn += 1;
    }
    order.sort_unstable();
    order.into_iter().map(|(.., host)| host).collect()
}

/// Each of `hosts` hosts to the next one, the last one to the first.
fn ring(hosts: usize) -> Vec<(usize, usize)> {
    (0..hosts).map(|host| (host, (host + 1) % hosts)).collect()
}

/// A random permutation of `hosts` hosts, two or more, in which none is in its own place; each of them is as likely as every other.
fn derangement(hosts: usize, random: &mut SplitMix64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..hosts).collect();
    // About every third permutation is one.
    while places.iter().enumerate().any(|(at, place)| at == *place) {
        random.shuffle(&mut places);
    }
    places
}

/// Two halves of the hosts, in random order, with a difference of one at most: of whole clusters where that is possible, otherwise
/// random ones.
fn cut(clusters: &[usize], random: &mut SplitMix64) -> [Vec<usize>; 2] {
    let mut hosts: Vec<usize> = (0..clusters.len()).collect();
    random.shuffle(&mut hosts);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    hosts.iter().for_each(|host| members.entry(clusters[*host]).or_default().push(*host));
    let mut members: Vec<Vec<usize>> = members.into_values().collect();
    random.shuffle(&mut members);
    members.sort_by_key(|members| std::cmp::Reverse(members.len()));
    let mut halves = [Vec::new(), Vec::new()];
    for mut members in members {
        let smaller = usize::from(halves[1].len() < halves[0].len());
        halves[smaller].append(&mut members);
    }
    if halves[0].len().abs_diff(halves[1].len()) > 1 {
        let second = hosts.split_off(hosts.len() / 2);
        halves = [hosts, second];
    }
    halves
}

/// Each host of one half with one of the other, in both directions. A host too many has no partner.
fn across([one, other]: &[Vec<usize>; 2]) -> Vec<(usize, usize)> {
    one.iter().zip(other).flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlannedCell, expand};
    use model::{Factor, FactorKind};
    use proptest::prelude::*;

    fn plan(kind: TrafficKind, hosts: usize, racks: usize, levels: &[usize]) -> Plan {
        let names: Vec<String> = (0..hosts).map(|host| format!("n{host}")).collect();
        let rack = |host: usize| [("rack".to_owned(), format!("r{}", host * racks / hosts))].into();
        let factor = kind.factor().map(|name| Factor {
            name: name.into(),
            key: name.into(),
            kind: FactorKind::Traffic,
            levels: levels.iter().map(ToString::to_string).collect(),
            ..Factor::default()
        });
        Plan {
            labels: names.iter().cloned().zip((0..hosts).map(rack)).collect(),
            from: names.clone(),
            to: names,
            factors: factor.into_iter().collect(),
            traffic: Some(PlanTraffic { kind, seed: 7 }),
            ..Plan::default()
        }
    }

    fn ends(cell: &PlannedCell) -> (&str, &str) {
        (cell.from.as_deref().unwrap(), cell.to.as_deref().unwrap())
    }

    /// The cells by their steps.
    fn steps(cells: &[PlannedCell]) -> Vec<Vec<(&str, &str)>> {
        let mut steps: BTreeMap<usize, Vec<(&str, &str)>> = BTreeMap::new();
        cells.iter().for_each(|cell| steps.entry(cell.combination).or_default().push(ends(cell)));
        steps.into_values().collect()
    }

    #[test]
    fn numbers_double_up_to_all() {
        assert_eq!(doubling(15), [1, 2, 4, 8, 15]);
        assert_eq!(doubling(16), [1, 2, 4, 8, 16]);
        assert_eq!((doubling(1), doubling(0)), (vec![1], vec![]));
    }

    #[test]
    fn incast_has_a_step_for_each_number_of_senders_and_each_receiver() {
        let mut plan = plan(TrafficKind::Incast, 5, 2, &[1, 2, 4]);
        let cells = expand(&plan).unwrap();
        assert_eq!((cells.len(), steps(&cells).len()), (5 * 7, 15));
        assert!(cells.iter().all(|cell| cell.together));
        plan.to = vec!["n0".into()];
        let cells = expand(&plan).unwrap();
        // n0 to n2 are in one rack, n3 and n4 in the other: the senders come from both in turn.
        let of: Vec<Vec<&str>> =
            steps(&cells).iter().map(|step| step.iter().map(|(from, _)| *from).collect()).collect();
        assert_eq!(of, [vec!["n1"], vec!["n1", "n3"], vec!["n1", "n3", "n2", "n4"]]);
        assert_eq!(cells[6].levels, [("from", "n4"), ("senders", "4")].map(|(k, v)| (k.into(), v.into())).into());
    }

    #[test]
    fn fan_out_is_the_other_way_round() {
        let mut plan = plan(TrafficKind::FanOut, 4, 1, &[3]);
        plan.from = vec!["n2".into()];
        let cells = expand(&plan).unwrap();
        assert_eq!(steps(&cells), [[("n2", "n0"), ("n2", "n1"), ("n2", "n3")]]);
    }

    #[test]
    fn halves_are_of_whole_racks_where_racks_allow_it() {
        let halves = |racks: usize| {
            let plan = plan(TrafficKind::Bisection, 8, racks, &[1, 2, 3]);
            let rack = |host: &str| plan.labels[host]["rack"].clone();
            let cells = expand(&plan).unwrap();
            let within = cells.iter().filter(|cell| rack(ends(cell).0) == rack(ends(cell).1)).count();
            (cells.len(), within)
        };
        assert_eq!([2, 4].map(halves), [(24, 0), (24, 0)]);
        // Three racks of 3, 3 and 2 hosts make no halves.
        assert_eq!(halves(3).0, 24);
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |plan: &Plan| expand(plan).unwrap_err().to_string();
        let many = refused(&plan(TrafficKind::Incast, 5, 1, &[2, 5]));
        assert_eq!(many, "senders: 5 is too many: incast of n0 has at most 4");
        let apart = Plan { to: vec!["x".into()], ..plan(TrafficKind::Ring, 5, 1, &[]) };
        assert_eq!(refused(&apart), "ring runs within one set of hosts: give `--from` and `--to` the same hosts");
        assert_eq!(refused(&plan(TrafficKind::Permutation, 2, 1, &[1])), "permutation needs 3 hosts or more");
        assert_eq!(refused(&plan(TrafficKind::Incast, 3, 1, &[0])), "senders: '0' is not a positive whole number");
    }

    proptest! {
        #[test]
        fn a_host_sends_to_one_and_receives_from_one(
            hosts in 3usize..40, racks in 1usize..6, seed: u64, kind in 2usize..5, level in 1usize..9,
        ) {
            let kind = TrafficKind::NAMES[kind].1;
            let mut plan = plan(kind, hosts, racks.min(hosts), &[level]);
            plan.traffic = Some(PlanTraffic { kind, seed });
            let cells = expand(&plan).unwrap();
            prop_assert_eq!(&cells, &expand(&plan).unwrap(), "the seed decides");
            prop_assert_eq!(steps(&cells).len(), 1);
            let (near, far): (BTreeSet<&str>, BTreeSet<&str>) = cells.iter().map(ends).unzip();
            prop_assert!(near.len() == cells.len() && far.len() == cells.len());
            prop_assert!(cells.iter().all(|cell| ends(cell).0 != ends(cell).1));
            prop_assert_eq!(near, far);
            let expected = if kind == TrafficKind::Bisection { hosts - hosts % 2 } else { hosts };
            prop_assert_eq!(cells.len(), expected);
        }

        #[test]
        fn a_cut_has_both_directions_of_each_pair_and_no_host_in_both_halves(clusters in prop::collection::vec(0usize..4, 3..30), seed: u64) {
            let halves = cut(&clusters, &mut SplitMix64::new(seed));
            prop_assert!(halves[0].len().abs_diff(halves[1].len()) <= 1);
            let mut all: Vec<usize> = halves.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..clusters.len()).collect::<Vec<_>>());
            let pairs: BTreeSet<(usize, usize)> = across(&halves).into_iter().collect();
            prop_assert!(pairs.iter().all(|(a, b)| pairs.contains(&(*b, *a))));
        }

        #[test]
        fn fewer_senders_are_a_part_of_more_and_clusters_are_even(clusters in prop::collection::vec(0usize..4, 1..30)) {
            let order = in_turn(&clusters);
            for number in 1..=order.len() {
                let count = |cluster: usize| order[..number].iter().filter(|host| clusters[**host] == cluster).count();
                let all = |cluster: usize| clusters.iter().filter(|other| **other == cluster).count();
                let most = (0..4).map(count).max().unwrap_or(0);
                prop_assert!((0..4).all(|cluster| count(cluster) + 1 >= most.min(all(cluster) + 1)));
            }
        }
    }

    #[test]
    fn every_derangement_of_four_is_as_likely() {
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut random = SplitMix64::new(3);
        (0..9_000).for_each(|_| *counts.entry(derangement(4, &mut random)).or_default() += 1);
        assert_eq!(counts.len(), 9);
        assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}

//! Clusters of hosts, such as racks, that stand out of a matrix.

use super::fabric::{Fabric, OF_MEDIAN, Reach};
use super::matrix::Pairs;
use super::outlier::{Of, Test};
use crate::stats::MeanDifference;
use crate::stats::two_way::Side;

/// The tests of a matrix's clusters: of the terms that explain its blocks, in their order, and of the difference between pairs within a
/// cluster and the others. Terms that explain nothing have no test, but are compared ([`Fabric::compared`]).
pub(super) fn tests(pairs: &Pairs, fabric: &Fabric) -> Vec<Test> {
    let of_term = |term: &super::fabric::Term| {
        let cells = term.places.iter().flat_map(|place| pairs.behind[*place].cells.iter().copied()).collect();
        Test::new(pairs.kind, subject(fabric, term.reach), term.test, cells, pairs.values.len())
    };
    fabric.terms.iter().map(of_term).chain(within(pairs, fabric)).collect()
}

/// What a term is about.
pub(super) fn subject(fabric: &Fabric, reach: Reach) -> Of {
    let name = |cluster: usize| fabric.names[cluster].clone();
    let role = |side: usize| [Side::Rows, Side::Columns][side];
    match reach {
        Reach::Hosts { side, cluster } => Of::Cluster { name: name(cluster), role: role(side), leaving: false },
        Reach::Uplink { side, cluster } => Of::Cluster { name: name(cluster), role: role(side), leaving: true },
        Reach::Block { from, to } => Of::Clusters { from: name(from), to: name(to) },
    }
}

/// The difference between the pairs within a cluster and the others.
fn within(pairs: &Pairs, fabric: &Fabric) -> Option<Test> {
    let label = pairs.label.clone().filter(|_| fabric.within != 0.0)?;
    let count = |wanted: bool| (0..pairs.values.len()).filter(|place| pairs.is_within(*place) == Some(wanted)).count();
    let variance: f64 = [true, false].map(|wanted| OF_MEDIAN / count(wanted).max(1) as f64).iter().sum();
    let hosts = pairs.hosts[0].len() + pairs.hosts[1].len();
    let df = (pairs.values.len() - hosts).max(1) as f64;
    let test = MeanDifference { value: fabric.within, standard_error: fabric.scale * variance.sqrt(), df };
    let places = (0..pairs.values.len()).filter(|place| pairs.is_within(*place) == Some(true));
    let cells = places.flat_map(|place| pairs.behind[place].cells.iter().copied()).collect();
    Some(Test::new(pairs.kind, Of::Within { label }, test, cells, pairs.values.len()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{FindingKind, Pattern, RunKind, SplitMix64};

    use super::super::hosts::of_hosts;
    use super::super::table::testing::{PlanRun, planned};

    const HOSTS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

    /// The rack of a host: four racks of three.
    fn rack(host: &str) -> usize {
        HOSTS.iter().position(|name| *name == host).unwrap_or(0) / 3
    }

    fn run(seed: u64, spread: f64, factor: impl Fn(&str, &str) -> f64) -> PlanRun {
        let mut random = SplitMix64::new(seed);
        let mut run = planned(&[("from", &HOSTS), ("to", &HOSTS)], Pattern::Stream, 3, |levels, _| {
            1e9 * factor(&levels["from"], &levels["to"]) * (spread * random.normal()).exp()
        });
        run.header.kind = RunKind::Mesh;
        let labels = HOSTS
            .iter()
            .map(|host| ((*host).to_owned(), BTreeMap::from([("rack".to_owned(), format!("r{}", rack(host)))])));
        if let Some(plan) = &mut run.header.plan {
            plan.labels = labels.collect();
        }
        run
    }

    fn statements(run: &PlanRun) -> Vec<String> {
        let found = of_hosts(&run.header, &run.outcomes, &[]).into_iter();
        found.filter(|one| one.kind != FindingKind::Unconfirmed).map(|one| one.statement.plain()).collect()
    }

    #[test]
    fn a_slow_rack_is_named_and_none_of_its_hosts() {
        let found = statements(&run(1, 0.03, |from, _| if rack(from) == 2 { 0.4 } else { 1.0 }));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("r2 is slow as a sender: the goodput of its hosts is 2."), "{found:?}");
    }

    #[test]
    fn a_slow_host_makes_no_slow_rack() {
        let found = statements(&run(2, 0.03, |from, _| if from == "e" { 0.2 } else { 1.0 }));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("e is slow as a sender"), "{found:?}");
    }

    #[test]
    fn a_slow_link_between_two_racks_is_named_and_none_of_its_pairs() {
        let found = statements(&run(3, 0.03, |from, to| if rack(from) == 0 && rack(to) == 3 { 0.3 } else { 1.0 }));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("r0 → r3 is slow: the goodput of pairs between them is "), "{found:?}");
    }

    #[test]
    fn slower_pairs_between_racks_are_one_finding_and_hide_none() {
        let uplink = |from: &str, to: &str| if rack(from) == rack(to) { 4.0 } else { 1.0 };
        let within = "within a rack the goodput is ";
        let even = statements(&run(4, 0.05, uplink));
        assert!(even.len() == 1 && even[0].starts_with(within), "{even:#?}");
        let slow = |from: &str, to: &str| uplink(from, to) * if from == "a" && to == "b" { 0.2 } else { 1.0 };
        let found = statements(&run(5, 0.05, slow));
        assert!(found.len() == 2 && found[1].starts_with("a → b is slow for its hosts"), "{found:#?}");
        assert!(found[1].contains("; b → a is not: the pair is asymmetric ("), "{found:?}");
    }

    #[test]
    fn a_link_that_is_slow_in_both_directions_is_one_finding() {
        let slow = |from: &str, to: &str| {
            if [from, to] == ["c", "k"] || [from, to] == ["k", "c"] { 0.25 } else { 1.0 }
        };
        let found = statements(&run(6, 0.05, slow));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0].starts_with("c → k is slow for its hosts") && found[0].contains("; k → c is as well ("),
            "{found:?}"
        );
    }

    #[test]
    fn a_slow_uplink_makes_no_pair_within_its_rack_fast() {
        let leaves = |from: &str, to: &str| rack(from) == 1 && rack(to) != 1;
        let found = statements(&run(7, 0.03, |from, to| if leaves(from, to) { 0.4 } else { 1.0 }));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0].starts_with("r1 is slow as a sender to others: the goodput of pairs that leave it is 2."),
            "{found:?}"
        );
        assert!(found[0].contains(" lower than that of other pairs between clusters (95 % interval"), "{found:?}");
    }

    #[test]
    fn even_racks_have_a_finding_in_few_runs_of_a_hundred() {
        let of = |seed: &u64| !statements(&run(1_000 + seed, 0.25, |_, _| 1.0)).is_empty();
        let wrong = (0..100).filter(of).count();
        assert!(wrong <= 12, "{wrong} of 100");
    }
}

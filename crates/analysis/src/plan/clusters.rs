//! Clusters of hosts, such as racks, that stand out of a matrix.

use std::collections::BTreeMap;

use super::matrix::Matrix;
use super::outlier::{LEAST, Of, Test};
use crate::stats::MeanDifference;
use crate::stats::two_way::Side;
use model::median;

/// Fewest hosts of a cluster that is compared with the others: of one host nobody knows whether it is the host or the cluster.
const LEAST_HOSTS: usize = 2;
/// Fewest clusters that are compared.
const LEAST_CLUSTERS: usize = 3;
/// Fewest pairs between two clusters that are compared with the fit.
const LEAST_PAIRS: usize = 3;
/// The median absolute deviation of normal values is their standard deviation over this.
const NORMAL: f64 = 1.4826;
/// The variance of the median of normal values is this many times that of their mean.
const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// A cluster, or the pairs of two, that stands out.
pub(super) struct Named<'a>(&'a Test);

impl<'a> Named<'a> {
    pub(super) fn of(test: &'a Test) -> Option<Self> {
        matches!(test.of, Of::Cluster { .. } | Of::Clusters { .. }).then_some(Self(test))
    }

    /// How much it differs, as a logarithm.
    pub(super) fn value(&self) -> f64 {
        self.0.test.value
    }

    pub(super) fn is_cluster(&self, cluster: &str, wanted: Side) -> bool {
        matches!(&self.0.of, Of::Cluster { name, role } if name == cluster && *role == wanted)
    }

    pub(super) fn is_pair(&self, [one, other]: [&Option<String>; 2]) -> bool {
        let Of::Clusters { from, to } = &self.0.of else { return false };
        one.as_ref() == Some(from) && other.as_ref() == Some(to)
    }
}

/// The tests of a matrix's clusters in each role, and of the pairs between two of them.
pub(super) fn tests(matrix: &Matrix) -> Vec<Test> {
    let mut tests = Vec::new();
    for (side, role) in [Side::Rows, Side::Columns].into_iter().enumerate() {
        tests.extend(of_role(matrix, side, role));
    }
    tests.extend(between(matrix));
    tests.extend(within(matrix));
    tests
}

/// The difference between the pairs within a cluster and the others.
fn within(matrix: &Matrix) -> Option<Test> {
    let label = matrix.label.clone().filter(|_| matrix.within != 0.0)?;
    let variance: f64 = matrix.split.iter().map(|count| OF_MEDIAN / *count as f64).sum();
    let standard_error = matrix.fit.scale() * variance.sqrt();
    let test = MeanDifference { value: matrix.within, standard_error, df: matrix.fit.df() };
    let cells = cells(matrix, |row, column| matrix.clusters[0][row] == matrix.clusters[1][column]);
    Some(Test { kind: matrix.kind, of: Of::Within { label }, test, cells, pairs: matrix.values.len(), error: None })
}

/// The places of the members of each cluster.
fn members(clusters: &[Option<String>]) -> BTreeMap<&str, Vec<usize>> {
    let mut all: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, cluster) in clusters.iter().enumerate() {
        if let Some(cluster) = cluster {
            all.entry(cluster).or_default().push(place);
        }
    }
    all
}

/// Clusters whose hosts have another effect than those of the other clusters. A cluster is compared by the median of its hosts, and only
/// if most of them are on the same side, so that one slow host makes no slow rack.
fn of_role(matrix: &Matrix, side: usize, role: Side) -> Vec<Test> {
    let all = members(&matrix.clusters[side]);
    let compared: BTreeMap<&str, &Vec<usize>> =
        all.iter().filter(|(_, own)| own.len() >= LEAST_HOSTS).map(|(name, own)| (*name, own)).collect();
    let hosts: usize = compared.values().map(|own| own.len()).sum();
    let Some(df) = hosts.checked_sub(compared.len()).filter(|df| *df > 0 && compared.len() >= LEAST_CLUSTERS) else {
        return Vec::new();
    };
    let effects = matrix.fit.effects(role);
    let of = |own: &[usize]| -> Vec<f64> { own.iter().map(|place| effects[*place]).collect() };
    let centres: BTreeMap<&str, f64> =
        compared.iter().filter_map(|(name, own)| Some((*name, median(&of(own))?))).collect();
    // The spread of hosts within their clusters; the fit's own error is its least.
    let apart: Vec<f64> = compared
        .iter()
        .flat_map(|(name, own)| own.iter().map(|place| (effects[*place] - centres[name]).abs()))
        .filter(|apart| *apart > 0.0)
        .collect();
    let partners = matrix.values.len() as f64 / effects.len() as f64;
    let spread = (NORMAL * median(&apart).unwrap_or(0.0)).max(matrix.fit.scale() / partners.sqrt());
    let mut tests = Vec::new();
    for (name, own) in &compared {
        let others: Vec<f64> =
            compared.iter().filter(|(other, _)| *other != name).flat_map(|(_, other)| of(other)).collect();
        let Some(middle) = median(&others) else { continue };
        let mut value = centres[name] - middle;
        let alike = of(own).into_iter().filter(|effect| (effect - middle) * value.signum() >= LEAST.ln() / 2.0).count();
        // It is one of the comparisons in any case.
        if 3 * alike < 2 * own.len() {
            value = 0.0;
        }
        let variance = OF_MEDIAN * (1.0 / own.len() as f64 + 1.0 / others.len() as f64);
        let test = MeanDifference { value, standard_error: spread * variance.sqrt(), df: df as f64 };
        let of = Of::Cluster { name: (*name).to_owned(), role };
        let cells = cells(matrix, |row, column| own.contains(&[row, column][side]));
        tests.push(Test { kind: matrix.kind, of, test, cells, pairs: matrix.values.len(), error: None });
    }
    tests
}

/// Two clusters whose pairs differ from what their hosts' other pairs make expect.
fn between(matrix: &Matrix) -> Vec<Test> {
    let mut residuals: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for (value, residual) in matrix.values.iter().zip(&matrix.fit.residuals) {
        let ends = (&matrix.clusters[0][value.row], &matrix.clusters[1][value.column]);
        if let (Some(from), Some(to)) = ends {
            residuals.entry((from, to)).or_default().push(*residual);
        }
    }
    let mut tests = Vec::new();
    // Two clusters have one link between them: its pairs are no majority against themselves.
    if residuals.keys().map(|(from, _)| from).collect::<std::collections::BTreeSet<_>>().len() < LEAST_CLUSTERS {
        return tests;
    }
    for ((from, to), own) in residuals.iter().filter(|((from, to), own)| from != to && own.len() >= LEAST_PAIRS) {
        let Some(mut value) = median(own) else { continue };
        let alike = own.iter().filter(|residual| **residual * value.signum() >= LEAST.ln() / 2.0).count();
        // It is one of the comparisons in any case.
        if 3 * alike < 2 * own.len() {
            value = 0.0;
        }
        let standard_error = matrix.fit.scale() * (OF_MEDIAN / own.len() as f64).sqrt();
        let test = MeanDifference { value, standard_error, df: matrix.fit.df() };
        let of = Of::Clusters { from: (*from).to_owned(), to: (*to).to_owned() };
        let is_between = |row: usize, column: usize| {
            matrix.clusters[0][row].as_deref() == Some(from) && matrix.clusters[1][column].as_deref() == Some(to)
        };
        tests.push(Test {
            kind: matrix.kind,
            of,
            test,
            cells: cells(matrix, is_between),
            pairs: matrix.values.len(),
            error: None,
        });
    }
    tests
}

/// The cells of the pairs for which `has` is true.
fn cells(matrix: &Matrix, has: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let own = matrix.values.iter().zip(&matrix.behind).filter(|(value, _)| has(value.row, value.column));
    own.flat_map(|(_, (cells, _))| cells.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{RunHeader, SplitMix64};

    use super::super::hosts::of_hosts;
    use super::super::table::testing::{PlanRun, planned};

    const HOSTS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

    /// The rack of a host: four racks of three.
    fn rack(host: &str) -> usize {
        HOSTS.iter().position(|name| *name == host).unwrap_or(0) / 3
    }

    fn run(seed: u64, spread: f64, factor: impl Fn(&str, &str) -> f64) -> PlanRun {
        let mut random = SplitMix64::new(seed);
        let mut run = planned(&[("from", &HOSTS), ("to", &HOSTS)], "stream", 3, |levels, _| {
            1e9 * factor(&levels["from"], &levels["to"]) * (spread * random.normal()).exp()
        });
        run.header.kind = RunHeader::MESH.into();
        let labels = HOSTS
            .iter()
            .map(|host| ((*host).to_owned(), BTreeMap::from([("rack".to_owned(), format!("r{}", rack(host)))])));
        if let Some(plan) = &mut run.header.plan {
            plan.labels = labels.collect();
        }
        run
    }

    fn statements(run: &PlanRun) -> Vec<String> {
        of_hosts(&run.header, &run.outcomes, &[]).into_iter().map(|finding| finding.statement).collect()
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
    fn even_racks_have_a_finding_in_few_runs_of_a_hundred() {
        let of = |seed: &u64| !statements(&run(1_000 + seed, 0.25, |_, _| 1.0)).is_empty();
        let wrong = (0..100).filter(of).count();
        assert!(wrong <= 12, "{wrong} of 100");
    }
}

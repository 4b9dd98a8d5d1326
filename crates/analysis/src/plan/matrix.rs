//! The matrices of a plan or an import: the values of pairs of hosts on a logarithmic scale, with their robust fit.
//!
//! On the logarithm of the values a matrix is a level, plus an effect of each sender, plus one of each receiver, plus what is the pair's
//! own ([`TwoWay`]). Where the hosts stand in clusters, such as racks, pairs within a cluster may all differ from those between two: this
//! difference is found with the fit and is no pair's own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Cell, Estimate, Factor, Outcome, RunHeader, median};

use super::sample::LEAST_PARTNERS;
use super::{dimensions, of_kind, part};
use crate::outcome::Headline;
use crate::stats::two_way::{OwnError, TableValue, TwoWay};
use crate::stats::{mean, t_quantile};

/// How often the difference between pairs within a cluster and others is found anew.
const TURNS: usize = 4;
/// Fewest pairs within a cluster, and fewest others, for that difference.
const LEAST_PAIRS: usize = 3;

/// A matrix of hosts.
pub(super) struct Matrix {
    pub(super) kind: Headline,
    /// The senders and the receivers.
    pub(super) hosts: [Vec<String>; 2],
    /// The cluster of each of them; `None` where the hosts have none.
    pub(super) clusters: [Vec<Option<String>>; 2],
    /// The logarithms of the pairs' values, less [`within`](Self::within) where both hosts are in one cluster.
    pub(super) values: Vec<TableValue>,
    /// The cells behind each value, and its error by the trials.
    pub(super) behind: Vec<(Vec<u32>, OwnError)>,
    pub(super) fit: TwoWay,
    /// How much the pairs within a cluster differ from the others, as a logarithm; 0 if there are too few of either.
    pub(super) within: f64,
    /// Numbers of pairs within a cluster and between two.
    pub(super) split: [usize; 2],
    /// The label that names the clusters.
    pub(super) label: Option<String>,
}

/// The cells of each pair that have a value, with its logarithm and the standard error of that.
type Pairs<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a Cell, f64, OwnError)>>;

impl Matrix {
    /// The matrix of one headline statistic, the mean over all other factors; `None` if too few pairs have a value.
    pub(super) fn new(header: &RunHeader, outcomes: &[Outcome], kind: Headline) -> Option<Self> {
        let plan = header.plan.as_ref()?;
        let cells = of_kind(&header.cells, kind);
        let rest: Vec<String> = dimensions(plan, &cells)
            .into_iter()
            .filter(|name| ![Factor::FROM, Factor::TO].contains(&name.as_str()))
            .collect();
        let of_cell: HashMap<u32, &Outcome> = outcomes.iter().map(|outcome| (outcome.cell, outcome)).collect();
        let mut pairs: Pairs<'_> = BTreeMap::new();
        let mut all: BTreeSet<BTreeMap<&str, &str>> = BTreeSet::new();
        for cell in &cells {
            all.insert(part(cell, &rest));
            let (Some(from), Some(to)) = (cell.levels.get(Factor::FROM), cell.levels.get(Factor::TO)) else { continue };
            let known = of_cell.get(&cell.id).and_then(|outcome| outcome.estimate.as_ref());
            if let Some(estimate) = known.filter(|estimate| estimate.value > 0.0) {
                pairs.entry((from, to)).or_default().push((cell, estimate.value.ln(), own_error(estimate)));
            }
        }
        // Pairs are comparable only with the same levels of all other factors.
        pairs.retain(|_, own| own.len() == all.len());
        while without_majority(&mut pairs) {}
        let [senders, receivers]: [BTreeSet<&str>; 2] =
            [pairs.keys().map(|(from, _)| *from).collect(), pairs.keys().map(|(_, to)| *to).collect()];
        let kept = |names: &[String], own: &BTreeSet<&str>| -> Vec<String> {
            names.iter().filter(|name| own.contains(name.as_str())).cloned().collect()
        };
        let hosts = [kept(&plan.from, &senders), kept(&plan.to, &receivers)];
        let [rows, columns]: [HashMap<&str, usize>; 2] = [0, 1].map(|side| {
            hosts[side].iter().enumerate().map(|(place, name): (usize, &String)| (name.as_str(), place)).collect()
        });
        let mut values = Vec::new();
        let mut behind = Vec::new();
        for ((from, to), own) in &pairs {
            let logs: Vec<f64> = own.iter().map(|(_, log, _)| *log).collect();
            let squares: f64 = own.iter().map(|(.., error)| error.standard_error.powi(2)).sum();
            let error = OwnError {
                standard_error: squares.sqrt() / own.len() as f64,
                df: own.iter().map(|(.., error)| error.df).sum(),
            };
            let (Some(row), Some(column)) = (rows.get(from), columns.get(to)) else { continue };
            values.push(TableValue { row: *row, column: *column, value: mean(&logs)? });
            behind.push((own.iter().map(|(cell, ..)| cell.id).collect::<Vec<u32>>(), error));
        }
        let errors: Vec<f64> = behind.iter().map(|(_, error)| error.standard_error).collect();
        let clusters = [0, 1].map(|side: usize| -> Vec<Option<String>> {
            hosts[side].iter().map(|host| plan.cluster_of(host).map(str::to_owned)).collect()
        });
        let least_scale = median(&errors).unwrap_or(0.0);
        let (fit, within) = fitted(&mut values, &clusters, least_scale)?;
        let count = |wanted| values.iter().filter(|value| is_within(value, &clusters) == Some(wanted)).count();
        let split = [count(true), count(false)];
        let label = plan.cluster_label().map(str::to_owned);
        Some(Self { kind, hosts, clusters, values, behind, fit, within, split, label })
    }

    /// The place of the pair of these hosts among the values.
    pub(super) fn places(&self) -> HashMap<(&str, &str), usize> {
        let name = |value: &TableValue| (self.hosts[0][value.row].as_str(), self.hosts[1][value.column].as_str());
        self.values.iter().enumerate().map(|(place, value)| (name(value), place)).collect()
    }
}

/// Removes the pairs of hosts that have too few partners in their role; whether there were any.
fn without_majority(pairs: &mut Pairs<'_>) -> bool {
    let (mut far, mut near): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    for (from, to) in pairs.keys() {
        *far.entry(from).or_default() += 1;
        *near.entry(to).or_default() += 1;
    }
    let before = pairs.len();
    pairs.retain(|(from, to), _| far[from] >= LEAST_PARTNERS && near[to] >= LEAST_PARTNERS);
    pairs.len() < before
}

/// Whether both hosts of a value are in one cluster; `None` if one of them has none.
fn is_within(value: &TableValue, clusters: &[Vec<Option<String>>; 2]) -> Option<bool> {
    Some(clusters[0][value.row].as_ref()? == clusters[1][value.column].as_ref()?)
}

/// The fit, with the difference of the pairs within a cluster, which is subtracted from their values.
fn fitted(values: &mut [TableValue], clusters: &[Vec<Option<String>>; 2], least_scale: f64) -> Option<(TwoWay, f64)> {
    let mut fit = TwoWay::new(values, least_scale)?;
    let mut within = 0.0;
    for _ in 0..TURNS {
        let residuals = |wanted: bool| -> Vec<f64> {
            let own = values.iter().zip(&fit.residuals).filter(|(value, _)| is_within(value, clusters) == Some(wanted));
            own.map(|(_, residual)| *residual).collect()
        };
        let (inside, between) = (residuals(true), residuals(false));
        if inside.len() < LEAST_PAIRS || between.len() < LEAST_PAIRS {
            break;
        }
        let Some((inside, between)) = median(&inside).zip(median(&between)) else { break };
        let step = inside - between;
        within += step;
        for value in values.iter_mut().filter(|value| is_within(value, clusters) == Some(true)) {
            value.value -= step;
        }
        fit = TwoWay::new(values, least_scale)?;
        if step.abs() < fit.scale() / 100.0 {
            break;
        }
    }
    Some((fit, within))
}

/// The standard error of the logarithm of an estimate, by its interval relative to its value; 0 without one.
fn own_error(estimate: &Estimate) -> OwnError {
    let df = f64::from(estimate.n.max(2) - 1);
    let width = estimate.low.zip(estimate.high).map(|(low, high)| (high - low) / estimate.value);
    let quantile = t_quantile(0.5 + estimate.confidence / 2.0, df);
    let standard_error = width.zip(quantile).map_or(0.0, |(width, quantile)| width / (2.0 * quantile));
    OwnError { standard_error, df }
}

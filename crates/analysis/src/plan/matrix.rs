//! The matrices of a plan or an import: the values of pairs of hosts on a logarithmic scale, with their robust fit.
//!
//! On the logarithm of the values a matrix is a level, plus an effect of each sender, plus one of each receiver, plus what is the pair's
//! own ([`TwoWay`]). Where the hosts stand in clusters, such as racks, pairs within a cluster may all differ from those between two, and
//! some clusters from the others ([`Fabric`]): what they explain is no host's and no pair's own. The value of a pair is the median of its
//! rounds, which one disturbed test does not move.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Cell, Estimate, Factor, Outcome, RunHeader, Verdict, median};

use super::fabric::Fabric;
use super::sample::LEAST_PARTNERS;
use super::{complete, dimensions, of_kind, part};
use crate::outcome::Headline;
use crate::stats::two_way::{OwnError, TableValue, TwoWay};
use crate::stats::{MeanDifference, mean, t_quantile};

/// How often the difference between pairs within a cluster and others is found anew.
const TURNS: usize = 4;
/// Fewest pairs within a cluster, and fewest others, for that difference.
const LEAST_PAIRS: usize = 3;

/// The pairs of hosts that have a value.
pub(super) struct Pairs {
    pub(super) kind: Headline,
    /// The senders and the receivers.
    pub(super) hosts: [Vec<String>; 2],
    /// The cluster of each of them; `None` where the hosts have none.
    pub(super) clusters: [Vec<Option<String>>; 2],
    /// The logarithms of the pairs' values.
    pub(super) values: Vec<TableValue>,
    /// What is behind each value.
    pub(super) behind: Vec<Behind>,
    /// The label that names the clusters.
    pub(super) label: Option<String>,
}

/// What is behind the value of a pair.
pub(super) struct Behind {
    /// Its cells.
    pub(super) cells: Vec<u32>,
    /// The error of the value by the trials.
    pub(super) error: OwnError,
    /// The logarithm in each round; `None` for one in which nothing arrived.
    pub(super) rounds: Vec<Option<f64>>,
    /// The logarithm of the value that tables show, the mean.
    pub(super) shown: f64,
}

/// A matrix of hosts.
pub(super) struct Matrix {
    pub(super) pairs: Pairs,
    /// What the clusters that stand out explain of each value.
    explained: Vec<f64>,
    /// How much the pairs within a cluster differ from the others, as a logarithm; 0 if there are too few of either.
    pub(super) within: f64,
    /// The fit of the values less these; pairs of clusters that vary more weigh less ([`Term::weight`](super::fabric::Term::weight)).
    pub(super) fit: TwoWay,
    values: Vec<TableValue>,
}

/// A cell of a pair: the logarithm of its value, that of what tables show, the standard error, and its rounds.
struct Known<'a> {
    cell: &'a Cell,
    log: f64,
    shown: f64,
    error: OwnError,
    rounds: Vec<Option<f64>>,
}

/// The cells of each pair that have a value.
type Cells<'a> = BTreeMap<(&'a str, &'a str), Vec<Known<'a>>>;

impl Pairs {
    /// The pairs of one headline statistic, the mean over all other factors; `None` if too few have a value.
    pub(super) fn new(header: &RunHeader, outcomes: &[Outcome], kind: Headline) -> Option<Self> {
        let plan = header.plan.as_ref()?;
        let cells = of_kind(&header.cells, kind);
        let rest: Vec<String> = dimensions(plan, &cells)
            .into_iter()
            .filter(|name| ![Factor::FROM, Factor::TO].contains(&name.as_str()))
            .collect();
        let of_cell: HashMap<u32, &Outcome> = outcomes.iter().map(|outcome| (outcome.cell, outcome)).collect();
        let mut pairs: Cells<'_> = BTreeMap::new();
        let mut all: BTreeSet<BTreeMap<&str, &str>> = BTreeSet::new();
        for cell in &cells {
            all.insert(part(cell, &rest));
            let (Some(from), Some(to)) = (cell.levels.get(Factor::FROM), cell.levels.get(Factor::TO)) else { continue };
            let known = of_cell.get(&cell.id).and_then(|outcome| known(cell, outcome, kind));
            if let Some(known) = known {
                pairs.entry((from, to)).or_default().push(known);
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
            let (Some(row), Some(column)) = (rows.get(from), columns.get(to)) else { continue };
            let logs: Vec<f64> = own.iter().map(|known| known.log).collect();
            values.push(TableValue { row: *row, column: *column, value: mean(&logs)?, weight: 1.0 });
            behind.push(Behind::of(own)?);
        }
        let clusters = [0, 1].map(|side: usize| -> Vec<Option<String>> {
            hosts[side].iter().map(|host| plan.cluster_of(host).map(str::to_owned)).collect()
        });
        if values.len() < hosts[0].len() + hosts[1].len() {
            return None;
        }
        let label = plan.cluster_label().map(str::to_owned);
        Some(Self { kind, hosts, clusters, values, behind, label })
    }

    /// The sign of a slow value's difference.
    pub(super) fn slow(&self) -> f64 {
        if self.kind == Headline::RoundTrip { 1.0 } else { -1.0 }
    }

    /// The sender and the receiver of a value.
    pub(super) fn names(&self, place: usize) -> [&str; 2] {
        let value = &self.values[place];
        [&self.hosts[0][value.row], &self.hosts[1][value.column]]
    }

    /// Their clusters.
    pub(super) fn ends(&self, place: usize) -> [Option<&str>; 2] {
        let value = &self.values[place];
        [self.clusters[0][value.row].as_deref(), self.clusters[1][value.column].as_deref()]
    }

    /// Whether both hosts of a value are in one cluster; `None` if one of them has none.
    pub(super) fn is_within(&self, place: usize) -> Option<bool> {
        let [from, to] = self.ends(place);
        Some(from? == to?)
    }

    /// The place of the pair of these hosts among the values.
    pub(super) fn places(&self) -> HashMap<[&str; 2], usize> {
        (0..self.values.len()).map(|place| (self.names(place), place)).collect()
    }
}

impl Behind {
    fn of(cells: &[Known<'_>]) -> Option<Self> {
        let squares: f64 = cells.iter().map(|known| known.error.standard_error.powi(2)).sum();
        let error = OwnError {
            standard_error: squares.sqrt() / cells.len() as f64,
            df: cells.iter().map(|known| known.error.df).sum(),
        };
        // The rounds of several cells are known if each has a trial in all of them.
        let count = cells.first().map_or(0, |known| known.rounds.len());
        let rounds = if cells.iter().all(|known| known.rounds.len() == count) {
            let of = |round: usize| -> Option<f64> {
                mean(&cells.iter().map(|known| known.rounds[round]).collect::<Option<Vec<f64>>>()?)
            };
            (0..count).map(of).collect()
        } else {
            Vec::new()
        };
        let shown = mean(&cells.iter().map(|known| known.shown).collect::<Vec<f64>>())?;
        Some(Self { cells: cells.iter().map(|known| known.cell.id).collect(), error, rounds, shown })
    }
}

/// What is known of a cell; `None` without a value.
fn known<'a>(cell: &'a Cell, outcome: &Outcome, kind: Headline) -> Option<Known<'a>> {
    let estimate = outcome.estimate.as_ref().filter(|estimate| estimate.value > 0.0)?;
    let shown = estimate.value.ln();
    let nothing = |verdict: &Verdict| matches!(verdict, Verdict::Stalled | Verdict::NothingArrived);
    let rounds: Vec<Option<f64>> = outcome
        .trials
        .iter()
        .filter(|trial| complete(trial))
        .filter_map(|trial| match trial.value.filter(|value| *value > 0.0) {
            Some(value) => Some(Some(value.ln())),
            None => trial.verdicts.iter().any(nothing).then_some(None),
        })
        .collect();
    // Where nothing arrived, the rate was not above the slowest one that was measured.
    let slowest =
        rounds.iter().flatten().copied().reduce(if kind == Headline::RoundTrip { f64::max } else { f64::min });
    let logs: Vec<f64> = rounds.iter().filter_map(|log| log.or(slowest)).collect();
    let log = median(&logs).unwrap_or(shown);
    Some(Known { cell, log, shown, error: own_error(estimate), rounds })
}

impl Matrix {
    /// The matrix of these pairs, with the terms of the clusters that stand out. `None` if there are not more values than effects.
    pub(super) fn new(pairs: Pairs, fabric: Option<&Fabric>) -> Option<Self> {
        let mut explained = vec![0.0; pairs.values.len()];
        let mut weights = vec![1.0f64; pairs.values.len()];
        for term in fabric.into_iter().flat_map(|fabric| &fabric.terms) {
            for place in &term.places {
                explained[*place] += term.test.value;
                weights[*place] = weights[*place].min(term.weight);
            }
        }
        let within = fabric.map_or(0.0, |fabric| fabric.within);
        let values: Vec<TableValue> = pairs
            .values
            .iter()
            .enumerate()
            .map(|(place, value)| {
                let inside = if pairs.is_within(place) == Some(true) { within } else { 0.0 };
                TableValue { value: value.value - explained[place] - inside, weight: weights[place], ..*value }
            })
            .collect();
        let errors: Vec<f64> = pairs.behind.iter().map(|behind| behind.error.standard_error).collect();
        let least_scale = median(&errors).unwrap_or(0.0);
        let fit = TwoWay::new(&values, least_scale)?;
        let mut matrix = Self { pairs, explained, within, fit, values };
        matrix.find_within(least_scale)?;
        Some(matrix)
    }

    /// Finds the difference of the pairs within a cluster with the fit of all, and subtracts it from them.
    fn find_within(&mut self, least_scale: f64) -> Option<()> {
        for _ in 0..TURNS {
            let residuals = |wanted: bool| -> Vec<f64> {
                let own = (0..self.values.len())
                    .filter(|place| self.pairs.is_within(*place) == Some(wanted) && self.values[*place].weight >= 1.0);
                own.map(|place| self.fit.residuals[place]).collect()
            };
            let (inside, between) = (residuals(true), residuals(false));
            if inside.len() < LEAST_PAIRS || between.len() < LEAST_PAIRS {
                break;
            }
            let step = median(&inside)? - median(&between)?;
            self.within += step;
            for place in 0..self.values.len() {
                if self.pairs.is_within(place) == Some(true) {
                    self.values[place].value -= step;
                }
            }
            self.fit = TwoWay::new(&self.values, least_scale)?;
            if step.abs() < self.fit.scale() / 100.0 {
                break;
            }
        }
        Some(())
    }

    /// A value less what the others make expect there, with the standard error of the fit; with `own` the larger one of that and the
    /// value's own by its trials.
    pub(super) fn residual(&self, place: usize, own: bool) -> MeanDifference {
        let error = self.pairs.behind[place].error;
        let error = if own { error } else { OwnError { standard_error: 0.0, df: error.df } };
        self.fit.residual(place, &self.values[place], error)
    }

    /// What hosts and clusters make expect of a pair, as a logarithm.
    pub(super) fn expected(&self, place: usize) -> f64 {
        self.pairs.values[place].value - self.fit.residuals[place]
    }

    /// What the clusters explain of a pair.
    pub(super) fn of_clusters(&self, place: usize) -> f64 {
        let within = if self.pairs.is_within(place) == Some(true) { self.within } else { 0.0 };
        self.explained[place] + within
    }

    /// Whether a cluster that stands out makes a pair vary.
    pub(super) fn varies_with_clusters(&self, place: usize) -> bool {
        self.values[place].weight < 1.0
    }

    /// The standard deviation of a pair's residual.
    pub(super) fn scale(&self, place: usize) -> f64 {
        self.fit.scale() / self.values[place].weight
    }
}

/// Removes the pairs of hosts that have too few partners in their role; whether there were any.
fn without_majority(pairs: &mut Cells<'_>) -> bool {
    let (mut far, mut near): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    for (from, to) in pairs.keys() {
        *far.entry(from).or_default() += 1;
        *near.entry(to).or_default() += 1;
    }
    let before = pairs.len();
    pairs.retain(|(from, to), _| far[from] >= LEAST_PARTNERS && near[to] >= LEAST_PARTNERS);
    pairs.len() < before
}

/// The standard error of the logarithm of an estimate, by its interval relative to its value; 0 without one.
fn own_error(estimate: &Estimate) -> OwnError {
    let df = f64::from(estimate.n.max(2) - 1);
    let width = estimate.low.zip(estimate.high).map(|(low, high)| (high - low) / estimate.value);
    let quantile = t_quantile(0.5 + estimate.confidence / 2.0, df);
    let standard_error = width.zip(quantile).map_or(0.0, |(width, quantile)| width / (2.0 * quantile));
    OwnError { standard_error, df }
}

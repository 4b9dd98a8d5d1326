//! Tests again what stands out of a mesh, in pairs with comparable tests that do not ([`suspects`]), and judges it.
//!
//! A host is compared with the host of the median effect in that role, to the same partners; a pair with another pair of each of its
//! hosts; two directions with each other; a cluster as its hosts, two clusters as their pairs. What the fit of the first rounds explains of a
//! comparison by other hosts' effects is subtracted. The logarithms of the ratios have one mean in each repetition, and Student's interval over
//! the repetitions. What stands out is confirmed if the interval excludes 0 on the same side and the difference is [`LEAST`] or more.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cell, Factor, Outcome, Retest, RunHeader, median};

use super::matrix::Matrix;
use super::outlier::{LEAST, Of, Test, times};
use super::standing::StandingOut;
use crate::findings::wording::plural;
use crate::outcome::Headline;
use crate::stats::two_way::Side;
use crate::stats::{MeanDifference, mean, sample_sd};

/// Most of what stands out that is tested again: the greatest differences.
pub const MOST_SUSPECTS: usize = 12;
/// Most comparisons of one.
pub const MOST_COMPARISONS: usize = 3;
/// Fewest repetitions with a judgement.
const LEAST_ROUNDS: usize = 3;

/// What stands out of a mesh, and how it is tested again.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    of: Of,
    kind: Headline,
    /// The logarithm of its ratio in the rounds.
    log: f64,
    /// Its comparisons; none if nothing is comparable.
    pub comparisons: Vec<Comparison>,
}

/// Two tests that are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The cell of what stands out.
    pub suspect: u32,
    /// The cell of what it is compared with.
    pub control: u32,
    /// The logarithm of their ratio that other hosts' effects explain.
    expected: f64,
}

impl Suspect {
    /// The size of its difference in the rounds, as a logarithm.
    #[must_use]
    pub fn size(&self) -> f64 {
        self.log.abs()
    }
}

/// What stands out of the matrices of a mesh, in the order of its findings. It depends on the outcomes alone.
#[must_use]
pub fn suspects(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Suspect> {
    of_standing(&StandingOut::of(header, outcomes), header)
}

/// What the tests show of what stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is confirmed, with the evidence.
    Confirmed(String),
    /// It is not, with the evidence.
    NotConfirmed(String),
    /// It was not tested again, or too few times.
    NotRetested,
}

/// The judgement of each suspect.
pub(super) struct Judgements(Vec<(Suspect, Judgement)>);

impl Judgements {
    /// The judgement of a test; `None` for one that is not tested again in any case.
    pub(super) fn of(&self, test: &Test) -> Option<&Judgement> {
        let own = self.0.iter().find(|(suspect, _)| suspect.of == test.of && suspect.kind == test.kind);
        own.map(|(_, judgement)| judgement)
    }
}

/// The judgements of what stands out; `None` if the plan tests nothing again.
pub(super) fn judgements(header: &RunHeader, out: &StandingOut, retests: &[Retest]) -> Option<Judgements> {
    header.plan.as_ref()?.retests?;
    let judged = of_standing(out, header).into_iter().zip(0u32..).map(|(suspect, number)| {
        let own: Vec<&Retest> = retests.iter().filter(|retest| retest.suspect == number).collect();
        let judgement = judge(&suspect, &own, header);
        (suspect, judgement)
    });
    Some(Judgements(judged.collect()))
}

fn of_standing(out: &StandingOut, header: &RunHeader) -> Vec<Suspect> {
    let of_group = |test: &Test| out.matrices.iter().find(|matrix| matrix.kind == test.kind);
    let groups = out.groups.iter().filter_map(|test| Some((of_group(test)?, test)));
    let told = out.tests.iter().filter(|(number, test)| !out.is_told(*number, &test.of));
    let tests = told.map(|(number, test)| (&out.matrices[*number], test));
    let all: Vec<(&Matrix, &Test)> =
        groups.chain(tests).filter(|(_, test)| !matches!(test.of, Of::Within { .. })).collect();
    all.iter()
        .map(|(matrix, test)| {
            let own = all.iter().filter(|(other, _)| other.kind == matrix.kind).map(|(_, test)| *test);
            let comparisons = Design::new(matrix, own, header).comparisons(test);
            Suspect { of: test.of.clone(), kind: test.kind, log: test.test.value, comparisons }
        })
        .collect()
}

/// A matrix and what of it is fit for comparisons.
struct Design<'a> {
    matrix: &'a Matrix,
    /// Place of a pair by its row and column.
    places: BTreeMap<(usize, usize), usize>,
    /// Hosts that stand out, by side.
    odd_hosts: [BTreeSet<usize>; 2],
    /// Pairs that stand out.
    odd_pairs: BTreeSet<(usize, usize)>,
    /// How much the clusters that stand out differ, by their name, for each side.
    odd_clusters: [BTreeMap<&'a str, f64>; 2],
    /// Cells whose trials have no connections of their own: sizes of a curve.
    points: BTreeSet<u32>,
}

impl<'a> Design<'a> {
    fn new(matrix: &'a Matrix, standing: impl Iterator<Item = &'a Test>, header: &RunHeader) -> Self {
        let places = matrix.values.iter().enumerate().map(|(at, value)| ((value.row, value.column), at)).collect();
        let points = header.cells.iter().filter(|cell| cell.spec.is_point()).map(|cell| cell.id).collect();
        let mut design = Self {
            matrix,
            places,
            odd_hosts: Default::default(),
            odd_pairs: BTreeSet::new(),
            odd_clusters: Default::default(),
            points,
        };
        let number = |side: usize, name: &String| matrix.hosts[side].iter().position(|host| host == name);
        for test in standing {
            match &test.of {
                Of::Host { name, role } => {
                    let side = side_of(*role);
                    design.odd_hosts[side].extend(number(side, name));
                }
                Of::Pair { from, to } | Of::Asymmetry { from, to } => {
                    design.odd_pairs.extend(number(0, from).zip(number(1, to)));
                    design.odd_pairs.extend(number(0, to).zip(number(1, from)));
                }
                Of::Cluster { name, role } => {
                    design.odd_clusters[side_of(*role)].insert(name, test.test.value);
                }
                Of::Clusters { .. } | Of::Within { .. } => {}
            }
        }
        design
    }

    fn comparisons(&self, test: &Test) -> Vec<Comparison> {
        let number = |side: usize, name: &String| self.matrix.hosts[side].iter().position(|host| host == name);
        let found: Vec<Comparison> = match &test.of {
            Of::Host { name, role } => {
                let side = side_of(*role);
                number(side, name).map_or_else(Vec::new, |host| self.of_hosts(side, &[host], None))
            }
            Of::Cluster { name, role } => {
                let side = side_of(*role);
                let own = |host: &usize| self.cluster(side, *host) == Some(name);
                let mut members: Vec<usize> = (0..self.matrix.hosts[side].len()).filter(own).collect();
                members.retain(|host| !self.odd_hosts[side].contains(host));
                let members = spread(members, |host| self.matrix.fit.effects(*role)[*host]);
                self.of_hosts(side, &members, Some(name))
            }
            Of::Pair { from, to } => {
                let pair = number(0, from).zip(number(1, to));
                pair.map_or_else(Vec::new, |pair| {
                    [0, 1].into_iter().filter_map(|side| self.of_pair(pair, side)).collect()
                })
            }
            Of::Clusters { from, to } => {
                let own = |(row, column): &(usize, usize)| {
                    self.cluster(0, *row) == Some(from) && self.cluster(1, *column) == Some(to)
                };
                let pairs: Vec<(usize, usize)> = self.places.keys().copied().filter(own).collect();
                let pairs = spread(pairs, |pair| self.matrix.fit.residuals[self.places[pair]]);
                pairs.into_iter().filter_map(|pair| self.of_pair(pair, 0).or_else(|| self.of_pair(pair, 1))).collect()
            }
            Of::Asymmetry { from, to } => {
                let [one, other] = [(from, to), (to, from)].map(|(from, to)| number(0, from).zip(number(1, to)));
                let both = one.zip(other).and_then(|(one, other)| self.compare(one, other, 0.0));
                both.into_iter().collect()
            }
            Of::Within { .. } => Vec::new(),
        };
        found.into_iter().take(MOST_COMPARISONS).collect()
    }

    /// Hosts in a role with others: one host with several partners, or the hosts of a `cluster` with one partner outside each.
    fn of_hosts(&self, side: usize, hosts: &[usize], cluster: Option<&String>) -> Vec<Comparison> {
        let pair = |own: usize, partner: usize| if side == 0 { (own, partner) } else { (partner, own) };
        let mut found = Vec::new();
        for host in hosts {
            let is_outside = |partner: &usize| cluster.is_none() || self.cluster(1 - side, *partner) != cluster;
            let known = |partner: &usize| self.places.contains_key(&pair(*host, *partner));
            let mut partners: Vec<usize> = (0..self.matrix.hosts[1 - side].len()).filter(known).collect();
            partners.retain(is_outside);
            let clean = |partner: &usize| {
                !self.odd_pairs.contains(&pair(*host, *partner)) && !self.odd_hosts[1 - side].contains(partner)
            };
            if partners.iter().any(clean) {
                partners.retain(clean);
            }
            let residual = |partner: &usize| self.matrix.fit.residuals[self.places[&pair(*host, *partner)]];
            // Of one host the partners to which it is slowest and least slow, and one between: they show whether it is slow to all.
            let partners = if cluster.is_none() {
                spread(partners, residual)
            } else {
                partners.sort_by(|a, b| residual(a).abs().total_cmp(&residual(b).abs()));
                partners.into_iter().take(1).collect()
            };
            for partner in partners {
                let Some(other) = self.median_host(side, *host, partner, cluster) else { continue };
                // Another host's cluster is part of what makes it faster or slower, unless the cluster itself is compared.
                let apart = |host: usize| {
                    let named = self.cluster(side, host).and_then(|name| self.odd_clusters[side].get(name.as_str()));
                    named.filter(|_| cluster.is_none()).copied().unwrap_or(0.0)
                };
                let effects = self.matrix.fit.effects([Side::Rows, Side::Columns][side]);
                let own = effects[*host] - apart(*host) - (effects[other] - apart(other));
                found.extend(self.compare(pair(*host, partner), pair(other, partner), own));
            }
        }
        found
    }

    /// The host whose effect is nearest to the median of the others, of those that stand as `host` does to the partner.
    fn median_host(&self, side: usize, host: usize, partner: usize, cluster: Option<&String>) -> Option<usize> {
        let pair = |own: usize| if side == 0 { (own, partner) } else { (partner, own) };
        let effects = self.matrix.fit.effects([Side::Rows, Side::Columns][side]);
        let others: Vec<f64> =
            effects.iter().enumerate().filter(|(other, _)| *other != host).map(|(_, effect)| *effect).collect();
        let middle = median(&others)?;
        let fit = |other: &usize| {
            *other != host
                && self.is_clean(pair(*other))
                && (cluster.is_none() || self.cluster(side, *other) != cluster)
        };
        let within = self.is_within(pair(host));
        let rank = |other: &usize| (self.is_within(pair(*other)) != within, (effects[*other] - middle).abs());
        let order = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        (0..effects.len()).filter(fit).min_by(|a, b| order(&rank(a), &rank(b)))
    }

    /// A pair with another one of the same sender (`side` 0) or receiver, whose other host has the most similar effect.
    fn of_pair(&self, pair: (usize, usize), side: usize) -> Option<Comparison> {
        let (kept, changed) = if side == 0 { (pair.0, pair.1) } else { (pair.1, pair.0) };
        let effects = self.matrix.fit.effects([Side::Columns, Side::Rows][side]);
        let other_pair = |other: usize| if side == 0 { (kept, other) } else { (other, kept) };
        let own = [self.cluster(0, pair.0), self.cluster(1, pair.1)];
        let fit = |other: &usize| {
            let other = other_pair(*other);
            // Of two clusters no pair is compared with another one of them.
            let same = [self.cluster(0, other.0), self.cluster(1, other.1)] == own && own.iter().any(Option::is_some);
            other != pair && self.is_clean(other) && (!same || own[0] == own[1])
        };
        let fallback = |other: &usize| other_pair(*other) != pair && self.is_clean(other_pair(*other));
        let within = self.is_within(pair);
        let rank =
            |other: &usize| (self.is_within(other_pair(*other)) != within, (effects[*other] - effects[changed]).abs());
        let order = |a: &usize, b: &usize| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        let nearest = (0..effects.len()).filter(fit).min_by(order);
        let nearest = nearest.or_else(|| (0..effects.len()).filter(fallback).min_by(order))?;
        self.compare(pair, other_pair(nearest), 0.0)
    }

    /// A comparison of two pairs; `own` is the part of the fit's difference that is tested and not expected.
    fn compare(&self, suspect: (usize, usize), control: (usize, usize), own: f64) -> Option<Comparison> {
        let matrix = self.matrix;
        let fitted = |pair: (usize, usize)| {
            let effects = matrix.fit.effects(Side::Rows)[pair.0] + matrix.fit.effects(Side::Columns)[pair.1];
            effects + if self.is_within(pair) == Some(true) { matrix.within } else { 0.0 }
        };
        let cell = |pair: (usize, usize)| {
            let own = matrix.behind[*self.places.get(&pair)?].0.iter();
            own.copied().find(|cell| !self.points.contains(cell))
        };
        let (suspect_cell, control_cell) = (cell(suspect)?, cell(control)?);
        let expected = fitted(suspect) - fitted(control) - own;
        Some(Comparison { suspect: suspect_cell, control: control_cell, expected })
    }

    fn cluster(&self, side: usize, host: usize) -> Option<&String> {
        self.matrix.clusters[side][host].as_ref()
    }

    fn is_within(&self, (row, column): (usize, usize)) -> Option<bool> {
        Some(self.cluster(0, row)? == self.cluster(1, column)?)
    }

    /// Whether neither a pair nor its hosts stand out.
    fn is_clean(&self, pair: (usize, usize)) -> bool {
        let odd = self.odd_hosts[0].contains(&pair.0) || self.odd_hosts[1].contains(&pair.1);
        self.places.contains_key(&pair) && !odd && !self.odd_pairs.contains(&pair)
    }
}

fn side_of(role: Side) -> usize {
    usize::from(role == Side::Columns)
}

/// The least, the middle and the greatest one by a value.
fn spread<T: Copy + PartialEq>(mut all: Vec<T>, value: impl Fn(&T) -> f64) -> Vec<T> {
    all.sort_by(|a, b| value(a).total_cmp(&value(b)));
    let places = [0, all.len() / 2, all.len().saturating_sub(1)];
    let mut chosen = Vec::new();
    for one in places.into_iter().filter_map(|place| all.get(place).copied()) {
        if !chosen.contains(&one) {
            chosen.push(one);
        }
    }
    chosen
}

/// What the tests show of a suspect.
fn judge(suspect: &Suspect, retests: &[&Retest], header: &RunHeader) -> Judgement {
    let mut logs: BTreeMap<(u32, u32, bool), f64> = BTreeMap::new();
    for retest in retests.iter().filter(|retest| super::complete(&retest.trial)) {
        if let Some(value) = retest.trial.value.filter(|value| *value > 0.0) {
            logs.insert((retest.round, retest.comparison, retest.control), value.ln());
        }
    }
    let ratio = |round: u32, number: u32| {
        let own = logs.get(&(round, number, false))? - logs.get(&(round, number, true))?;
        Some(own - suspect.comparisons.get(number as usize)?.expected)
    };
    let rounds: BTreeSet<u32> = logs.keys().map(|(round, ..)| *round).collect();
    let of_comparison = |number: u32| -> Vec<f64> { rounds.iter().filter_map(|round| ratio(*round, number)).collect() };
    let numbers: Vec<u32> =
        (0..suspect.comparisons.len() as u32).filter(|number| !of_comparison(*number).is_empty()).collect();
    // A repetition counts with all of its comparisons, so that a lost one does not look like a change.
    let means: Vec<f64> = rounds
        .iter()
        .filter_map(|round| mean(&numbers.iter().map(|number| ratio(*round, *number)).collect::<Option<Vec<f64>>>()?))
        .collect();
    let n = means.len();
    let Some((value, sd)) = mean(&means).zip(sample_sd(&means)).filter(|_| n >= LEAST_ROUNDS) else {
        return Judgement::NotRetested;
    };
    let difference = MeanDifference { value, standard_error: sd / (n as f64).sqrt(), df: n as f64 - 1.0 };
    let Some(interval) = difference.interval(header.stopping.confidence) else { return Judgement::NotRetested };
    let same_side = value * suspect.log > 0.0 && !interval.contains(0.0);
    let confirmed = same_side && value.abs() >= LEAST.ln();
    let not_to = if confirmed && matches!(suspect.of, Of::Host { .. }) {
        let alike = |number: &u32| mean(&of_comparison(*number)).is_some_and(|own| own / value < 0.5);
        exceptions(suspect, header, &numbers.iter().copied().filter(alike).collect::<Vec<_>>())
    } else {
        String::new()
    };
    let controls = controls(suspect, header, &numbers);
    let evidence = format!("re-tested {} against {controls}: {}{not_to}", plural(n, "time"), times(value, interval));
    if confirmed { Judgement::Confirmed(evidence) } else { Judgement::NotConfirmed(evidence) }
}

/// The pairs that the suspect was compared with.
fn controls(suspect: &Suspect, header: &RunHeader, numbers: &[u32]) -> String {
    let mut names: Vec<String> = Vec::new();
    for number in numbers {
        let Some(comparison) = suspect.comparisons.get(*number as usize) else { continue };
        let name = pair_name(header, comparison.control);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} and {last}", names.join(", ")),
        None => String::new(),
    }
}

/// The partners with which a host is not slow, of those that it was tested with.
fn exceptions(suspect: &Suspect, header: &RunHeader, numbers: &[u32]) -> String {
    let Of::Host { role, .. } = &suspect.of else { return String::new() };
    let (factor, word) = if *role == Side::Rows { (Factor::TO, "to") } else { (Factor::FROM, "from") };
    let cells = numbers.iter().filter_map(|number| suspect.comparisons.get(*number as usize));
    let names: Vec<&str> = cells.filter_map(|one| host_name(header, one.suspect, factor)).collect();
    if names.is_empty() { String::new() } else { format!(", but not {word} {}", names.join(" and ")) }
}

/// The hosts of a cell, as `a → b`.
#[must_use]
pub fn pair_name(header: &RunHeader, cell: u32) -> String {
    let [from, to] = [Factor::FROM, Factor::TO].map(|factor| host_name(header, cell, factor).unwrap_or_default());
    format!("{from} → {to}")
}

fn host_name<'a>(header: &'a RunHeader, cell: u32, factor: &str) -> Option<&'a str> {
    let cell: &Cell = Cell::find(&header.cells, cell)?;
    cell.levels.get(factor).map(String::as_str)
}

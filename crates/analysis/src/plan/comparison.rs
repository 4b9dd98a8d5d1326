//! What a mesh's suspects are compared with when they are tested again.
//!
//! A comparison is of two pairs of hosts that differ in the suspect alone: nothing else that stands out is in one of them only, and both
//! are within a cluster or both between two. So their ratio is the suspect's own. Where there is no such pair, another one is
//! taken, and what is known of the difference is subtracted by [`retest`](super::retest).

use std::collections::{BTreeMap, BTreeSet};

use model::{RunHeader, median};

use super::logs::LEAST;
use super::matrix::Matrix;
use super::outlier::{Of, Test};
use crate::stats::two_way::Side;

/// Most comparisons of one suspect; of a cluster one of them is of several pairs that are tested at the same time.
pub const MOST_COMPARISONS: usize = 3;
/// Most pairs of a cluster that are tested at the same time.
const MOST_TOGETHER: usize = 16;

/// Two tests that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedTests {
    /// The cell of what stands out.
    pub suspect: u32,
    /// The cell of what it is compared with.
    pub control: u32,
    /// It is one of several: the suspect's tests of all of them run at the same time, and then those they are compared with.
    pub together: bool,
}

/// A matrix and what of it is fit for comparisons.
pub(super) struct Design<'a> {
    matrix: &'a Matrix,
    /// Place of a pair by its row and column.
    places: BTreeMap<(usize, usize), usize>,
    /// Hosts that stand out, by side.
    odd_hosts: [BTreeSet<usize>; 2],
    /// Pairs that stand out.
    odd_pairs: BTreeSet<(usize, usize)>,
    /// Clusters that stand out.
    odd_clusters: Vec<&'a Of>,
    /// Cells whose trials have no connections of their own: sizes of a curve.
    points: BTreeSet<u32>,
}

type Pair = (usize, usize);

impl<'a> Design<'a> {
    pub(super) fn new(matrix: &'a Matrix, standing: impl Iterator<Item = &'a Test>, header: &RunHeader) -> Self {
        let values = matrix.pairs.values.iter();
        let places = values.enumerate().map(|(at, value)| ((value.row, value.column), at)).collect();
        let points = header.cells.iter().filter(|cell| cell.spec.is_point()).map(|cell| cell.id).collect();
        let mut design = Self {
            matrix,
            places,
            odd_hosts: Default::default(),
            odd_pairs: BTreeSet::new(),
            odd_clusters: Vec::new(),
            points,
        };
        for test in standing {
            match &test.of {
                Of::Host { name, role } => {
                    let side = side_of(*role);
                    design.odd_hosts[side].extend(design.number(side, name));
                }
                Of::Pair { from, to, .. } | Of::Asymmetry { from, to } => {
                    design.odd_pairs.extend(design.number(0, from).zip(design.number(1, to)));
                    design.odd_pairs.extend(design.number(0, to).zip(design.number(1, from)));
                }
                Of::Cluster { .. } | Of::Clusters { .. } => design.odd_clusters.push(&test.of),
                Of::Within { .. } => {}
            }
        }
        design
    }

    pub(super) fn comparisons(&self, of: &Of) -> Vec<ComparedTests> {
        match of {
            Of::Host { name, role } => {
                let side = side_of(*role);
                self.number(side, name).map_or_else(Vec::new, |host| self.of_host(side, host))
            }
            Of::Pair { from, to, .. } => {
                let pair = self.number(0, from).zip(self.number(1, to));
                pair.map_or_else(Vec::new, |pair| self.of_pair(pair))
            }
            Of::Asymmetry { from, to } => {
                let [one, other] =
                    [(from, to), (to, from)].map(|(from, to)| self.number(0, from).zip(self.number(1, to)));
                let both = one.zip(other).and_then(|(one, other)| self.compare(one, other, false));
                both.into_iter().collect()
            }
            Of::Cluster { .. } | Of::Clusters { .. } => self.of_clusters(of),
            Of::Within { .. } => Vec::new(),
        }
    }

    /// A host in a role with another one: to the partners to which it is slowest and least slow, and one between, which show whether it
    /// is slow to all.
    fn of_host(&self, side: usize, host: usize) -> Vec<ComparedTests> {
        let pair = |own: usize, partner: usize| if side == 0 { (own, partner) } else { (partner, own) };
        let known = |partner: &usize| self.places.contains_key(&pair(host, *partner));
        let mut partners: Vec<usize> = (0..self.matrix.pairs.hosts[1 - side].len()).filter(known).collect();
        let clean = |partner: &usize| {
            !self.odd_pairs.contains(&pair(host, *partner)) && !self.odd_hosts[1 - side].contains(partner)
        };
        if partners.iter().any(clean) {
            partners.retain(clean);
        }
        let partners = spread(partners, |partner| self.matrix.fit.residuals[self.places[&pair(host, *partner)]]);
        let compared = partners.into_iter().filter_map(|partner| {
            let other = self.median_host(side, host, partner)?;
            self.compare(pair(host, partner), pair(other, partner), false)
        });
        compared.take(MOST_COMPARISONS).collect()
    }

    /// The host whose effect is nearest to the median of the others, of those that stand as `host` does to the partner.
    fn median_host(&self, side: usize, host: usize, partner: usize) -> Option<usize> {
        let pair = |own: usize| if side == 0 { (own, partner) } else { (partner, own) };
        let effects = self.effects(side);
        let others: Vec<f64> =
            effects.iter().enumerate().filter(|(other, _)| *other != host).map(|(_, effect)| *effect).collect();
        let middle = median(&others)?;
        let fit = |other: &usize| {
            let is_odd = self.odd_hosts[side].contains(other) || self.odd_pairs.contains(&pair(*other));
            *other != host && !is_odd && self.are_comparable(pair(host), pair(*other))
        };
        let rank =
            |other: &usize| (!self.are_alike(pair(host), pair(*other)), Distance((effects[*other] - middle).abs()));
        (0..effects.len()).filter(fit).min_by_key(rank)
    }

    /// A pair with another one of its sender, and with one of its receiver, whose other host has the most similar effect. A host
    /// that both have in common may stand out. Without such a pair it is compared with one of other hosts.
    fn of_pair(&self, pair: Pair) -> Vec<ComparedTests> {
        let shared = [0, 1].into_iter().filter_map(|side| {
            let (kept, changed) = if side == 0 { pair } else { (pair.1, pair.0) };
            let other_pair = |other: usize| if side == 0 { (kept, other) } else { (other, kept) };
            let effects = self.effects(1 - side);
            let fit = |other: &usize| {
                *other != changed
                    && !self.odd_hosts[1 - side].contains(other)
                    && !self.odd_pairs.contains(&other_pair(*other))
                    && self.are_comparable(pair, other_pair(*other))
            };
            let rank = |other: &usize| {
                let alike = self.are_alike(pair, other_pair(*other));
                (
                    !alike,
                    self.block(pair) == self.block(other_pair(*other)),
                    Distance((effects[*other] - effects[changed]).abs()),
                )
            };
            let other = (0..effects.len()).filter(fit).min_by_key(rank)?;
            Some(other_pair(other))
        });
        let mut controls: Vec<Pair> = shared.collect();
        if controls.is_empty() {
            let distance = |other: &&Pair| {
                let [rows, columns] = [self.effects(0), self.effects(1)];
                let apart = (rows[other.0] - rows[pair.0]).abs() + (columns[other.1] - columns[pair.1]).abs();
                (!self.are_alike(pair, **other), Distance(apart))
            };
            let fit = |other: &&Pair| {
                other.0 != pair.0 && other.1 != pair.1 && self.is_clean(**other) && self.are_comparable(pair, **other)
            };
            controls.extend(self.places.keys().filter(fit).min_by_key(distance));
        }
        controls.into_iter().filter_map(|control| self.compare(pair, control, false)).collect()
    }

    /// Pairs of clusters with pairs of others: one after the other, and as many at the same time as there are hosts for.
    fn of_clusters(&self, of: &Of) -> Vec<ComparedTests> {
        let covered = |pair: &Pair| self.covers(of, *pair);
        let is_fit = |pair: &&Pair| !self.odd_pairs.contains(pair) && self.cell(**pair).is_some();
        let own: Vec<Pair> = self.places.keys().filter(is_fit).filter(|pair| covered(pair)).copied().collect();
        let odd = |pair: &Pair| self.odd_clusters.iter().any(|of| self.covers(of, *pair));
        let Some(within) = own.first().map(|pair| self.is_within(*pair)) else { return Vec::new() };
        // Hosts of a cluster are slow within it too.
        let class = |pair: &Pair| self.is_within(*pair) == within || matches!(of, Of::Cluster { leaving: false, .. });
        let clean = self.places.keys().filter(is_fit).filter(|pair| self.is_clean(**pair) && !odd(pair) && class(pair));
        let others: Vec<Pair> = clean.copied().collect();
        let mut found = Vec::new();
        // Two of the pairs in the middle that have no host in common.
        let mut ordered: Vec<Pair> = own.clone();
        let middle = median(&own.iter().map(|pair| self.left(*pair)).collect::<Vec<f64>>()).unwrap_or(0.0);
        ordered.sort_by_key(|pair| {
            let odd_host = self.odd_hosts[0].contains(&pair.0) || self.odd_hosts[1].contains(&pair.1);
            (odd_host, Distance((self.left(*pair) - middle).abs()))
        });
        let mut used: Vec<Pair> = Vec::new();
        for pair in &ordered {
            let is_apart = used.iter().all(|(row, column)| *row != pair.0 && *column != pair.1);
            if used.len() + 1 < MOST_COMPARISONS && is_apart {
                let rank = |other: &&Pair| {
                    let common = usize::from(other.0 == pair.0) + usize::from(other.1 == pair.1);
                    let same_class = self.is_within(**other) == self.is_within(*pair);
                    (!same_class, std::cmp::Reverse(common), Distance(self.left(**other).abs()))
                };
                let Some(control) = others.iter().min_by_key(rank) else { break };
                found.extend(self.compare(*pair, *control, false));
                used.push(*pair);
            }
        }
        found.extend(self.together(of, &ordered, &others));
        found
    }

    /// As many pairs as can be tested at the same time, and as many others, which load other clusters in the same way.
    fn together(&self, of: &Of, own: &[Pair], others: &[Pair]) -> Vec<ComparedTests> {
        let own = self.apart(own.iter().copied());
        let mut groups: BTreeMap<String, Vec<Pair>> = BTreeMap::new();
        for pair in others {
            let [from, to] = self.block(*pair).map(Option::unwrap_or_default);
            let name = match of {
                Of::Cluster { role, .. } => [from, to][side_of(*role)].to_owned(),
                _ => format!("{from} {to}"),
            };
            groups.entry(name).or_default().push(*pair);
        }
        let groups = groups.into_values().map(|pairs| self.apart(pairs.into_iter()));
        let Some(controls) = groups.max_by_key(|pairs| pairs.len().min(own.len())) else { return Vec::new() };
        let count = own.len().min(controls.len()).min(MOST_TOGETHER);
        if count < 2 {
            return Vec::new();
        }
        own.into_iter().zip(controls).take(count).filter_map(|(own, other)| self.compare(own, other, true)).collect()
    }

    /// Pairs of which no two have a host in common, as many as a greedy choice finds: of the hosts with the fewest pairs first.
    fn apart(&self, pairs: impl Iterator<Item = Pair>) -> Vec<Pair> {
        let mut left: Vec<Pair> = pairs.collect();
        let mut chosen: Vec<Pair> = Vec::new();
        while !left.is_empty() {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for pair in &left {
                self.names(*pair).into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
            }
            let rank = |pair: &&Pair| self.names(**pair).map(|name| counts[name]).into_iter().min().unwrap_or(0);
            let Some(next) = left.iter().min_by_key(rank).copied() else { break };
            let hosts = self.names(next);
            left.retain(|pair| self.names(*pair).iter().all(|name| !hosts.contains(name)));
            chosen.push(next);
        }
        chosen
    }

    fn compare(&self, suspect: Pair, control: Pair, together: bool) -> Option<ComparedTests> {
        Some(ComparedTests { suspect: self.cell(suspect)?, control: self.cell(control)?, together })
    }

    fn cell(&self, pair: Pair) -> Option<u32> {
        let cells = &self.matrix.pairs.behind[*self.places.get(&pair)?].cells;
        cells.iter().copied().find(|cell| !self.points.contains(cell))
    }

    /// A pair's value less what hosts and named clusters explain, and with it what those clusters do.
    fn left(&self, pair: Pair) -> f64 {
        let place = self.places[&pair];
        self.matrix.residual(place, false).value + self.matrix.of_clusters(place)
    }

    fn effects(&self, side: usize) -> &[f64] {
        self.matrix.fit.effects([Side::Rows, Side::Columns][side])
    }

    fn number(&self, side: usize, name: &String) -> Option<usize> {
        self.matrix.pairs.hosts[side].iter().position(|host| host == name)
    }

    fn names(&self, (row, column): Pair) -> [&str; 2] {
        [&self.matrix.pairs.hosts[0][row], &self.matrix.pairs.hosts[1][column]]
    }

    fn block(&self, (row, column): Pair) -> [Option<&str>; 2] {
        [self.matrix.pairs.clusters[0][row].as_deref(), self.matrix.pairs.clusters[1][column].as_deref()]
    }

    fn covers(&self, of: &Of, pair: Pair) -> bool {
        of.covers(self.names(pair), self.block(pair))
    }

    fn is_within(&self, pair: Pair) -> Option<bool> {
        let [from, to] = self.block(pair);
        Some(from? == to?)
    }

    /// Whether the same clusters that stand out are part of both pairs.
    fn are_alike(&self, one: Pair, other: Pair) -> bool {
        self.odd_clusters.iter().all(|of| self.covers(of, one) == self.covers(of, other))
    }

    /// Whether the other pair has a value, and pairs within a cluster do not differ from pairs between two where one of these is one.
    fn are_comparable(&self, one: Pair, other: Pair) -> bool {
        let same = self.is_within(one) == self.is_within(other);
        self.places.contains_key(&other) && (same || self.matrix.within.abs() < LEAST.ln() / 2.0)
    }

    /// Whether neither a pair nor its hosts stand out.
    fn is_clean(&self, pair: Pair) -> bool {
        let odd = self.odd_hosts[0].contains(&pair.0) || self.odd_hosts[1].contains(&pair.1);
        self.places.contains_key(&pair) && !odd && !self.odd_pairs.contains(&pair)
    }
}

fn side_of(role: Side) -> usize {
    usize::from(role == Side::Columns)
}

/// A distance, which is a number, in the order of distances.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Distance(f64);

impl Eq for Distance {}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
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

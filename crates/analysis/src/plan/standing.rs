//! Which hosts, clusters of hosts and pairs stand out of a matrix ([`Matrix`]).
//!
//! A host stands out if its effect differs from the median effect of the other hosts in that role, and a pair if its value differs from
//! what its two hosts' other pairs make expect: by [`LEAST`](super::logs::LEAST) or more, and significantly by Student's t on the spread of the pairs, which is
//! not taken to be below that of the trials. A cluster, such as a rack, stands out if its hosts do together or its pairs with others do,
//! and two clusters if the pairs between them do; hosts and pairs are then compared with each other. Holm's correction is over all
//! clusters of the run's matrices, over all their hosts and pairs, and over all pairs whose rounds vary.
//!
//! Where what stands out is tested again, a pair is compared with the spread of all pairs, and one slow round is enough: the tests decide.
//! Otherwise it is compared with the spread of its own rounds too if that is larger.

use std::collections::BTreeSet;

use model::{Outcome, RunHeader, RunKind};

use super::KINDS;
use super::clusters;
use super::fabric::Fabric;
use super::matrix::{Matrix, Pairs};
use super::outlier::{Of, Test};
use super::variation::Variation;
use crate::stats::two_way::Side;
use crate::stats::{MeanDifference, holm_errors};

/// Most pairs that are tested again because a few of their rounds were slow.
const MOST_UNSTABLE: usize = 6;

/// What stands out of a run's matrices, before it is worded.
pub(super) struct StandingOut {
    pub(super) matrices: Vec<Matrix>,
    /// How the tests of each matrix vary.
    pub(super) variations: Vec<Variation>,
    /// The clusters, with the number that was compared.
    pub(super) groups: Vec<Test>,
    pub(super) groups_number: usize,
    /// The hosts and pairs, each with the number of its matrix.
    pub(super) tests: Vec<(usize, Test)>,
    pub(super) number: usize,
}

impl StandingOut {
    pub(super) fn of(header: &RunHeader, outcomes: &[Outcome]) -> Self {
        let level = header.stopping.confidence;
        let is_retested = header.plan.as_ref().is_some_and(|plan| plan.retests.is_some());
        let all: Vec<Pairs> = KINDS.into_iter().filter_map(|kind| Pairs::new(header, outcomes, kind)).collect();
        let mut fabrics: Vec<Option<Fabric>> =
            all.iter().map(|pairs| Fabric::of(&pairs.values, &pairs.clusters, pairs.slow())).collect();
        let known = || all.iter().zip(&fabrics).filter_map(|(pairs, fabric)| Some((pairs, fabric.as_ref()?)));
        let mut groups: Vec<Test> = known().flat_map(|(pairs, fabric)| clusters::tests(pairs, fabric)).collect();
        let others: usize = known().map(|(_, fabric)| fabric.compared - fabric.terms.len()).sum();
        let groups_number = groups.len() + others;
        correct(&mut groups.iter_mut().collect::<Vec<_>>(), others, level);
        groups.retain(Test::stands_out);
        for (pairs, fabric) in all.iter().zip(&mut fabrics) {
            let Some(fabric) = fabric else { continue };
            let named: Vec<bool> = fabric
                .terms
                .iter()
                .map(|term| {
                    let of = clusters::subject(fabric, term.reach);
                    groups.iter().any(|test| test.kind == pairs.kind && test.of == of)
                })
                .collect();
            let mut named = named.into_iter();
            fabric.terms.retain(|_| named.next().unwrap_or(false));
        }
        let matrices: Vec<Matrix> =
            all.into_iter().zip(&fabrics).filter_map(|(pairs, fabric)| Matrix::new(pairs, fabric.as_ref())).collect();
        let variations: Vec<Variation> = matrices.iter().map(Variation::of).collect();
        let mut tests = Vec::new();
        for (number, matrix) in matrices.iter().enumerate() {
            let directions = header.kind == RunKind::Mesh;
            tests.extend(of_matrix(matrix, directions, is_retested).into_iter().map(|test| (number, test)));
        }
        let number = tests.len();
        correct(&mut tests.iter_mut().map(|(_, test)| test).collect::<Vec<_>>(), 0, level);
        tests.retain(|(_, test)| test.stands_out());
        let mut out = Self { matrices, variations, groups, groups_number, tests, number };
        out.add_rounds();
        out.add_unstable(level, is_retested);
        out
    }

    /// Gives the pairs that stand out and vary their rounds.
    fn add_rounds(&mut self) {
        for (number, test) in &mut self.tests {
            let Of::Pair { from, to, .. } = &test.of else { continue };
            let Some(place) = self.matrices[*number].pairs.places().get(&[from.as_str(), to.as_str()]).copied() else {
                continue;
            };
            test.rounds = Some(self.variations[*number].rounds(place)).filter(|rounds| rounds.vary).cloned();
        }
    }

    /// Adds the pairs that are slow in some of their rounds: if they are tested again those with the most and the slowest such rounds,
    /// and the other direction of pairs that vary; otherwise those with more of them than others have by chance.
    fn add_unstable(&mut self, level: f64, is_retested: bool) {
        for number in 0..self.matrices.len() {
            let (matrix, variation) = (&self.matrices[number], &self.variations[number]);
            let known: BTreeSet<[&str; 2]> = self
                .tests
                .iter()
                .filter_map(|(of, test)| match &test.of {
                    Of::Pair { from, to, .. } if *of == number => Some([from.as_str(), to.as_str()]),
                    _ => None,
                })
                .collect();
            let new = |place: &usize| !known.contains(&matrix.pairs.names(*place));
            let rounds = |place: usize| variation.rounds(place);
            let is_slow = |place: &usize| rounds(*place).slow > 0 && !matrix.varies_with_clusters(*place);
            let mut own: Vec<usize> = (0..matrix.pairs.values.len()).filter(is_slow).collect();
            let varying: Vec<usize> = own.iter().copied().filter(|place| rounds(*place).vary).collect();
            own.retain(new);
            let mut tests: Vec<Test> = own.iter().map(|place| unstable(matrix, variation, *place)).collect();
            if is_retested {
                let size = |test: &Test| (test.rounds.as_ref().map_or(0, |rounds| rounds.slow), test.test.value.abs());
                tests.sort_by(|a, b| {
                    let (a, b) = (size(a), size(b));
                    b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
                });
                tests.truncate(MOST_UNSTABLE);
                let places = matrix.pairs.places();
                let chosen = |place: &usize| {
                    let [from, to] = matrix.pairs.names(*place);
                    let of = Of::Pair { from: from.to_owned(), to: to.to_owned(), unstable: true };
                    known.contains(&[from, to]) || tests.iter().any(|test| test.of == of)
                };
                let back = varying.iter().filter(|place| chosen(place)).filter_map(|place| {
                    let [from, to] = matrix.pairs.names(*place);
                    places.get(&[to, from]).copied()
                });
                let back: Vec<usize> = back.filter(|place| new(place) && !chosen(place)).collect();
                tests.extend(back.into_iter().map(|place| unstable(matrix, variation, place)));
                tests.iter_mut().for_each(|test| test.error = Some(1.0 - level));
            } else {
                let others = matrix.pairs.values.len() - tests.len();
                correct(&mut tests.iter_mut().collect::<Vec<_>>(), others, level);
                tests.retain(Test::stands_out);
            }
            self.tests.extend(tests.into_iter().map(|test| (number, test)));
        }
    }

    /// Whether a difference of directions is told by one of them, which stands out by itself.
    pub(super) fn is_told(&self, number: usize, of: &Of) -> bool {
        let Of::Asymmetry { from, to } = of else { return false };
        let one = |test: &(usize, Test)| match &test.1.of {
            Of::Pair { from: near, to: far, unstable: false } => {
                test.0 == number && ((near == from && far == to) || (near == to && far == from))
            }
            _ => false,
        };
        self.tests.iter().any(one)
    }
}

/// Gives each test the error that Holm's procedure leaves it, all together, and `others` that show nothing, at `level`.
fn correct(tests: &mut [&mut Test], others: usize, level: f64) {
    let p = tests.iter().map(|one| one.p_value()).chain(std::iter::repeat_n(1.0, others)).collect::<Vec<f64>>();
    tests.iter_mut().zip(holm_errors(&p, 1.0 - level)).for_each(|(test, error)| test.error = Some(error));
}

/// The test of a pair by its slow rounds.
fn unstable(matrix: &Matrix, variation: &Variation, place: usize) -> Test {
    let [from, to] = matrix.pairs.names(place).map(str::to_owned);
    let rounds = variation.rounds(place);
    let df = matrix.fit.df();
    let test = MeanDifference { value: rounds.range[1], standard_error: variation.scale, df };
    let cells = matrix.pairs.behind[place].cells.clone();
    let of = Of::Pair { from, to, unstable: true };
    let chance = Some(variation.chance(place, rounds.slow, rounds.all, 0.0));
    let new = Test::new(matrix.pairs.kind, of, test, cells, matrix.pairs.values.len());
    Test { chance, rounds: Some(rounds.clone()), ..new }
}

/// The tests of a matrix's hosts and pairs; with `directions` also of the difference of each pair's two directions.
fn of_matrix(matrix: &Matrix, directions: bool, is_retested: bool) -> Vec<Test> {
    let mut tests = Vec::new();
    let pairs = &matrix.pairs;
    let mut add = |of, test, cells| tests.push(Test::new(pairs.kind, of, test, cells, pairs.values.len()));
    let sides = [Side::Rows, Side::Columns].into_iter().enumerate();
    for (side, role) in sides {
        let mut cells: Vec<Vec<u32>> = vec![Vec::new(); pairs.hosts[side].len()];
        for (value, behind) in pairs.values.iter().zip(&pairs.behind) {
            cells[role.of(value)].extend(&behind.cells);
        }
        for (at, (name, cells)) in pairs.hosts[side].iter().zip(cells).enumerate() {
            add(Of::Host { name: name.clone(), role }, matrix.fit.effect(role, at), cells);
        }
    }
    let places = pairs.places();
    let residual = |place: usize| matrix.residual(place, !is_retested);
    for (place, behind) in pairs.behind.iter().enumerate() {
        let [from, to] = pairs.names(place);
        let of = Of::Pair { from: from.to_owned(), to: to.to_owned(), unstable: false };
        add(of, residual(place), behind.cells.clone());
        // Each pair once, from the host that the fleet names first.
        let back = places.get(&[to, from]).filter(|back| directions && place < **back);
        if let Some(back) = back {
            let (one, other) = (residual(place), residual(*back));
            let test = MeanDifference {
                value: one.value - other.value,
                standard_error: one.standard_error.hypot(other.standard_error),
                df: one.df.min(other.df),
            };
            let cells = behind.cells.iter().chain(&pairs.behind[*back].cells).copied().collect();
            add(Of::Asymmetry { from: from.to_owned(), to: to.to_owned() }, test, cells);
        }
    }
    tests
}

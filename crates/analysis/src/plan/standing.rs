//! Which hosts, clusters of hosts and pairs stand out of a matrix ([`Matrix`]).
//!
//! A host stands out if its effect differs from the median effect of the other hosts in that role, and a pair if its value differs from
//! what its two hosts' other pairs make expect: by [`LEAST`](super::outlier::LEAST) or more, and significantly by Student's t on the spread of the pairs, which is
//! not taken to be below that of the trials. A cluster, such as a rack, stands out if its hosts do together, and two clusters if the pairs
//! between them do; their hosts and pairs are then compared with each other. Holm's correction is over all clusters of the run's matrices,
//! and over all their hosts and pairs.

use model::{Outcome, RunHeader};

use super::KINDS;
use super::clusters::{self, Named};
use super::matrix::Matrix;
use super::outlier::{Of, Test};
use crate::stats::two_way::Side;
use crate::stats::{MeanDifference, holm_errors};

/// What stands out of a run's matrices, before it is worded.
pub(super) struct StandingOut {
    pub(super) matrices: Vec<Matrix>,
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
        let matrices: Vec<Matrix> = KINDS.into_iter().filter_map(|kind| Matrix::new(header, outcomes, kind)).collect();
        let mut groups: Vec<Test> = matrices.iter().flat_map(clusters::tests).collect();
        let groups_number = groups.len();
        correct(&mut groups.iter_mut().collect::<Vec<_>>(), level);
        groups.retain(Test::stands_out);
        let mut tests = Vec::new();
        for (number, matrix) in matrices.iter().enumerate() {
            let named: Vec<Named<'_>> =
                groups.iter().filter(|test| test.kind == matrix.kind).filter_map(Named::of).collect();
            let directions = header.kind == RunHeader::MESH;
            tests.extend(of_matrix(matrix, &named, directions).into_iter().map(|test| (number, test)));
        }
        let number = tests.len();
        correct(&mut tests.iter_mut().map(|(_, test)| test).collect::<Vec<_>>(), level);
        tests.retain(|(_, test)| test.stands_out());
        Self { matrices, groups, groups_number, tests, number }
    }

    /// Whether a difference of directions is told by one of them, which stands out by itself.
    pub(super) fn is_told(&self, number: usize, of: &Of) -> bool {
        let Of::Asymmetry { from, to } = of else { return false };
        let one = |test: &(usize, Test)| match &test.1.of {
            Of::Pair { from: near, to: far } => {
                test.0 == number && ((near == from && far == to) || (near == to && far == from))
            }
            _ => false,
        };
        self.tests.iter().any(one)
    }
}

/// Gives each test the error that Holm's procedure leaves it, all together at `level`.
fn correct(tests: &mut [&mut Test], level: f64) {
    let p: Vec<f64> = tests.iter().map(|one| one.p_value()).collect();
    tests.iter_mut().zip(holm_errors(&p, 1.0 - level)).for_each(|(test, error)| test.error = Some(error));
}

/// The tests of a matrix's hosts and pairs, apart from what its named clusters explain; with `directions` also of the difference of each
/// pair's two directions.
fn of_matrix(matrix: &Matrix, named: &[Named<'_>], directions: bool) -> Vec<Test> {
    let mut tests = Vec::new();
    let pairs = matrix.values.len();
    let mut add = |of, test, cells| tests.push(Test { kind: matrix.kind, of, test, cells, pairs, error: None });
    let sides = [Side::Rows, Side::Columns].into_iter().enumerate();
    for (side, role) in sides {
        let mut cells: Vec<Vec<u32>> = vec![Vec::new(); matrix.hosts[side].len()];
        for (value, (own, _)) in matrix.values.iter().zip(&matrix.behind) {
            cells[role.of(value)].extend(own);
        }
        for (at, (name, cells)) in matrix.hosts[side].iter().zip(cells).enumerate() {
            let effect = matrix.fit.effect(role, at);
            let of_cluster = matrix.clusters[side][at]
                .as_ref()
                .and_then(|cluster| named.iter().find(|named| named.is_cluster(cluster, role)).map(Named::value));
            let test = MeanDifference { value: effect.value - of_cluster.unwrap_or(0.0), ..effect };
            add(Of::Host { name: name.clone(), role }, test, cells);
        }
    }
    let places = matrix.places();
    let residual = |place: usize| {
        let value = &matrix.values[place];
        let own = matrix.fit.residual(place, value, matrix.behind[place].1);
        let clusters = [&matrix.clusters[0][value.row], &matrix.clusters[1][value.column]];
        let explained = named.iter().find(|named| named.is_pair(clusters)).map_or(0.0, Named::value);
        MeanDifference { value: own.value - explained, ..own }
    };
    for (place, (value, (cells, _))) in matrix.values.iter().zip(&matrix.behind).enumerate() {
        let [from, to] = [&matrix.hosts[0][value.row], &matrix.hosts[1][value.column]];
        add(Of::Pair { from: from.clone(), to: to.clone() }, residual(place), cells.clone());
        // Each pair once, from the host that the fleet names first.
        let back = places.get(&(to.as_str(), from.as_str())).filter(|back| directions && place < **back);
        if let Some(back) = back {
            let (one, other) = (residual(place), residual(*back));
            let test = MeanDifference {
                value: one.value - other.value,
                standard_error: one.standard_error.hypot(other.standard_error),
                df: one.df.min(other.df),
            };
            let cells = cells.iter().chain(&matrix.behind[*back].0).copied().collect();
            add(Of::Asymmetry { from: from.clone(), to: to.clone() }, test, cells);
        }
    }
    tests
}

//! Tests that a loop ran one after the other: one run with a trial for each.

use std::collections::BTreeSet;

use model::{RunKind, Spec, Stop, TransportName};

use crate::listing::{Imported, Row};

/// Times within this share of each other are those of one request.
const SAME_TIME: f64 = 0.02;
/// Rates that differ by more than this factor may be those of tests with different options: of streams, which send as fast as they can,
/// and of datagrams, which are paced.
const ALIKE: [f64; 2] = [2.0, 1.05];
/// More listings than this are not compared with each other.
const MOST: usize = 10_000;

/// Joins listings of the same test by the same program to the same host: their rows are trials of one measurement. Tests that differ in
/// anything stay runs of their own, and so do those of a server's log.
pub(crate) fn joined(all: Vec<Imported>) -> Vec<Imported> {
    if all.len() > MOST {
        return all;
    }
    let mut groups: Vec<Vec<Imported>> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|group| is_same(&group[0], &one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.into_iter().flat_map(|group| if are_alike(&group) { vec![together(group)] } else { group }).collect()
}

fn together(group: Vec<Imported>) -> Imported {
    let mut all = group.into_iter();
    let Some(mut into) = all.next() else { return Imported::default() };
    let stop = into.rows.first().map(|row| row.spec.stop);
    let mut unknown: BTreeSet<String> = into.unknown.drain(..).collect();
    for mut one in all {
        for row in &mut one.rows {
            row.spec.stop = stop.unwrap_or(row.spec.stop);
        }
        into.rows.append(&mut one.rows);
        into.copies.append(&mut one.copies);
        unknown.extend(one.unknown);
    }
    into.unknown.extend(unknown);
    into
}

/// The spec that all rows of a plain measurement have in common.
fn spec_of(one: &Imported) -> Option<&Spec> {
    let measured = one.path.is_none() && one.passes.is_empty() && one.plan.is_none() && one.run.is_none();
    let first = one.rows.first().filter(|_| measured && matches!(one.kind, RunKind::Stream | RunKind::Rr))?;
    let same = |row: &Row| row.levels.is_empty() && row.spec == first.spec;
    one.rows.iter().all(same).then_some(&*first.spec)
}

/// Whether two listings agree in all that the text says of their tests.
fn is_same(a: &Imported, b: &Imported) -> bool {
    let (Some(one), Some(other)) = (spec_of(a), spec_of(b)) else { return false };
    let times = match (&one.stop, &other.stop) {
        (Stop::TimeNs(a), Stop::TimeNs(b)) => a.abs_diff(*b) as f64 <= SAME_TIME * (*a).max(*b) as f64,
        (a, b) => a == b,
    };
    times
        && !a.by_server
        && !b.by_server
        && (&a.tool, &a.version, &a.kind, &a.target) == (&b.tool, &b.version, &b.kind, &b.target)
        && (&a.near, &a.notes, &a.assumed) == (&b.near, &b.notes, &b.assumed)
        && (one.transport == other.transport && one.direction == other.direction)
        && Spec { stop: other.stop, ..one.clone() } == *other
}

/// Whether the rates are so close that the tests had the same options. A text without the size of messages does not show any of them.
fn are_alike(group: &[Imported]) -> bool {
    let Some(first) = group.first().filter(|first| first.assumed.contains(&"block")) else { return true };
    let most = ALIKE[usize::from(spec_of(first).is_some_and(|spec| spec.transport == TransportName::Udp))];
    let rate = |row: &Row| row.figures.get("sender_rate_bps").copied().or(row.trial.value);
    let rates: Vec<f64> = group.iter().flat_map(|one| &one.rows).filter_map(rate).collect();
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    rates.iter().all(|rate| *rate <= most * lowest)
}

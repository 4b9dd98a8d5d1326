//! All findings of a plan, the answer first.

use model::{Finding, Outcome, Pass, Retest, RunHeader, RunKind};

use super::asymmetry::{asymmetries, of_import};
use super::best::best;
use super::curves::of_curves;
use super::effects::of_factors;
use super::groups::{of_groups, with_sums};
use super::hosts::of_hosts;
use super::limits::limits;
use super::logs::logs;
use super::traffic_steps::{of_traffic, traffic_curves, with_totals};

/// What groups of flows took, what hosts that send at the same time get, hosts that stand out ([`of_hosts`]), pairs of hosts whose
/// directions differ, the figures of each curve, the best level of each factor or that its levels do not differ, what limits which
/// cells, and the effects of the factors. `passes` give the round of a trial; `retests` decide whether what stands out of a mesh is
/// confirmed.
#[must_use]
pub fn of_plan(header: &RunHeader, outcomes: &[Outcome], passes: &[Pass], retests: &[Retest]) -> Vec<Finding> {
    let Some(plan) = &header.plan else { return Vec::new() };
    let is_mesh = header.kind == RunKind::Mesh;
    let mut found = of_groups(header, outcomes, passes);
    // Tests that run at the same time affect each other, so only the difference of their sums is an effect.
    let of_sums = if plan.traffic.is_some() {
        let curves = traffic_curves(header, outcomes, passes);
        found.extend(of_traffic(header, &curves));
        Some(with_totals(header, &curves))
    } else {
        plan.groups().map(|groups| with_sums(header, groups, &logs(outcomes, passes)))
    };
    let (compared, logs) = match &of_sums {
        Some((compared, logs)) => (compared, logs.clone()),
        None => (header, logs(outcomes, passes)),
    };
    if plan.traffic.is_none() {
        found.extend(of_hosts(header, outcomes, retests));
    }
    if !is_mesh {
        found.extend(asymmetries(compared, outcomes, &logs));
        found.extend(of_curves(header, outcomes));
    }
    found.extend(best(compared, plan, &logs));
    if !is_mesh {
        found.extend(limits(header, outcomes));
    }
    found.extend(of_factors(compared, plan, &logs));
    found
}

/// The findings of a matrix from elsewhere: hosts that stand out, and pairs whose directions differ.
#[must_use]
pub fn of_imported_matrix(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Finding> {
    let hosts = of_hosts(header, outcomes, &[]);
    let pairs = of_import(header, outcomes, &hosts);
    hosts.into_iter().chain(pairs).collect()
}

//! What was measured from one host to another: values, their trials, and what was found of the pair.

use std::collections::{BTreeMap, BTreeSet};

use analysis::limiter::named;
use analysis::plan::{PlanTable, tables, trial_measure};
use model::{Outcome, Run, Trial};
use serde::Serialize;

use crate::labels;
use crate::sections::spread;

/// A direction of a pair.
#[derive(Debug, Serialize)]
pub(super) struct PairPart {
    from: String,
    to: String,
    tests: Vec<TestPart>,
    /// Indexes of the run's findings that rest on it.
    findings: Vec<usize>,
}

/// One measure of it.
#[derive(Debug, Serialize)]
struct TestPart {
    measure: &'static str,
    unit: &'static str,
    /// The levels of the other factors.
    levels: String,
    /// The mean of the trials with its interval.
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    limit: String,
    trust: &'static str,
    trials: Vec<TrialPart>,
}

/// Its round (from 1), its value, the bytes sent and received, and its verdicts.
type TrialPart = (u32, Option<f64>, Option<u64>, Option<u64>, String);

/// The pairs of more hosts would be a page of hundreds of megabytes.
const MOST: usize = 40_000;

/// The pairs of a run with matrices of hosts, row by row; none of other runs.
pub(super) fn all(run: &Run) -> Vec<PairPart> {
    let tables: Vec<PlanTable> = tables(&run.header, &run.outcomes).into_iter().filter(spread::is_of_hosts).collect();
    if tables.iter().any(|table| table.rows.len() * table.columns.len() > MOST) {
        return Vec::new();
    }
    let outcomes: BTreeMap<u32, &Outcome> = run.outcomes.iter().map(|outcome| (outcome.cell, outcome)).collect();
    let rounds: BTreeMap<u32, u32> = run.passes.iter().filter_map(|pass| Some((pass.index, pass.round?))).collect();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut pairs: Vec<(PairPart, BTreeSet<u32>)> = Vec::new();
    for table in &tables {
        let levels: Vec<String> = table.held.iter().map(|(name, level)| format!("{name} {level}")).collect();
        for (from, cells) in table.rows.iter().zip(&table.cells) {
            for (to, mean) in table.columns.iter().zip(cells) {
                let Some(mean) = mean else { continue };
                let Some(outcome) = outcomes.get(&mean.cell) else { continue };
                let place = *places.entry((from, to)).or_insert(pairs.len());
                if place == pairs.len() {
                    pairs.push((PairPart::new(from, to), BTreeSet::new()));
                }
                let (pair, own) = &mut pairs[place];
                own.insert(mean.cell);
                pair.tests.push(TestPart {
                    measure: table.measure,
                    unit: table.unit,
                    levels: labels::plain(&levels.join(", ")),
                    value: mean.value,
                    low: mean.low,
                    high: mean.high,
                    limit: limit(outcome),
                    trust: outcome.summary.trust.map_or("-", labels::trust),
                    trials: outcome.trials.iter().map(|trial| of_trial(table, outcome, trial, &rounds)).collect(),
                });
            }
        }
    }
    for (index, finding) in run.findings.iter().enumerate() {
        let on = pairs.iter_mut().filter(|(_, cells)| finding.cells.iter().any(|cell| cells.contains(cell)));
        on.for_each(|(pair, _)| pair.findings.push(index));
    }
    pairs.into_iter().map(|(pair, _)| pair).collect()
}

impl PairPart {
    fn new(from: &str, to: &str) -> Self {
        Self { from: labels::plain(from), to: labels::plain(to), tests: Vec::new(), findings: Vec::new() }
    }
}

/// What limited it, without the evidence.
fn limit(outcome: &Outcome) -> String {
    // Neither rates nor options are part of it.
    let each: Vec<String> = outcome.summary.limits().map(|(_, why)| named(why).plain()).collect();
    each.join("; ")
}

fn of_trial(table: &PlanTable, outcome: &Outcome, trial: &Trial, rounds: &BTreeMap<u32, u32>) -> TrialPart {
    let bytes = |count: u64| (!trial.ledger.is_unknown()).then_some(count);
    (
        rounds.get(&trial.pass).unwrap_or(&trial.pass) + 1,
        trial_measure(table.measure, &outcome.spec, trial),
        bytes(trial.ledger.sent),
        bytes(trial.ledger.received),
        labels::verdicts(&trial.verdicts),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_direction_has_its_values_and_its_trials() {
        let mut run = sample::between_hosts();
        let finding = |cells: &[u32]| model::Finding {
            kind: model::FindingKind::Outlier,
            statement: "a → b is slow".to_owned().into(),
            estimate: None,
            block: None,
            cells: cells.to_vec(),
            comparison: None,
        };
        run.findings = vec![finding(&[]), finding(&[run.outcomes[0].cell])];
        let pairs = all(&run);
        assert_eq!(pairs.len(), 6);
        let first = &pairs[0];
        assert_eq!((first.from.as_str(), first.to.as_str(), first.tests.len()), ("a", "b", 2));
        assert_eq!((first.tests[0].levels.as_str(), first.tests[0].unit), ("flows 1", "bit/s"));
        let outcome = &run.outcomes[0];
        assert_eq!(first.tests[0].trials.len(), outcome.trials.len());
        assert_eq!(first.tests[0].trials[0].1, outcome.trials[0].value);
        assert_eq!(first.findings, [1]);
        assert!(pairs[1..].iter().all(|pair| pair.findings.is_empty()));
        assert!(all(&sample::planned()).is_empty(), "other plans have no pairs");
    }
}

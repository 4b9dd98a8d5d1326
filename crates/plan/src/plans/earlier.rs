//! How long the tests of a plan took beyond their length, in an earlier run between the same hosts: only a measurement tells how long queues
//! drain, and how busy the hosts are.

use std::collections::{BTreeMap, BTreeSet};

use model::{Pattern, Plan, Run, Spec};

/// A step takes as long as the longest of its tests.
const OF_STEP: f64 = 0.8;

/// An earlier run between the same hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Its id.
    pub run: String,
    /// What most tests of a transport and a pattern took beyond their length, ns.
    extra_ns: BTreeMap<(String, Pattern), u64>,
}

impl Earlier {
    /// Whether a run was between the hosts of a plan.
    #[must_use]
    pub fn is_between(run: &Run, hosts_of: &Plan) -> bool {
        run.header.plan.as_ref().is_some_and(|plan| hosts(plan) == hosts(hosts_of))
    }

    /// What a run tells; `None` if it has no timed test.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let mut cells: BTreeMap<u32, &Spec> = BTreeMap::new();
        for outcome in &run.outcomes {
            cells.extend(outcome.trials.iter().map(|trial| (trial.pass, &outcome.spec as &Spec)));
        }
        let mut found: BTreeMap<(String, Pattern), Vec<f64>> = BTreeMap::new();
        for pass in &run.passes {
            let Some((spec, length)) = cells.get(&pass.index).and_then(|spec| Some((spec, spec.timed_ns()?))) else {
                continue;
            };
            let key = (spec.transport.to_string(), spec.pattern);
            found.entry(key).or_default().push(pass.duration_ns.saturating_sub(length) as f64);
        }
        let most = |times: Vec<f64>| analysis::stats::quantile(&times, OF_STEP).unwrap_or(0.0) as u64;
        let extra_ns: BTreeMap<_, _> = found.into_iter().map(|(key, times)| (key, most(times))).collect();
        (!extra_ns.is_empty()).then(|| Self { run: run.header.id.clone(), extra_ns })
    }

    /// What a test of this spec takes beyond its length, ns.
    pub(super) fn extra_ns(&self, spec: &Spec) -> Option<u64> {
        self.extra_ns.get(&(spec.transport.to_string(), spec.pattern)).copied()
    }
}

/// All hosts of a plan; none for one between this host and another.
fn hosts(plan: &Plan) -> BTreeSet<&String> {
    plan.from.iter().chain(&plan.to).collect()
}

#[cfg(test)]
mod tests {
    use model::{Cell, EndTally, Ledger, Pass, Pattern, RunHeader, Stop, Trial};

    use super::*;

    #[test]
    fn the_time_beyond_the_length_of_most_tests_is_kept_by_pattern() {
        let mut run = Run::new(RunHeader { id: "earlier".into(), ..RunHeader::default() });
        for (id, (pattern, extra_ms)) in (0..).zip([(Pattern::Rr, 150), (Pattern::Stream, 1_200)]) {
            let spec = Spec { stop: Stop::TimeNs(200_000_000), ..Spec::new("tcp", pattern) };
            let trial = |pass: u32| Trial {
                cell: id,
                pass,
                position: 0,
                near: EndTally::default().into(),
                far: EndTally::default().into(),
                ledger: Ledger::default(),
                value: None,
                verdicts: Vec::new(),
            };
            let passes = id * 10..id * 10 + 10;
            let outcome = analysis::outcome(
                &Cell::new(id, spec),
                passes.clone().map(trial).collect(),
                &run.header.stopping,
                analysis::Context::default(),
            );
            run.outcomes.push(outcome);
            // One of ten took far longer.
            run.passes.extend(passes.map(|index| Pass {
                index,
                duration_ns: if index % 10 == 0 { 60_000_000_000 } else { 200_000_000 + extra_ms * 1_000_000 },
                ..Pass::default()
            }));
        }
        let found = Earlier::of(&run).unwrap();
        let of = |pattern| found.extra_ns(&Spec::new("tcp", pattern)).map(|ns| ns / 1_000_000);
        assert_eq!((of(Pattern::Rr), of(Pattern::Stream), of(Pattern::Transfer)), (Some(150), Some(1_200), None));
        assert_eq!(found.run, "earlier");
        assert!(Earlier::of(&Run::new(RunHeader::default())).is_none());
    }
}

//! What the tests of a step need before they begin: the required conditions of their hosts, and round trips without load.

use model::{Conditions, Otherwise, Verdict};

use super::{At, PlanRun, Test};
use crate::RunEnd;
use crate::plan_parts::{report, skipped};
use crate::state::RunState;

impl PlanRun {
    /// Takes the conditions of both hosts of each test. A test whose requirements are not met in time is skipped, or ends the
    /// run.
    pub(super) fn require(&mut self, state: &mut RunState, found: &[(String, Conditions)], until: u64, now: u64) -> At {
        let Some(require) = self.schedule.plan.require.clone() else { return At::Idle(0, None) };
        let mut unmet: Vec<(usize, String)> = Vec::new();
        for (at, (test, found)) in self.tests.iter_mut().zip(found.chunks(2)).enumerate() {
            for ((name, found), slot) in found.iter().zip(&mut test.conditions) {
                *slot = Some(*found);
                unmet.extend(require.unmet(found).into_iter().map(|what| (at, format!("{name}: {what}"))));
            }
        }
        for (_, test) in self.tests.iter().enumerate().filter(|(at, _)| !unmet.iter().any(|(unmet, _)| unmet == at)) {
            self.waited.remove(&test.cell.id);
        }
        let Some((_, what)) = unmet.first().cloned() else { return At::Idle(0, None) };
        if now < until {
            report(state, format!("waiting: {what}"), None);
            return At::Retry { until };
        }
        if require.otherwise == Otherwise::End {
            return At::End(RunEnd::Unmet { what, waited_ns: require.wait_ns });
        }
        let tests = std::mem::take(&mut self.tests);
        for (at, test) in tests.into_iter().enumerate() {
            // Groups are measured together or not at all.
            let Some((_, what)) = unmet.iter().find(|(unmet, _)| *unmet == at || test.starts_together) else {
                self.tests.push(test);
                continue;
            };
            self.waited.insert(test.cell.id);
            let ids: Vec<u32> = test.legs.iter().filter_map(|(cell, _)| *cell).collect();
            ids.iter().for_each(|id| state.cells.remark_on(*id, Verdict::Unmet));
            state.notes.push(skipped(&test.cell, ids, self.round, what));
        }
        At::Idle(0, None)
    }

    /// The hosts of this step's tests: two of each.
    pub(super) fn hosts(&self) -> Vec<usize> {
        self.tests.iter().flat_map(|test| test.between.hosts).collect()
    }

    /// The index of the first test from `from` on whose path is to be probed without load.
    pub(super) fn next_idle(&self, state: &RunState, from: usize) -> Option<usize> {
        let due = |test: &Test| {
            let id = test.cell.id;
            test.cell.spec.probe.is_some() && state.cells.open().any(|open| open.cell.id == id && open.idle.is_none())
        };
        (from..self.tests.len()).find(|at| due(&self.tests[*at]))
    }
}

//! Groups of flows on the simulated path.

use analysis::plan::Slot;
use model::{Cell, Plan, RunHeader};
use proptest::prelude::*;

use super::{MS, Path, SECOND, carry_out, header, paths, stream};
use crate::{PlanSchedule, RunEnd, ScheduledRun};

/// Three groups of flows on the same hosts, and their run.
fn groups(budget_ns: u64, seed: u64) -> (RunHeader, ScheduledRun) {
    let mut header = header(vec![stream(100 * MS); 3], budget_ns, seed);
    header.stopping.max_trials = 30;
    let slot = |cell: u32| Slot {
        cell,
        sizes: 1,
        plot: 0,
        combination: 0,
        near: 0,
        far: 1,
        shared: Vec::new(),
        together: true,
    };
    let slots = header.cells.iter().map(|cell| slot(cell.id)).collect();
    let schedule =
        PlanSchedule { plan: Plan::default(), slots, trials: Vec::new(), passes: Vec::new(), retests: Vec::new() };
    let run = ScheduledRun::plan(&header, schedule, Default::default(), 0);
    (header, run)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn groups_are_measured_together_until_all_have_converged(path in paths(), budget in SECOND..60 * SECOND) {
        let (header, run) = groups(budget, path.seed);
        let ended = carry_out(run, &Path { single_ended: false, ..path });
        prop_assert_eq!(&ended.end, &RunEnd::Finished);
        let count = |cell: &Cell| ended.trials.iter().filter(|trial| trial.cell == cell.id).count();
        let counts: Vec<usize> = header.cells.iter().map(count).collect();
        prop_assert!(counts.iter().all(|count| *count == counts[0] && *count <= 30), "{:?}", counts);
        prop_assert!(counts[0] >= 6 || ended.ns + ended.longest_ns >= budget, "{:?} in {}", counts, ended.ns);
    }
}

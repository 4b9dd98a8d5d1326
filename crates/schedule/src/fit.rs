//! Trials and budgets that are long enough for the path: a connection needs round trips to leave its start-up, and the rate after it
//! must be seen to be level.

use model::{Path, RunHeader, Shared, Spec, Stop};

use crate::Schedule;

/// Trials are lengthened up to this, ns, so that a run without a budget ends.
pub(crate) const LONGEST_NS: u64 = 60_000_000_000;
/// Lengths of trials are multiples of this, ns.
pub(crate) const STEP_NS: u64 = 100_000_000;
/// Budgets are lengthened up to this, ns.
const LONGEST_BUDGET_NS: u64 = 600_000_000_000;

/// What the path may change of a measurement, because the user did not fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unfixed {
    /// The length of its trials.
    pub own_time: bool,
    /// Its budget.
    pub own_budget: bool,
}

/// Round trips that a kind of measurement needs.
struct Needs {
    trial: u64,
    budget: u64,
}

/// Slow start and the recovery from its end take about twenty round trips, what follows must be seen to be level, and data that wait for a
/// lost segment when the trial ends must be few. The budget: the first trial, and one of half as long again.
const SINGLE: Needs = Needs { trial: 100, budget: 260 };
/// Both sides start alike, and the mean of many trials is compared: shorter ones. The budget: twelve pairs of them, with their gaps.
const PAIRED: Needs = Needs { trial: 60, budget: 1_600 };

/// Lengthens the trials and the budget of a measurement of settled connections to what the RTT of the probed path requires.
pub fn fit_to_path(header: &mut RunHeader, schedule: &Schedule) {
    let (needs, unfixed) = match schedule {
        Schedule::Single(unfixed) | Schedule::Sequence(unfixed) => (SINGLE, *unfixed),
        Schedule::Paired(plan) => (PAIRED, plan.unfixed),
        _ => return,
    };
    let probed = [&header.path_outbound, &header.path_return].into_iter().flatten().filter_map(round_trip_ns);
    let Some(rtt_ns) = probed.reduce(u64::max) else { return };
    let mut settled = header.cells.iter_mut().filter(|cell| cell.spec.steady).peekable();
    if settled.peek().is_none() {
        return;
    }
    let trial = (rtt_ns * needs.trial).next_multiple_of(STEP_NS).min(LONGEST_NS);
    for cell in settled.filter(|_| unfixed.own_time) {
        if let Stop::TimeNs(ns) = cell.spec.stop {
            cell.spec = with_length(&cell.spec, ns.max(trial));
        }
    }
    if unfixed.own_budget {
        let budget = (rtt_ns * needs.budget).min(LONGEST_BUDGET_NS);
        header.stopping.budget_ns = header.stopping.budget_ns.map(|own| own.max(budget));
    }
}

/// The median RTT of the echoes of a probe.
fn round_trip_ns(path: &Path) -> Option<u64> {
    path.ping.as_ref()?.median_ns
}

/// The same spec with trials of that length.
pub(crate) fn with_length(spec: &Spec, ns: u64) -> Shared<Spec> {
    Spec { stop: Stop::TimeNs(ns), ..spec.clone() }.into()
}

#[cfg(test)]
mod tests {
    use model::{Cell, Pattern, Ping, Stopping};

    use super::*;
    use crate::PairedPlan;

    const SECOND: u64 = 1_000_000_000;
    const BOTH: Unfixed = Unfixed { own_time: true, own_budget: true };

    /// Lengths of the trials and the budget, s, of a comparison of settled streams with a budget of two minutes over `rtt_ms`.
    fn fitted(rtt_ms: u64, steady: [bool; 2], unfixed: Unfixed) -> (Vec<u64>, u64) {
        let spec = |steady| Spec { steady, stop: Stop::TimeNs(SECOND), ..Spec::new("tcp", Pattern::Stream) };
        let ping = Ping { median_ns: Some(rtt_ms * 1_000_000), ..Ping::default() };
        let mut header = RunHeader {
            cells: steady.into_iter().zip(0..).map(|(steady, id)| Cell::new(id, spec(steady))).collect(),
            stopping: Stopping { budget_ns: Some(120 * SECOND), ..Stopping::default() },
            path_outbound: Some(Path { ping: Some(ping), ..Path::default() }),
            ..RunHeader::default()
        };
        fit_to_path(&mut header, &Schedule::Paired(PairedPlan { gap_ns: 0, unfixed }));
        let length = |cell: &Cell| cell.spec.timed_ns().unwrap() / SECOND;
        (header.cells.iter().map(length).collect(), header.stopping.budget_ns.unwrap() / SECOND)
    }

    #[test]
    fn both_sides_of_a_comparison_are_as_long_as_the_path_needs() {
        assert_eq!(fitted(1, [true; 2], BOTH), (vec![1, 1], 120));
        assert_eq!(fitted(100, [true; 2], BOTH), (vec![6, 6], 160));
        assert_eq!(fitted(2_000, [true; 2], BOTH), (vec![60, 60], 600));
    }

    #[test]
    fn what_the_user_fixed_stays_and_so_do_sides_that_do_not_settle() {
        assert_eq!(fitted(100, [true; 2], Unfixed::default()), (vec![1, 1], 120));
        assert_eq!(fitted(100, [true, false], BOTH), (vec![6, 1], 160));
        assert_eq!(fitted(100, [false; 2], BOTH), (vec![1, 1], 120));
    }
}

//! Meshes whose suspects are tested again, in virtual time.

use std::collections::BTreeMap;

use analysis::plan::Slot;
use model::{
    Cell, EndResult, EndTally, Event, Factor, Finding, FindingKind, FlowTally, Pass, Plan, Retest, RunHeader, RunKind,
    SplitMix64, Stopping, Trial,
};

use super::{MS, SECOND, stream};
use crate::{
    Completed, FailureKind, PassResult, PlanSchedule, RunEnd, ScheduledRun, Step, StepFailure, TestRequest, TestResult,
    Tests,
};

const HOSTS: usize = 6;

/// What a mesh recorded.
#[derive(Default)]
pub(super) struct Recorded {
    trials: Vec<Trial>,
    pub(super) retests: Vec<Retest>,
    passes: Vec<Pass>,
    pub(super) findings: Vec<Finding>,
    activities: Vec<String>,
    ns: u64,
}

impl Recorded {
    /// The findings that name or do not confirm something.
    pub(super) fn statements(&self) -> Vec<String> {
        let kinds = [FindingKind::Outlier, FindingKind::Asymmetry, FindingKind::Unconfirmed];
        let found = self.findings.iter().filter(|finding| kinds.contains(&finding.kind));
        found.map(|finding| finding.statement.plain()).collect()
    }
}

/// Two rounds of a mesh whose suspects are tested five times, within `budget`.
pub(super) fn header(budget_ns: Option<u64>) -> RunHeader {
    header_of(&[None; HOSTS], 2, budget_ns)
}

/// So many `rounds` of a mesh of hosts in these racks.
pub(super) fn header_of(racks: &[Option<usize>], rounds: u32, budget_ns: Option<u64>) -> RunHeader {
    let pairs = (0..racks.len()).flat_map(|near| (0..racks.len()).map(move |far| (near, far)));
    let cell = |(id, (near, far)): (u32, (usize, usize))| {
        let level = |factor: &str, host: usize| (factor.to_owned(), format!("n{host}"));
        let levels = BTreeMap::from([level(Factor::FROM, near), level(Factor::TO, far)]);
        Cell { levels, ..Cell::new(id, stream(100 * MS)) }
    };
    let names: Vec<String> = (0..racks.len()).map(|host| format!("n{host}")).collect();
    let label = |(host, rack): (&String, &Option<usize>)| {
        Some((host.clone(), BTreeMap::from([("rack".to_owned(), format!("r{}", (*rack)?))])))
    };
    let labels = names.iter().zip(racks).filter_map(label).collect();
    let plan = Plan { from: names.clone(), to: names, labels, retests: Some(5), ..Plan::default() };
    RunHeader {
        kind: RunKind::Mesh,
        cells: (0..).zip(pairs.filter(|(near, far)| near != far)).map(cell).collect(),
        stopping: Stopping { min_trials: rounds, max_trials: rounds, budget_ns, seed: 3, ..Stopping::default() },
        plan: Some(Box::new(plan)),
        ..RunHeader::default()
    }
}

/// The schedule of a mesh after an earlier part of it.
fn schedule(header: &RunHeader, earlier: &Recorded) -> PlanSchedule {
    let plan = *header.plan.clone().unwrap();
    let slot = |cell: &Cell| {
        let host = |factor: &str| plan.from.iter().position(|name| *name == cell.levels[factor]).unwrap();
        let [near, far] = [Factor::FROM, Factor::TO].map(host);
        Slot { cell: cell.id, sizes: 1, plot: 0, combination: 0, near, far, shared: Vec::new(), together: false }
    };
    PlanSchedule {
        slots: header.cells.iter().map(slot).collect(),
        plan,
        trials: earlier.trials.clone(),
        passes: earlier.passes.clone(),
        retests: earlier.retests.clone(),
    }
}

/// A mesh that begins.
pub(super) fn begun(header: &RunHeader) -> ScheduledRun {
    ScheduledRun::plan(header, schedule(header, &Recorded::default()), Default::default(), 0)
}

/// A mesh after an earlier part of it. `factor` is what the pair of these hosts reaches of 1 Gbit/s at a time of the run; 0 for a lost
/// host. It is interrupted after the step with this number.
fn mesh(
    header: &RunHeader,
    earlier: &Recorded,
    interrupted_at: Option<usize>,
    factor: impl Fn([usize; 2], u64) -> f64,
) -> Recorded {
    let mut random = SplitMix64::new(9);
    carry_out(header, earlier, interrupted_at, |pairs, now| {
        pairs.iter().map(|hosts| factor(*hosts, now) * (0.02 * random.normal()).exp()).collect()
    })
}

/// The same with what the tests of a step reach, all together.
pub(super) fn carry_out(
    header: &RunHeader,
    earlier: &Recorded,
    interrupted_at: Option<usize>,
    mut factors: impl FnMut(&[[usize; 2]], u64) -> Vec<f64>,
) -> Recorded {
    let schedule = schedule(header, earlier);
    let mut now = schedule.spent_ns();
    let mut run = ScheduledRun::plan(header, schedule, Default::default(), 0);
    let mut recorded = Recorded::default();
    for step in 0.. {
        assert!(step < 100_000, "it does not end");
        let completed = match run.next(now) {
            Step::End(end) => {
                run.close(end != RunEnd::Finished);
                break;
            }
            Step::Pause(pause) => {
                now += pause.ns;
                Completed::Done
            }
            Step::Run(Tests { tests, .. }) => {
                let begun_ns = now;
                now += 120 * MS;
                let pairs: Vec<[usize; 2]> = tests.iter().map(|test: &TestRequest| test.between.hosts).collect();
                let result = |factor: f64| TestResult {
                    pass: if factor > 0.0 {
                        Ok(passed(1e9 * factor, begun_ns))
                    } else {
                        Err(StepFailure { kind: FailureKind::Host, reason: "simulated".into() })
                    },
                    changes: Default::default(),
                    begun_unix_ns: begun_ns,
                };
                Completed::Tests(factors(&pairs, begun_ns).into_iter().map(result).collect())
            }
            Step::Prepare(_) => Completed::Done,
        };
        if interrupted_at == Some(step) {
            run.interrupt();
        }
        run.completed(completed, now);
    }
    for event in run.events() {
        match event {
            Event::Trial(trial) => recorded.trials.push(trial),
            Event::Retest(retest) => recorded.retests.push(retest),
            Event::Pass(pass) => recorded.passes.push(pass),
            Event::Finding(finding) => recorded.findings.push(finding),
            Event::Phase(phase) => recorded.activities.push(phase.activity.plain()),
            _ => {}
        }
    }
    recorded.ns = now;
    recorded
}

fn passed(rate_bps: f64, begun_ns: u64) -> PassResult {
    let (bytes, ns) = ((rate_bps / 80.0) as u64, 100 * MS);
    let end = |sent, received| EndTally {
        bytes_sent: sent,
        bytes_received: received,
        sending_ns: if sent > 0 { ns } else { 0 },
        receiving_ns: if received > 0 { ns } else { 0 },
        flows: vec![FlowTally { bytes_sent: sent, bytes_received: received, ..FlowTally::default() }],
        ..EndTally::default()
    };
    let result = |tally| EndResult { tallies: vec![tally], ..EndResult::default() };
    PassResult {
        begun_ns,
        duration_ns: 120 * MS,
        near: result(end(bytes, 0)),
        far: Some(result(end(0, bytes))),
        ..PassResult::default()
    }
}

/// The time at which the rounds of a mesh without suspects end.
fn rounds_ns() -> u64 {
    mesh(&header(None), &Recorded::default(), None, |_, _| 1.0).ns
}

#[test]
fn a_slow_host_and_a_slow_pair_are_confirmed_and_the_matrix_keeps_its_trials() {
    let slow = |hosts: [usize; 2], _| match hosts {
        [1, _] => 0.3,
        [4, 5] => 0.5,
        _ => 1.0,
    };
    let run = mesh(&header(None), &Recorded::default(), None, slow);
    let found = run.statements();
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("n1 is slow as a sender: its goodput is 3."), "{found:#?}");
    assert!(
        found[0].contains("; re-tested 5 times against ") && found[0].contains(" lower (95 % interval"),
        "{found:#?}"
    );
    assert!(found[1].starts_with("n4 → n5 is slow for its hosts: "), "{found:#?}");
    assert_eq!(run.trials.len(), 2 * 30);
    // Three partners of the host, a pair of each host of the pair, each beside its control.
    assert_eq!(run.retests.len(), 5 * 2 * (3 + 2));
    let turns: Vec<bool> = run.retests.iter().map(|retest| retest.control).collect();
    assert!(turns.chunks(2).all(|turn| turn == [false, true]), "{turns:?}");
    assert!(run.activities.last().unwrap().starts_with("re-test 50 of 50: "), "{:?}", run.activities.last());
}

#[test]
fn a_disturbance_during_the_rounds_is_not_confirmed() {
    let end = rounds_ns();
    let disturbed = |hosts: [usize; 2], now| if hosts[0] == 1 && now < end { 0.3 } else { 1.0 };
    let run = mesh(&header(None), &Recorded::default(), None, disturbed);
    let found = run.statements();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("not confirmed: n1 as a sender: its goodput was 3."), "{found:#?}");
    let again = found[0].split("against ").nth(1).unwrap();
    assert!(again.contains(": 1.0") || again.contains(": 1.00"), "{found:#?}");
}

#[test]
fn a_partner_to_which_a_host_is_no_longer_slow_is_named() {
    let end = rounds_ns();
    let slow = |hosts: [usize; 2], now| if hosts[0] == 1 && (hosts[1] != 5 || now < end) { 0.3 } else { 1.0 };
    let run = mesh(&header(None), &Recorded::default(), None, slow);
    let found = run.statements();
    assert!(
        found[0].starts_with("n1 is slow as a sender") && found[0].contains("lower, but not to n5 ("),
        "{found:#?}"
    );
}

#[test]
fn a_budget_leaves_time_for_the_greatest_difference_only() {
    let slow = |hosts: [usize; 2], _| match hosts {
        [1, _] => 0.2,
        [4, 5] => 0.5,
        _ => 1.0,
    };
    let budget = rounds_ns() + 5 * SECOND;
    let run = mesh(&header(Some(budget)), &Recorded::default(), None, slow);
    let found = run.statements();
    assert!(found[0].starts_with("n1 is slow as a sender"), "{found:#?}");
    assert!(found[1].starts_with("not re-tested: n4 → n5: its goodput was "), "{found:#?}");
    let notes: Vec<&Finding> = run.findings.iter().filter(|one| one.kind == FindingKind::Note).collect();
    let note = "1 of 2 that stood out were not re-tested: 1 because no time was left.";
    assert!(notes.iter().any(|one| one.statement.plain() == note), "{notes:#?}");
    assert!(run.ns <= budget + SECOND, "{} of {budget}", run.ns);
}

#[test]
fn re_tests_end_by_the_time_that_the_plan_gives_them() {
    let slow = |hosts: [usize; 2], _| match hosts {
        [1, _] => 0.2,
        [4, 5] => 0.5,
        _ => 1.0,
    };
    let mut header = header(None);
    let until = rounds_ns() + 5 * SECOND;
    if let Some(plan) = &mut header.plan {
        plan.retests_until_unix_ns = Some(until);
    }
    let run = mesh(&header, &Recorded::default(), None, slow);
    let found = run.statements();
    assert!(found[0].starts_with("n1 is slow as a sender"), "{found:#?}");
    assert!(found[1].starts_with("not re-tested: n4 → n5: its goodput was "), "{found:#?}");
    assert!(run.ns <= until, "{} of {until}", run.ns);
}

#[test]
fn a_host_that_is_lost_while_it_is_tested_again_is_not_called_slow() {
    let end = rounds_ns();
    let lost = |hosts: [usize; 2], now| match hosts {
        [1, _] | [_, 1] if now >= end => 0.0,
        [1, _] => 0.3,
        _ => 1.0,
    };
    let run = mesh(&header(None), &Recorded::default(), None, lost);
    let found = run.statements();
    assert!(found.len() == 1 && found[0].starts_with("not re-tested: n1 as a sender: "), "{found:#?}");
}

#[test]
fn an_interrupted_re_test_is_continued_and_nothing_is_measured_twice() {
    let slow = |hosts: [usize; 2], _| if hosts[0] == 1 { 0.3 } else { 1.0 };
    let header = header(None);
    let whole = mesh(&header, &Recorded::default(), None, slow);
    let begun = (0..).map(|step| mesh(&header, &Recorded::default(), Some(step), slow));
    let begun = begun.into_iter().find(|run| run.retests.len() == 7).unwrap();
    assert!(begun.statements()[0].starts_with("not re-tested: n1 as a sender: "), "{:?}", begun.statements());
    let rest = mesh(&header, &begun, None, slow);
    assert_eq!((rest.trials.len(), begun.retests.len() + rest.retests.len()), (0, whole.retests.len()));
    assert!(rest.statements()[0].starts_with("n1 is slow as a sender: "), "{:?}", rest.statements());
}

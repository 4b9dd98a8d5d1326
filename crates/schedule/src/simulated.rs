//! Runs on a simulated path in virtual time: noise, drift, outliers, stalls, failed set-ups, lost hosts, and interrupts at any
//! step.

mod curve;
mod groups;
mod links;
mod mesh;
mod racks;
mod require;
mod sequence;
mod single;
mod time_left;

use std::collections::BTreeMap;

use analysis::plan::Slot;
use model::{
    Cell, Conditions, Direction, EndResult, EndTally, Event, FlowTally, Goal, Otherwise, Outcome, Pattern, Plan,
    Require, RttTally, RunHeader, SendBy, SocketFacts, Spec, SplitMix64, Stamps, Stop, Stopping, Trial,
};
use proptest::prelude::*;

use crate::{
    AdvisePlan, Completed, CurvePlan, FailureKind, Methods, PairedPlan, PassResult, PlanSchedule, RunEnd, Schedule,
    ScheduledRun, Step, StepFailure, TestResult, Tests, Unfixed,
};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A path between two hosts.
#[derive(Debug, Clone)]
struct Path {
    /// Goodput of a trial, bit/s.
    rate_bps: f64,
    rtt_ns: u64,
    /// Relative standard deviation from trial to trial.
    noise: f64,
    /// Relative change of the rate per second.
    drift: f64,
    /// Share of the trials that carry a tenth.
    outliers: f64,
    /// Share of the trials that carry nothing.
    stalls: f64,
    /// Share of the trials whose set-up fails.
    refusals: f64,
    /// Gain of the goodput by a congestion control.
    gains: BTreeMap<&'static str, f64>,
    /// Time for the connections of a pass, ns.
    set_up_ns: u64,
    /// A token bucket in each direction, through which exchanges go at the rate above once it is empty.
    bucket: Option<curve::Bucket>,
    /// The pass during which a host is lost.
    lost_at: Option<u32>,
    /// An end cannot stamp round trips.
    unstamped: bool,
    /// The near end measures alone, as with copies in memory.
    single_ended: bool,
    /// The step during which the user wants to stop.
    interrupted_at: Option<usize>,
    seed: u64,
}

impl Path {
    fn new(seed: u64) -> Self {
        Self {
            rate_bps: 1e9,
            rtt_ns: 2 * MS,
            noise: 0.01,
            drift: 0.0,
            outliers: 0.0,
            stalls: 0.0,
            refusals: 0.0,
            gains: BTreeMap::new(),
            set_up_ns: 20 * MS,
            bucket: None,
            lost_at: None,
            unstamped: false,
            single_ended: false,
            interrupted_at: None,
            seed,
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
struct Ended {
    end: RunEnd,
    /// Its virtual duration, ns.
    ns: u64,
    /// The longest step, ns.
    longest_ns: u64,
    /// Passes that both ends finished, and those of them that give a curve's anatomy and no trial.
    passes: u32,
    stamped: u32,
    /// Those that checked a curve's peak, which are not trials either.
    checked: u32,
    steps: usize,
    /// Set-ups that failed and were reset.
    resets: u32,
    refused: u32,
    trials: Vec<Trial>,
    outcomes: Vec<Outcome>,
    findings: Vec<model::Finding>,
    advice: Option<model::Advice>,
}

/// Carries out a run on a path.
fn run(header: &RunHeader, schedule: &Schedule, path: &Path) -> Ended {
    let methods = Methods { sends: vec![SendBy::Copy], ..Methods::default() };
    carry_out(ScheduledRun::new(header, schedule, methods), path)
}

fn carry_out(mut run: ScheduledRun, path: &Path) -> Ended {
    let mut world = World { path: path.clone(), random: SplitMix64::new(path.seed), now: 0, refused: 0 };
    let mut ended = Ended {
        end: RunEnd::Finished,
        ns: 0,
        longest_ns: 0,
        passes: 0,
        stamped: 0,
        checked: 0,
        steps: 0,
        resets: 0,
        refused: 0,
        trials: Vec::new(),
        outcomes: Vec::new(),
        findings: Vec::new(),
        advice: None,
    };
    loop {
        let begun = world.now;
        let step = run.next(begun);
        ended.steps += 1;
        assert!(ended.steps < 200_000, "it does not end");
        let result = match step {
            Step::End(end) => {
                ended.end = end;
                break;
            }
            Step::Pause(pause) => world.wait(pause.ns),
            Step::Prepare(preparation) => {
                ended.resets += u32::from(preparation.reset);
                match &preparation.conditions[..] {
                    [] => world.wait(MS),
                    hosts => world.conditions(hosts),
                }
            }
            Step::Run(tests) => {
                let result = world.tests(&tests);
                if let Completed::Tests(results) = &result {
                    let passes = results.iter().filter(|result| tests.recorded && result.pass.is_ok()).count() as u32;
                    ended.passes += passes;
                    ended.stamped += if tests.tests.iter().any(|test| test.spec.anatomy) { passes } else { 0 };
                }
                result
            }
        };
        ended.longest_ns = ended.longest_ns.max(world.now - begun);
        if path.interrupted_at == Some(ended.steps) {
            run.interrupt();
        }
        run.completed(result, world.now);
    }
    run.close(ended.end != RunEnd::Finished);
    (ended.ns, ended.refused) = (world.now, world.refused);
    let mut checks = false;
    for event in run.events() {
        match event {
            Event::Phase(phase) => checks = phase.activity.plain() == "the peak again",
            Event::Pass(_) => ended.checked += u32::from(checks),
            Event::Finding(finding) => ended.findings.push(finding),
            Event::Trial(trial) => ended.trials.push(trial),
            Event::Outcome(outcome) => ended.outcomes.push(outcome),
            Event::Advice(advice) => ended.advice = Some(advice),
            _ => {}
        }
    }
    ended
}

/// The hosts and the path at one time.
struct World {
    path: Path,
    random: SplitMix64,
    now: u64,
    refused: u32,
}

impl World {
    fn wait(&mut self, ns: u64) -> Completed {
        self.now += ns;
        Completed::Done
    }

    fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }

    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A factor around 1: the sum of twelve uniform values is nearly normal.
    fn noise(&mut self) -> f64 {
        let normal: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        (1.0 + self.path.noise * normal).max(0.1) * (1.0 + self.path.drift * self.now as f64 / 1e9)
    }

    /// The failure of the pass with this number, if it fails.
    fn failure(&mut self, number: u32) -> Option<StepFailure> {
        let failed = |kind| StepFailure { kind, reason: "simulated".into() };
        if self.path.lost_at == Some(number) {
            self.now += SECOND;
            return Some(failed(FailureKind::Run));
        }
        if self.chance(self.path.refusals) {
            self.refused += 1;
            return Some(failed(FailureKind::Setup));
        }
        None
    }

    fn trial(&mut self, number: u32, spec: &Spec) -> Result<PassResult, StepFailure> {
        let begun_ns = self.now;
        self.now += self.path.set_up_ns;
        if let Some(failure) = self.failure(number) {
            return Err(failure);
        }
        if spec.anatomy && self.path.unstamped {
            return Err(StepFailure { kind: FailureKind::Setup, reason: "simulated".into() });
        }
        let Stop::TimeNs(ns) = spec.stop else { panic!("a trial by time") };
        let gain = spec.near.cc.as_deref().and_then(|cc| self.path.gains.get(cc)).copied().unwrap_or(1.0);
        let outlier = if self.chance(self.path.outliers) { 0.1 } else { 1.0 };
        let stalled = self.chance(self.path.stalls);
        let rate = if stalled { 0.0 } else { self.path.rate_bps * gain * outlier * self.noise() };
        self.now += ns;
        let bytes = (rate * ns as f64 / 8e9) as u64;
        let socket = SocketFacts { min_rtt_ns: Some(self.path.rtt_ns), ..SocketFacts::default() };
        let flow = |sent, received| FlowTally {
            bytes_sent: sent,
            bytes_received: received,
            socket: socket.clone(),
            ..FlowTally::default()
        };
        let near = EndTally {
            bytes_sent: bytes,
            sending_ns: ns,
            stalled,
            flows: vec![flow(bytes, 0)],
            stamps: Some(Stamps::default()),
            spent: Some(curve::mostly_asleep(ns)),
            ..EndTally::default()
        };
        let far =
            EndTally { bytes_received: bytes, receiving_ns: ns, flows: vec![flow(0, bytes)], ..EndTally::default() };
        let (near, far) = if spec.direction == Direction::Reverse { (far, near) } else { (near, far) };
        Ok(self.result(begun_ns, vec![near], vec![far]))
    }

    /// The conditions of hosts: with few free resources now and then.
    fn conditions(&mut self, hosts: &[usize]) -> Completed {
        self.now += 300 * MS;
        let of = |host: &usize| {
            let free = if self.chance(0.2) { 0 } else { 1 << 30 };
            let found = Conditions { free_memory_bytes: Some(free), ..Conditions::default() };
            (format!("host {host}"), found)
        };
        Completed::Conditions(hosts.iter().map(of).collect())
    }

    /// Simultaneous tests take as long as the longest of them.
    fn tests(&mut self, step: &Tests) -> Completed {
        let tests = &step.tests;
        let mut hosts: Vec<usize> = tests.iter().flat_map(|test| test.between.hosts).collect();
        let count = hosts.len();
        hosts.sort_unstable();
        hosts.dedup();
        let shared = tests.iter().all(|test| test.shares_hosts);
        assert!(shared || hosts.len() == count, "no host is in two tests at once");
        let begun = self.now;
        let mut latest = begun;
        let mut results = Vec::new();
        for (at, test) in (0..).zip(tests) {
            self.now = begun;
            let pass = if !step.recorded {
                self.now += SECOND;
                Ok(PassResult::default())
            } else if matches!(test.spec.stop, Stop::TimeNs(_)) && test.legs.len() == 1 {
                self.trial(step.first + at, &test.spec)
            } else {
                self.pass(step.first + at, &test.legs)
            };
            latest = latest.max(self.now);
            results.push(TestResult { begun_unix_ns: begun, ..passed(pass) });
        }
        self.now = latest;
        Completed::Tests(results)
    }

    fn result(&self, begun_ns: u64, mut near: Vec<EndTally>, far: Vec<EndTally>) -> PassResult {
        if self.path.single_ended {
            for (near, far) in near.iter_mut().zip(&far) {
                (near.bytes_received, near.receiving_ns) = (far.bytes_received, far.receiving_ns);
            }
        }
        let end = |tallies| EndResult { tallies, ..EndResult::default() };
        PassResult {
            begun_ns,
            duration_ns: self.now - begun_ns,
            near: end(near),
            far: (!self.path.single_ended).then(|| end(far)),
            ..PassResult::default()
        }
    }
}

/// What came of a test that changed no settings.
fn passed(pass: Result<PassResult, StepFailure>) -> TestResult {
    TestResult { pass, changes: [Vec::new(), Vec::new()], begun_unix_ns: 0 }
}

fn header(cells: Vec<Spec>, budget_ns: u64, seed: u64) -> RunHeader {
    let stopping = Stopping { min_trials: 6, max_trials: 40, budget_ns: Some(budget_ns), seed, ..Stopping::default() };
    RunHeader {
        cells: (0..).zip(cells).map(|(id, spec)| Cell::new(id, spec)).collect(),
        stopping,
        ..RunHeader::default()
    }
}

fn stream(ns: u64) -> Spec {
    Spec { stop: Stop::TimeNs(ns), ..Spec::new("tcp", Pattern::Stream) }
}

fn sizes() -> Vec<Spec> {
    let size = |power: u32| Spec { block: 1 << power, stop: Stop::AboutNs(MS), ..Spec::new("tcp", Pattern::Pingpong) };
    (0..=20).step_by(2).map(size).collect()
}

/// The schedules with their cells, by name.
fn schedules(budget_ns: u64, seed: u64) -> Vec<(RunHeader, Schedule)> {
    let curve = CurvePlan { adaptive: true, leg_ns: None, limit_ns: None, ceiling: true, anatomy: true, check: true };
    let advise = AdvisePlan {
        goal: Goal::Throughput,
        min_effect: 0.02,
        allow: Default::default(),
        fixed_block: false,
        fixed_time: false,
    };
    let trial = 500 * MS;
    vec![
        (header(vec![stream(trial)], budget_ns, seed), Schedule::Single(Unfixed::default())),
        (header(sizes(), budget_ns, seed), Schedule::Curve(curve)),
        (
            header(vec![stream(trial), stream(trial)], budget_ns, seed),
            Schedule::Paired(PairedPlan { gap_ns: 50 * MS, unfixed: Unfixed::default() }),
        ),
        (header(vec![stream(trial)], budget_ns, seed), Schedule::Advise(advise)),
    ]
}

/// A plan of two levels between each two of three hosts, and its run.
fn plan(budget_ns: u64, seed: u64, earlier: &[Trial], require: Option<Require>) -> (RunHeader, ScheduledRun) {
    let pairs = [[0, 1], [1, 0], [0, 2], [2, 0], [1, 2], [2, 1]];
    let mut header = header(vec![stream(100 * MS); 2 * pairs.len()], budget_ns, seed);
    header.stopping.max_trials = 8;
    let slot = |cell: u32| {
        let [near, far] = pairs[cell as usize % pairs.len()];
        let combination = cell as usize / pairs.len();
        Slot { cell, sizes: 1, plot: combination, combination, near, far, shared: Vec::new(), together: false }
    };
    let slots = header.cells.iter().map(|cell| slot(cell.id)).collect();
    let schedule = PlanSchedule {
        plan: Plan { require, ..Plan::default() },
        slots,
        trials: earlier.to_vec(),
        passes: Vec::new(),
        retests: Vec::new(),
    };
    let run = ScheduledRun::plan(&header, schedule, Default::default(), 0);
    (header, run)
}

/// Every trial is in its outcome, and every pass that ended gave its trials or an anatomy.
fn nothing_is_lost(ended: &Ended) {
    let in_outcomes: usize = ended.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
    assert_eq!(in_outcomes, ended.trials.len(), "{:?}", ended.end);
    let passes: std::collections::BTreeSet<u32> = ended.trials.iter().map(|trial| trial.pass).collect();
    assert_eq!(passes.len() as u32 + ended.stamped + ended.checked, ended.passes, "{:?}", ended.end);
    let divided = ended.outcomes.iter().filter(|outcome| outcome.summary.anatomy.is_some()).count();
    assert_eq!(divided as u32, ended.stamped.min(1), "{:?}", ended.end);
}

fn paths() -> impl Strategy<Value = Path> {
    let disturbance = (0.0..0.3f64, -0.02..0.02f64, 0.0..0.2f64);
    (any::<u64>(), disturbance, 1e6..1e10f64, 20_000..100 * MS, any::<bool>()).prop_map(
        |(seed, (noise, drift, outliers), rate_bps, rtt_ns, single_ended)| Path {
            noise,
            drift,
            outliers,
            rate_bps,
            rtt_ns,
            single_ended,
            ..Path::new(seed)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_run_keeps_to_its_budget_and_loses_nothing(path in paths(), budget in SECOND..60 * SECOND) {
        for (header, schedule) in schedules(budget, path.seed) {
            let ended = run(&header, &schedule, &path);
            prop_assert_eq!(&ended.end, &RunEnd::Finished);
            nothing_is_lost(&ended);
            // No trial starts after the budget, apart from the first ones and the memory ceiling.
            if !matches!(schedule, Schedule::Curve(_)) {
                let least = if matches!(schedule, Schedule::Paired(_)) { 4 } else { 3 };
                let over = ended.ns.saturating_sub(budget);
                prop_assert!(ended.passes <= least || over <= 4 * ended.longest_ns, "{} over {}: {:?}", over, budget, ended.passes);
            }
        }
    }

    #[test]
    fn an_interrupt_at_any_step_ends_the_run_after_it_and_keeps_what_is_finished(path in paths(), at in 1..200usize) {
        for (header, schedule) in schedules(20 * SECOND, path.seed) {
            let whole = run(&header, &schedule, &path);
            let ended = run(&header, &schedule, &Path { interrupted_at: Some(at), ..path.clone() });
            nothing_is_lost(&ended);
            if at < whole.steps {
                prop_assert_eq!(&ended.end, &RunEnd::Interrupted);
                prop_assert_eq!(ended.steps, at + 1, "nothing more is measured");
            }
            // What was measured before is as in the run that was not interrupted.
            let same = |trial: &&Trial| whole.trials.iter().any(|other| other.pass == trial.pass && other.value == trial.value);
            prop_assert!(ended.trials.iter().all(|trial| same(&trial)));
        }
    }

    #[test]
    fn a_lost_host_ends_the_run_and_keeps_what_is_finished(path in paths(), at in 0..30u32) {
        for (header, schedule) in schedules(20 * SECOND, path.seed) {
            let ended = run(&header, &schedule, &Path { lost_at: Some(at), ..path.clone() });
            nothing_is_lost(&ended);
            if ended.end != RunEnd::Finished {
                prop_assert_eq!(&ended.end, &RunEnd::Failed);
                prop_assert_eq!(ended.passes, at);
            }
        }
    }

    #[test]
    fn rounds_of_a_comparison_are_whole_and_balanced(path in paths(), stalls in 0.0..0.2f64) {
        let (header, schedule) = schedules(30 * SECOND, path.seed).swap_remove(2);
        let ended = run(&header, &schedule, &Path { stalls, ..path });
        let order: Vec<u32> = ended.trials.iter().map(|trial| trial.cell).collect();
        prop_assert_eq!(order.len() % 4, 0);
        for round in order.chunks(4) {
            prop_assert!(round == [0, 1, 1, 0] || round == [1, 0, 0, 1], "{:?}", round);
        }
    }

    #[test]
    fn a_plan_measures_each_cell_once_a_round_and_loses_nothing(path in paths(), budget in SECOND..60 * SECOND) {
        let (header, run) = plan(budget, path.seed, &[], None);
        let ended = carry_out(run, &Path { single_ended: false, ..path });
        prop_assert_eq!(&ended.end, &RunEnd::Finished);
        let counts: Vec<usize> =
            header.cells.iter().map(|cell| ended.trials.iter().filter(|trial| trial.cell == cell.id).count()).collect();
        prop_assert_eq!(ended.trials.len() as u32, ended.passes);
        prop_assert!(counts.iter().all(|count| *count <= 8), "{:?}", counts);
        // A cell that has converged has fewer rounds than the others, and never less than the rule asks for.
        let most = counts.iter().max().copied().unwrap_or(0);
        prop_assert!(counts.iter().all(|count| *count == most || *count >= 6.min(most)), "{:?}", counts);
        prop_assert_eq!(ended.outcomes.iter().map(|outcome| outcome.trials.len()).sum::<usize>(), ended.trials.len());
    }

    #[test]
    fn a_plan_that_was_interrupted_goes_on_where_it_was(path in paths(), at in 1..150usize) {
        let path = Path { single_ended: false, ..path };
        let (_, run) = plan(600 * SECOND, path.seed, &[], None);
        let cut = carry_out(run, &Path { interrupted_at: Some(at), ..path.clone() });
        let (_, run) = plan(600 * SECOND, path.seed, &cut.trials, None);
        let rest = carry_out(run, &path);
        prop_assert_eq!(&rest.end, &RunEnd::Finished);
        let numbers: std::collections::BTreeSet<u32> =
            cut.trials.iter().chain(&rest.trials).map(|trial| trial.pass).collect();
        prop_assert_eq!(numbers.len(), cut.trials.len() + rest.trials.len(), "no number is used twice");
        prop_assert!(rest.outcomes.iter().all(|outcome| (6..=8).contains(&outcome.trials.len())));
    }

    #[test]
    fn cells_whose_requirements_are_not_met_are_skipped_or_end_the_run(path in paths(), end in any::<bool>()) {
        let otherwise = if end { Otherwise::End } else { Otherwise::Skip };
        let require = Require {
            free_memory_bytes: Some(1),
            load: None,
            foreign_bps: None,
            wait_ns: 2 * SECOND,
            otherwise,
        };
        let (_, run) = plan(600 * SECOND, path.seed, &[], Some(require));
        let ended = carry_out(run, &Path { single_ended: false, ..path });
        prop_assert!(matches!(ended.end, RunEnd::Finished) || end && matches!(ended.end, RunEnd::Unmet { .. }), "{:?}", ended.end);
        nothing_is_lost(&ended);
    }

    #[test]
    fn a_search_resets_each_failed_set_up_and_goes_on(path in paths(), refusals in 0.0..0.3f64) {
        let (header, schedule) = schedules(30 * SECOND, path.seed).swap_remove(3);
        let ended = run(&header, &schedule, &Path { refusals, ..path });
        nothing_is_lost(&ended);
        // A start that fails ends the run: there is nothing to compare with.
        if ended.end == RunEnd::Finished {
            prop_assert_eq!(ended.resets, ended.refused);
        }
    }
}

#[test]
fn a_curve_does_without_an_anatomy_that_an_end_refuses() {
    let (header, schedule) = schedules(10 * SECOND, 1).swap_remove(1);
    for (unstamped, stamped) in [(false, 1), (true, 0)] {
        let ended = run(&header, &schedule, &Path { unstamped, ..Path::new(1) });
        assert_eq!((&ended.end, ended.stamped, ended.resets), (&RunEnd::Finished, stamped, 1 - stamped));
        nothing_is_lost(&ended);
        assert!(ended.ns <= 10 * SECOND, "{}", ended.ns);
    }
}

#[test]
fn a_single_cell_stops_when_its_interval_is_narrow_enough() {
    let (header, schedule) = schedules(600 * SECOND, 1).swap_remove(0);
    let calm = run(&header, &schedule, &Path { noise: 0.002, ..Path::new(1) });
    assert_eq!((calm.end, calm.passes), (RunEnd::Finished, 6));
    let noisy = run(&header, &schedule, &Path { noise: 0.5, ..Path::new(1) });
    assert_eq!((noisy.end, noisy.passes), (RunEnd::Finished, 40), "the most trials that the rule allows");
}

#[test]
fn intervals_of_many_runs_cover_the_truth_as_often_as_they_say() {
    let runs = 400;
    let covered = (0..runs).filter(|seed| {
        let (header, schedule) = schedules(600 * SECOND, *seed).swap_remove(0);
        let ended = run(&header, &schedule, &Path { noise: 0.04, ..Path::new(*seed) });
        let estimate = ended.outcomes[0].estimate.clone().expect("an estimate");
        estimate.low.zip(estimate.high).is_some_and(|(low, high)| (low..=high).contains(&1e9))
    });
    let covered = covered.count();
    // 95 % of 400 are 380; fewer than 366 have a probability of 0.2 %.
    assert!(covered >= 366, "{covered} of {runs}");
}

/// How many of `runs` searches on paths with these gains have confirmed a change, and how many of these name `cc`.
fn searches(runs: u64, gains: &BTreeMap<&'static str, f64>) -> (usize, usize) {
    let mut confirmed = 0;
    let mut named = 0;
    for seed in 0..runs {
        let (mut header, schedule) = schedules(120 * SECOND, seed).swap_remove(3);
        for host in [&mut header.near, &mut header.far] {
            host.congestion_controls = vec!["cubic".into(), "bbr".into(), "reno".into()];
        }
        let ended = run(&header, &schedule, &Path { noise: 0.03, gains: gains.clone(), ..Path::new(seed) });
        nothing_is_lost(&ended);
        let advice = ended.advice.expect("advice");
        if advice.confirmed {
            confirmed += 1;
            named += usize::from(advice.best.values().any(|level| level.contains("bbr")));
        }
    }
    (confirmed, named)
}

#[test]
fn a_search_finds_what_helps_and_claims_nothing_where_nothing_does() {
    let (confirmed, named) = searches(30, &BTreeMap::from([("bbr", 1.3)]));
    assert!(confirmed >= 27 && named == confirmed, "{named} of {confirmed}");
    // At most one of twenty; more than eight of sixty have a probability below 0.5 %.
    let (confirmed, _) = searches(60, &BTreeMap::new());
    assert!(confirmed <= 8, "{confirmed}");
}

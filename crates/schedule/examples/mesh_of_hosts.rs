//! What a mesh of many hosts costs the one that decides what is measured next: all pairs in virtual time, with a slow host.
//!
//! `cargo run --release -p throughline-schedule --example mesh_of_hosts -- [HOSTS]`
#![allow(clippy::print_stdout, reason = "an example is a program")]

#[path = "../../analysis/examples/clock/mod.rs"]
mod clock;

use std::collections::BTreeMap;

use analysis::plan::Slot;
use clock::Clock;
use model::{
    Cell, EndResult, EndTally, Factor, FlowTally, Pattern, Plan, RunHeader, RunKind, Shared, Spec, SplitMix64, Stopping,
};
use schedule::{Completed, PassResult, PlanSchedule, RunEnd, ScheduledRun, Step, TestRequest, TestResult, Tests};

/// Length of a trial, and until the next can begin, ns.
const TRIAL_NS: [u64; 2] = [5_000_000_000, 6_000_000_000];
/// The slow host, and what it reaches of 1 Gbit/s.
const SLOW: (usize, f64) = (1, 0.5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hosts: usize = std::env::args().nth(1).map_or(Ok(317), |text| text.parse())?;
    let start = Clock::now();
    let (header, schedule) = mesh(hosts);
    start.report(&format!("{} cells of {hosts} hosts", header.cells.len()));

    let start = Clock::now();
    let (mut now, mut random) = (0, SplitMix64::new(9));
    let mut run = ScheduledRun::plan(&header, schedule, Default::default(), 0);
    start.report("its steps");

    let start = Clock::now();
    let (mut steps, mut tests, mut events) = (0_usize, 0_usize, 0_usize);
    loop {
        let completed = match run.next(now) {
            Step::End(end) => {
                start.report(&format!("{tests} tests in {steps} steps, {:.1} h of the run", now as f64 / 3.6e12));
                let start = Clock::now();
                run.close(end != RunEnd::Finished);
                events += run.events().len();
                start.report(&format!("its end; {events} events"));
                return Ok(());
            }
            Step::Pause(pause) => {
                now += pause.ns;
                Completed::Done
            }
            Step::Run(Tests { tests: begun, .. }) => {
                let begun_ns = now;
                (steps, tests, now) = (steps + 1, tests + begun.len(), now + TRIAL_NS[1]);
                Completed::Tests(begun.iter().map(|test| result(test, begun_ns, &mut random)).collect())
            }
            _ => Completed::Done,
        };
        run.completed(completed, now);
        events += run.events().len();
    }
}

/// A round of all pairs.
fn mesh(hosts: usize) -> (RunHeader, PlanSchedule) {
    let names: Vec<String> = (0..hosts).map(|host| format!("node{host:05}")).collect();
    let spec: Shared<Spec> = Spec::new("tcp", Pattern::Stream).into();
    let pairs = (0..hosts).flat_map(|near| (0..hosts).map(move |far| (near, far))).filter(|(near, far)| near != far);
    let (mut cells, mut slots) = (Vec::new(), Vec::new());
    for (id, (near, far)) in (0..).zip(pairs) {
        let level = |factor: &str, host: usize| (factor.to_owned(), names[host].clone());
        let levels = BTreeMap::from([level(Factor::FROM, near), level(Factor::TO, far)]);
        cells.push(Cell { levels, ..Cell::new(id, spec.clone()) });
        let (plot, combination, shared, together) = (0, 0, Vec::new(), false);
        slots.push(Slot { cell: id, sizes: 1, plot, combination, near, far, shared, together });
    }
    let plan = Plan { from: names.clone(), to: names, retests: Some(5), ..Plan::default() };
    let header = RunHeader {
        kind: RunKind::Mesh,
        cells,
        stopping: Stopping { min_trials: 1, max_trials: 1, seed: 3, ..Stopping::default() },
        plan: Some(Box::new(plan.clone())),
        ..RunHeader::default()
    };
    (header, PlanSchedule { plan, slots, trials: Vec::new(), passes: Vec::new(), retests: Vec::new() })
}

fn result(test: &TestRequest, begun_ns: u64, random: &mut SplitMix64) -> TestResult {
    let share = if test.between.hosts.contains(&SLOW.0) { SLOW.1 } else { 1.0 };
    let bytes = (1e9 / 8.0 * TRIAL_NS[0] as f64 / 1e9 * share * (0.02 * random.normal()).exp()) as u64;
    let end = |sent, received| EndTally {
        bytes_sent: sent,
        bytes_received: received,
        sending_ns: if sent > 0 { TRIAL_NS[0] } else { 0 },
        receiving_ns: if received > 0 { TRIAL_NS[0] } else { 0 },
        flows: vec![FlowTally { bytes_sent: sent, bytes_received: received, ..FlowTally::default() }],
        ..EndTally::default()
    };
    let result = |tally| EndResult { tallies: vec![tally], ..EndResult::default() };
    let pass = PassResult {
        begun_ns,
        duration_ns: TRIAL_NS[1],
        near: result(end(bytes, 0)),
        far: Some(result(end(0, bytes))),
        ..PassResult::default()
    };
    TestResult { pass: Ok(pass), changes: Default::default(), begun_unix_ns: begun_ns }
}

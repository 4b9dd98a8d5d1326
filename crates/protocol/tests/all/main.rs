//! An agent and its coordinators in virtual time. Each seed has its own delays, lost connections and crashes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "how fast it was")]

mod calendar;
mod coordinator;
mod diagrams;
mod faults;
mod fleets;
mod host;
mod machine;
mod manual;
mod pass;
mod runs;
mod world;

use std::time::Instant;

use world::World;

/// Seeds of one run of the tests; `THRU_SEEDS=FIRST..END` takes others.
const SEEDS: std::ops::Range<u64> = 0..2_000;
/// Lines of the trace of a seed that failed.
const TRACE: usize = 60;

/// The seeds of this run.
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("THRU_SEEDS") else { return SEEDS };
    let (first, end) = text.split_once("..").expect("THRU_SEEDS=FIRST..END");
    first.parse().expect("a number")..end.parse().expect("a number")
}

/// Runs the worlds of all seeds. One that breaks a promise is run again for its trace.
fn simulate(run: impl Fn(u64, Option<&mut Vec<String>>) -> Result<u64, String>) {
    let (begun, mut events) = (Instant::now(), 0);
    for seed in seeds() {
        match run(seed, None) {
            Ok(count) => events += count,
            Err(broken) => {
                let mut trace = Vec::new();
                let _ = run(seed, Some(&mut trace));
                let first = trace.len().saturating_sub(TRACE);
                panic!("seed {seed}: {broken}\n{}", trace[first..].join("\n"));
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} seeds, {events} events, {:.0} events a second", seeds().count(), events as f64 / seconds);
}

#[test]
fn every_run_keeps_the_promises_of_the_agent() {
    simulate(|seed, trace| World::new(seed).run(trace));
}

#[test]
fn every_run_over_a_fleet_ends_and_loses_nothing() {
    simulate(|seed, trace| fleets::World::new(seed).run(trace));
}

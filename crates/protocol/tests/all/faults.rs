//! Faults that came to light by luck, each with seeds of its own.

use std::time::Duration;

use model::random::SplitMix64;

use super::fleets::{Faults, World};
use super::runs::{Kind, Run};

/// Seeds of each fault.
const SEEDS: std::ops::Range<u64> = 0..150;

const PLAN: Kind = Kind::Plan { per_host: 1, together: false };

/// Runs worlds with these hosts, runs and faults to their end.
fn simulate(hosts: usize, faults: Faults, runs: impl Fn(&mut SplitMix64) -> Vec<Run>, holds: impl Fn(&World) -> bool) {
    for seed in SEEDS {
        let mut random = SplitMix64::new(seed);
        let mut world = World::of(seed, hosts, runs(&mut random), faults);
        if let Err(broken) = world.run(None) {
            panic!("seed {seed}: {broken}");
        }
        let ends: Vec<String> = world.runs.iter().map(Run::state).collect();
        assert!(holds(&world), "seed {seed}: {ends:?}");
    }
}

#[test]
fn two_coordinators_with_the_same_hosts_in_another_order_both_measure() {
    let runs = |random: &mut SplitMix64| {
        let hosts: [Vec<usize>; 2] = [vec![0, 1, 2], vec![2, 1, 0]];
        hosts.into_iter().enumerate().map(|(number, hosts)| Run::of(number, PLAN, &hosts, random)).collect()
    };
    simulate(3, Faults::default(), runs, |world| world.runs.iter().all(Run::is_whole));
}

#[test]
fn a_run_whose_process_is_killed_again_and_again_is_whole_when_it_is_continued_elsewhere() {
    let faults = Faults { events: [2, 0, 0, 0, 0], ..Faults::default() };
    let runs = |random: &mut SplitMix64| vec![Run::of(0, PLAN, &[0, 1, 2], random)];
    simulate(3, faults, runs, |world| world.runs.iter().all(Run::is_whole));
}

#[test]
fn results_that_agents_kept_are_not_lost_to_a_process_that_dies_while_it_reads_them() {
    let mut used = 0;
    for seed in SEEDS {
        let mut random = SplitMix64::new(seed);
        let runs = vec![Run::of(0, PLAN, &[0, 1], &mut random)];
        let mut world = World::of(seed, 2, runs, Faults::default());
        // The first process dies in a test, the second while it asks for what the agents have kept.
        world.kill_after([Duration::from_millis(1_500), Duration::from_micros(random.below(60_000) as u64)]);
        world.run(None).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        assert!(world.runs[0].is_whole(), "seed {seed}: {}", world.runs[0].state());
        used += world.results_used();
    }
    assert!(used > 0, "some of the results are used");
}

#[test]
fn an_agent_that_is_replaced_in_mid_run_costs_no_more_than_its_tests() {
    let faults = Faults { events: [0, 1, 0, 0, 0], ..Faults::default() };
    for per_host in [1, 2] {
        let kind = Kind::Plan { per_host, together: false };
        let runs = |random: &mut SplitMix64| vec![Run::of(0, kind, &[0, 1, 2, 3], random)];
        simulate(4, faults, runs, |world| world.runs.iter().all(Run::has_survived_a_lost_host));
    }
}

#[test]
fn connections_that_are_lost_at_any_message_lose_nothing_that_was_stored() {
    let faults = Faults { cut_one_in: Some(60), ..Faults::default() };
    let runs = |random: &mut SplitMix64| vec![Run::of(0, PLAN, &[0, 1, 2], random)];
    simulate(3, faults, runs, |_| true);
}

//! What a schedule of pairs costs: all pairs of 10,000 hosts, each computed as it is needed; the lists of steps of a plan of 1,000 hosts;
//! the same with one test at a time on the uplink of each rack, or in each rack.
//!
//! `cargo run --release -p throughline-analysis --example pair_schedule`
#![allow(clippy::print_stdout, reason = "an example is a program")]

use std::time::Instant;

use analysis::plan::{RoundRobin, steps, steps_sharing};

const HOSTS: usize = 10_000;
/// Hosts of a plan, in racks.
const PLANNED: usize = 1_000;
const RACK: usize = 40;

fn main() {
    let start = Instant::now();
    let tournament = RoundRobin::new(HOSTS);
    let (mut pairs, mut sum) = (0_usize, 0_usize);
    for step in 0..tournament.steps() {
        for (one, other) in tournament.pairs(step) {
            pairs += 1;
            sum += one + other;
        }
    }
    // Each host has a pair with each other one.
    assert_eq!((pairs, sum), (HOSTS * (HOSTS - 1) / 2, (HOSTS - 1) * HOSTS * (HOSTS - 1) / 2));
    report(&format!("{pairs} pairs of {HOSTS} hosts in {} steps", tournament.steps()), start);

    let all: Vec<(usize, usize)> =
        (0..PLANNED).flat_map(|near| (0..PLANNED).map(move |far| (near, far))).filter(|(a, b)| a != b).collect();
    let start = Instant::now();
    let made = steps(&all);
    report(&format!("{} tests between {PLANNED} hosts in {} steps", all.len(), made.len()), start);
    for (what, uplink) in [("uplink", true), ("rack", false)] {
        let shared: Vec<Vec<usize>> = all.iter().map(|(near, far)| shared(near / RACK, far / RACK, uplink)).collect();
        let shared: Vec<&[usize]> = shared.iter().map(Vec::as_slice).collect();
        let start = Instant::now();
        let made = steps_sharing(&all, &shared);
        report(&format!("the same in {} racks, one test per {what}, in {} steps", PLANNED / RACK, made.len()), start);
    }
}

fn shared(near: usize, far: usize, uplink: bool) -> Vec<usize> {
    if near == far && uplink { Vec::new() } else { vec![near, far] }
}

fn report(what: &str, start: Instant) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!("{what}: {:?}; at most {peak} so far", start.elapsed());
}

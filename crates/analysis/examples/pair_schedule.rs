//! What a schedule of pairs costs: all pairs of 10,000 hosts, each computed as it is needed; the lists of steps of a plan of 1,000 hosts;
//! the same with one test at a time on the uplink of each rack, or in each rack.
//!
//! `cargo run --release -p throughline-analysis --example pair_schedule`
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is a program")]

mod clock;

use analysis::plan::{RoundRobin, steps, steps_sharing};
use clock::Clock;

const HOSTS: usize = 10_000;
/// Hosts of a plan, in racks.
const PLANNED: usize = 1_000;
const RACK: usize = 40;

fn main() {
    let start = Clock::now();
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
    start.report(&format!("{pairs} pairs of {HOSTS} hosts in {} steps", tournament.steps()));

    let all: Vec<(usize, usize)> =
        (0..PLANNED).flat_map(|near| (0..PLANNED).map(move |far| (near, far))).filter(|(a, b)| a != b).collect();
    let start = Clock::now();
    let made = steps(&all);
    start.report(&format!("{} tests between {PLANNED} hosts in {} steps", all.len(), made.len()));
    for (what, uplink) in [("uplink", true), ("rack", false)] {
        let shared: Vec<Vec<usize>> = all.iter().map(|(near, far)| shared(near / RACK, far / RACK, uplink)).collect();
        let shared: Vec<&[usize]> = shared.iter().map(Vec::as_slice).collect();
        let start = Clock::now();
        let made = steps_sharing(&all, &shared);
        start.report(&format!("the same in {} racks, one test per {what}, in {} steps", PLANNED / RACK, made.len()));
    }
}

fn shared(near: usize, far: usize, uplink: bool) -> Vec<usize> {
    if near == far && uplink { Vec::new() } else { vec![near, far] }
}

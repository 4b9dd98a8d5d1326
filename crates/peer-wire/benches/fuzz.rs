//! Ten million random, mutated and truncated inputs for each codec in each of its roles (an argument sets
//! another number). Prints how many of them each codec refused; panics if a codec does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a surprise ends the run")]
#![allow(clippy::print_stdout, reason = "a bench prints what it found")]

#[path = "../tests/all/common/mod.rs"]
mod common;
use common::recording;
#[path = "../tests/all/common/fuzz.rs"]
mod fuzz;

const INPUTS: u64 = 10_000_000;
const ROUND: u64 = 1_000_000;

fn main() {
    let each: u64 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(INPUTS);
    let targets = fuzz::targets();
    let inputs = each * targets.len() as u64;
    let mut random = model::SplitMix64::new(inputs);
    let mut sums = vec![fuzz::Tally::default(); targets.len()];
    let start = std::time::Instant::now();
    let mut left = inputs;
    while left > 0 {
        let round = left.min(ROUND);
        for (sum, tally) in sums.iter_mut().zip(fuzz::run(&targets, round, &mut random)) {
            sum.inputs += tally.inputs;
            sum.errors += tally.errors;
        }
        left -= round;
    }
    println!("{inputs} inputs in {:.1} s, none of which a codec fell over:", start.elapsed().as_secs_f64());
    for (target, sum) in targets.iter().zip(sums) {
        println!("{:8} {:12} {:8} inputs, {:8} refused", target.peer, target.role, sum.inputs, sum.errors);
    }
}

//! The contract of the paired comparison, stopping included: the 95 % interval that is finally reported holds the true ratio in
//! 93 % to 97 % of runs, A against A is called different in at most 5 %, and a true change of 3 % is found in at least 90 %
//! at the noise levels named here.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use analysis::stats::{Paired, PairedDecision, SplitMix64};
use model::Stopping;

fn runs() -> u64 {
    std::env::var("THRU_TRUTH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2_000)
}

/// The logarithms of the undisturbed values of trials in the order of time: what the network does meanwhile.
type Weather = Box<dyn FnMut() -> f64>;

struct Result {
    covered: f64,
    better: f64,
    worse: f64,
    undecided: f64,
    blocks: f64,
}

fn rule() -> Stopping {
    Stopping { min_trials: 16, max_trials: 54, ..Stopping::default() }
}

/// Runs the rule as the coordinator does: a coin for each block, four trials, a decision.
fn simulate(rule: &Stopping, tolerance: f64, ratio: f64, seed: u64, weather: impl Fn(SplitMix64) -> Weather) -> Result {
    let mut seeds = SplitMix64::new(seed);
    let (mut covered, mut better, mut worse, mut undecided, mut blocks) = (0u32, 0u32, 0u32, 0u32, 0usize);
    let effect = ratio.ln();
    for _ in 0..runs() {
        let paired = Paired::new(&Stopping { seed: seeds.next_u64(), target: tolerance, ..rule.clone() });
        let mut coin = SplitMix64::new(seeds.next_u64());
        let mut next = weather(SplitMix64::new(seeds.next_u64()));
        let mut log_ratios = Vec::new();
        let judged = loop {
            let turned = coin.next_u64() >> 63 == 1;
            let mut sum = 0.0;
            for b in [false, true, true, false] {
                let b = b != turned;
                sum += if b { (next() + effect) / 2.0 } else { -next() / 2.0 };
            }
            log_ratios.push(sum);
            match paired.decide(&log_ratios) {
                PairedDecision::Continue => {}
                PairedDecision::Settled(interval) => break interval,
                PairedDecision::Exhausted(interval) => break interval.expect("enough blocks"),
            }
        };
        let bounds = paired.bounds();
        covered += u32::from(paired.interval_of(&log_ratios).unwrap().contains(effect));
        better += u32::from(judged.low > bounds.high);
        worse += u32::from(judged.high < bounds.low);
        undecided += u32::from(judged.low <= bounds.low && bounds.low <= judged.high);
        blocks += log_ratios.len();
    }
    let share = |count: u32| f64::from(count) / runs() as f64;
    Result {
        covered: share(covered),
        better: share(better),
        worse: share(worse),
        undecided: share(undecided),
        blocks: blocks as f64 / runs() as f64,
    }
}

fn independent(noise: f64) -> impl Fn(SplitMix64) -> Weather {
    move |mut random| Box::new(move || noise * random.normal())
}

#[test]
fn calibrate() {
    for (tolerance, ratio, noise) in [
        (0.0, 1.0, 0.01),
        (0.01, 1.0, 0.01),
        (0.01, 1.0, 0.02),
        (0.01, 0.97, 0.01),
        (0.01, 0.97, 0.03),
        (0.01, 0.97, 0.025),
        (0.01, 1.03, 0.025),
    ] {
        let r = simulate(&rule(), tolerance, ratio, 8, independent(noise));
        println!(
            "tol {tolerance} ratio {ratio} noise {noise}: covered {:.3} better {:.3} worse {:.3} undecided {:.3} blocks {:.1}",
            r.covered, r.better, r.worse, r.undecided, r.blocks
        );
    }
}

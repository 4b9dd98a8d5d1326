//! The contract of the paired comparison with its stop rule: the reported 95 % interval covers the true ratio in 93 % to 97 % of runs,
//! A against A is reported as different in at most 5 %, and a true change of 3 % is found in at least 90 % at the given noise.
//!
//! `make truth` takes 2,000 runs for each line (THRU_TRUTH_RUNS=2000) and prints the table that docs/manual/statistics.md
//! quotes. Without that variable the tests take 200 runs and widen the bounds by three standard errors.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use analysis::stats::{Paired, PairedDecision};
use model::SplitMix64;
use model::Stopping;

/// Runs of a quick test, and of the contract.
const RUNS: [u64; 2] = [200, 2_000];
/// Change that has to be found, and the smaller tolerance.
const CHANGE: f64 = 0.03;
const TOLERANCE: f64 = 0.01;

/// The logarithms of the trials' values without an effect, in the order of time.
type Path = Box<dyn FnMut() -> f64>;

/// The result of a scenario, as shares of its runs, and the mean number of rounds.
struct Sample {
    covered: f64,
    better: f64,
    worse: f64,
    rounds: f64,
}

fn runs() -> u64 {
    std::env::var("THRU_TRUTH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS[0])
}

/// How much a share of `p` may exceed its bound with fewer runs than the contract's.
fn slack(p: f64) -> f64 {
    let error = |runs: u64| (p * (1.0 - p) / runs as f64).sqrt();
    if runs() < RUNS[1] { 3.0 * error(runs()) } else { 0.0 }
}

/// The default rule of `thru ab`.
fn rule(tolerance: f64) -> Stopping {
    Stopping { min_trials: 16, max_trials: 54, target: tolerance, ..Stopping::default() }
}

/// Runs the rule as the coordinator does: a random order for each round, four trials, a decision; `budget` is in rounds.
fn simulate(
    rule: &Stopping,
    ratio: f64,
    seed: u64,
    budget: impl Fn(&mut SplitMix64) -> usize,
    path: impl Fn(SplitMix64) -> Path,
) -> Sample {
    let mut seeds = SplitMix64::new(seed);
    let (mut covered, mut better, mut worse, mut rounds) = (0u32, 0u32, 0u32, 0usize);
    let effect = ratio.ln();
    for _ in 0..runs() {
        let budget = budget(&mut seeds);
        let run_seed = seeds.next_u64();
        let paired = Paired::new(&Stopping { seed: run_seed, ..rule.clone() });
        let mut coin = SplitMix64::new(run_seed);
        let mut next = path(SplitMix64::new(seeds.next_u64()));
        let mut logs = Vec::new();
        while logs.len() < budget {
            let swapped = coin.next_u64() >> 63 == 1;
            let part = |b: bool| if b != swapped { (next() + effect) / 2.0 } else { -next() / 2.0 };
            logs.push([false, true, true, false].map(part).iter().sum());
            if paired.decide(&logs) != PairedDecision::Continue {
                break;
            }
        }
        // A budget may leave too few rounds for an answer.
        let (judged, bounds) = (paired.judged_by(&logs), paired.bounds());
        covered += u32::from(paired.interval_of(&logs).expect("enough rounds").contains(effect));
        better += u32::from(judged.is_some_and(|judged| judged.low > bounds.high));
        worse += u32::from(judged.is_some_and(|judged| judged.high < bounds.low));
        rounds += logs.len();
    }
    let share = |count: u32| f64::from(count) / runs() as f64;
    Sample {
        covered: share(covered),
        better: share(better),
        worse: share(worse),
        rounds: rounds as f64 / runs() as f64,
    }
}

/// Prints a line of the table and checks the coverage.
fn contract(scenario: &str, tolerance: f64, ratio: f64, came: &Sample) {
    println!(
        "| {scenario} | {tolerance} | {ratio} | {:.1} % | {:.1} % | {:.1} % | {:.0} |",
        100.0 * came.covered,
        100.0 * came.better,
        100.0 * came.worse,
        came.rounds
    );
    let slack = slack(0.95);
    assert!((0.93 - slack..=0.97 + slack).contains(&came.covered), "{scenario} at {ratio}: {}", came.covered);
}

/// All requirements for one kind of path.
fn scenario(name: &str, seed: u64, path: impl Fn(SplitMix64) -> Path) {
    let all = |_: &mut SplitMix64| usize::MAX;
    for (i, tolerance) in [0.0, TOLERANCE].into_iter().enumerate() {
        let same = simulate(&rule(tolerance), 1.0, seed + i as u64, all, &path);
        contract(name, tolerance, 1.0, &same);
        let called = same.better + same.worse;
        assert!(called <= 0.05 + slack(0.05), "{name}: A against A called different in {called}");
    }
    let less = simulate(&rule(TOLERANCE), 1.0 - CHANGE, seed + 2, all, &path);
    contract(name, TOLERANCE, 1.0 - CHANGE, &less);
    assert!(less.worse >= 0.9 - slack(0.9), "{name}: 3 % less found in {}", less.worse);
    let more = simulate(&rule(TOLERANCE), 1.0 / (1.0 - CHANGE), seed + 3, all, &path);
    contract(name, TOLERANCE, 1.0 / (1.0 - CHANGE), &more);
    assert!(more.better >= 0.9 - slack(0.9), "{name}: 3 % more found in {}", more.better);
}

fn normal(noise: f64) -> impl Fn(SplitMix64) -> Path {
    move |mut random| Box::new(move || noise * random.normal())
}

/// A first-order autoregression of standard deviation `noise`: neighbours in time resemble each other.
fn correlated(phi: f64, noise: f64) -> impl Fn(SplitMix64) -> Path {
    move |mut random| {
        let mut state = random.normal();
        Box::new(move || {
            state = phi * state + (1.0 - phi * phi).sqrt() * random.normal();
            noise * state
        })
    }
}

#[test]
fn independent_noise() {
    for (i, noise) in [0.005, 0.01, 0.02, 0.025].into_iter().enumerate() {
        scenario(&format!("independent, noise {} %", 100.0 * noise), 100 + 10 * i as u64, normal(noise));
    }
}

#[test]
fn drift() {
    // A loss of 0.5 % with each trial, more than 40 % over a comparison, and a slow wave of 10 %.
    scenario("noise 2 %, steady loss of 0.5 % a trial", 200, |mut random| {
        let mut trial = 0.0;
        Box::new(move || {
            trial += 1.0;
            0.02 * random.normal() - 0.005 * trial
        })
    });
    scenario("noise 1.5 %, wave of 10 % over 40 trials", 210, |mut random| {
        let mut angle = std::f64::consts::TAU * random.uniform();
        Box::new(move || {
            angle += std::f64::consts::TAU / 40.0;
            0.015 * random.normal() + 0.1 * angle.sin()
        })
    });
}

#[test]
fn autocorrelated_noise() {
    scenario("AR(1) 0.5, 2.5 %", 300, correlated(0.5, 0.025));
    scenario("AR(1) 0.9, 2.5 %", 310, correlated(0.9, 0.025));
}

#[test]
fn heavy_tails() {
    // Student's t of 3 degrees of freedom: outliers as on a busy machine.
    scenario("Student t of 3 degrees of freedom, scale 1 %", 400, |mut random| {
        Box::new(move || {
            let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
            0.01 * random.normal() / (squares / 3.0).sqrt()
        })
    });
}

#[test]
fn a_budget_that_ends_between_analyses() {
    let anywhere = |random: &mut SplitMix64| 6 + random.below(21);
    for (i, tolerance) in [0.0, TOLERANCE].into_iter().enumerate() {
        let came = simulate(&rule(tolerance), 1.0, 500 + i as u64, anywhere, normal(0.02));
        contract("independent, noise 2 %, budget ends anywhere", tolerance, 1.0, &came);
        assert!(came.better + came.worse <= 0.05 + slack(0.05));
    }
}

#[test]
fn a_fixed_number_of_pairs() {
    for (i, pairs) in [14, 24, 60].into_iter().enumerate() {
        let rule = Stopping { min_trials: pairs, max_trials: pairs, ..rule(0.0) };
        let came = simulate(&rule, 1.0, 600 + i as u64, |_| usize::MAX, normal(0.02));
        contract(&format!("independent, noise 2 %, {pairs} pairs"), 0.0, 1.0, &came);
        // A single analysis spends all of the error: A against A is reported as different in 5 %, the complement of its coverage.
        assert!((came.better + came.worse + came.covered - 1.0).abs() < 1e-9, "{pairs} pairs");
    }
}

/// Why A and B alternate in random order: the same drift with A first and then B.
#[test]
fn without_alternation_drift_looks_like_an_effect() {
    let mut random = SplitMix64::new(700);
    let called = (0..runs())
        .filter(|_| {
            let values: Vec<f64> = (0..32).map(|trial| 0.01 * random.normal() - 0.002 * f64::from(trial)).collect();
            let difference = analysis::stats::MeanDifference::new(&values[..16], &values[16..]).expect("two samples");
            !difference.interval(0.95).expect("an interval").contains(0.0)
        })
        .count() as f64;
    assert!(called > 0.9 * runs() as f64, "{called}");
}

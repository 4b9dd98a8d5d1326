//! The contract of the stop rule: the reported 95 % interval covers the truth in 93 % to 98 % of runs, with the stop rule in effect.
//! Every scenario is 2,000 simulated runs with fixed seeds. docs/manual/statistics.md quotes the table that
//! `cargo test -p throughline-analysis --test all coverage:: -- --nocapture --test-threads 1` prints.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use analysis::stats::{ConfidenceInterval, Decision, Sequential, mean, samples_interval, t_interval};
use model::SplitMix64;
use model::Stopping;

const RUNS: u64 = 2_000;
const TRUTH: f64 = 1.0;

/// The result of a scenario.
struct Coverage {
    /// Share of runs whose reported interval covers the truth.
    covered: f64,
    /// Share of runs that reached the target.
    converged: f64,
    /// Mean number of values taken.
    taken: f64,
    /// Share of runs that stopped at the first analysis.
    at_first: f64,
}

/// One run of the rule as the coordinator does it: a decision after each value, until it says stop or `budget` values are taken. Returns
/// the reported interval, whether the target was reached, and the number of values.
fn run(sequential: &Sequential, budget: usize, mut next: impl FnMut() -> f64) -> (ConfidenceInterval, bool, usize) {
    let mut values = Vec::new();
    loop {
        if values.len() >= budget {
            return (sequential.final_estimate(&values).expect("enough values").interval, false, values.len());
        }
        values.push(next());
        match sequential.decide(&values) {
            Decision::Continue => {}
            Decision::Converged(interval) => return (interval, true, values.len()),
            Decision::Exhausted(interval) => return (interval.expect("enough values"), false, values.len()),
        }
    }
}

/// Runs the rule often. `source` makes one run's values, and [`TRUTH`] is what they are noise around.
fn simulate<S: FnMut() -> f64>(
    rule: &Stopping,
    seed: u64,
    budget: impl Fn(&mut SplitMix64) -> usize,
    source: impl Fn(SplitMix64) -> S,
) -> Coverage {
    judge(rule, seed, |sequential, seeds| {
        let budget = budget(seeds);
        let (interval, converged, taken) = run(sequential, budget, source(SplitMix64::new(seeds.next_u64())));
        (interval.contains(TRUTH), converged, taken)
    })
}

/// The shares over [`RUNS`] runs, of which `one` tells whether the truth was covered, whether the target was reached, and the number of
/// values.
fn judge(rule: &Stopping, seed: u64, one: impl Fn(&Sequential, &mut SplitMix64) -> (bool, bool, usize)) -> Coverage {
    let sequential = Sequential::new(rule);
    let mut seeds = SplitMix64::new(seed);
    let (mut covered, mut converged, mut taken, mut at_first) = (0u32, 0u32, 0usize, 0u32);
    for _ in 0..RUNS {
        let (covers, converges, values) = one(&sequential, &mut seeds);
        covered += u32::from(covers);
        converged += u32::from(converges);
        taken += values;
        at_first += u32::from(converges && values == sequential.analyses()[0]);
    }
    let share = |count: u32| f64::from(count) / RUNS as f64;
    Coverage {
        covered: share(covered),
        converged: share(converged),
        taken: taken as f64 / RUNS as f64,
        at_first: share(at_first),
    }
}

/// One line of the table.
fn print(scenario: &str, noise: f64, coverage: &Coverage) {
    println!(
        "| {scenario} | {} % | {:.1} % | {:.0} % | {:.0} |",
        (noise * 1000.0).round() / 10.0,
        100.0 * coverage.covered,
        100.0 * coverage.converged,
        coverage.taken
    );
}

fn contract(scenario: &str, noise: f64, coverage: &Coverage) {
    print(scenario, noise, coverage);
    assert!((0.93..=0.98).contains(&coverage.covered), "{scenario} at {noise}: {}", coverage.covered);
}

fn no_budget(_: &mut SplitMix64) -> usize {
    usize::MAX
}

/// A stationary first-order autoregression with mean 0 and variance 1.
struct Autoregression {
    phi: f64,
    state: f64,
}

impl Autoregression {
    fn new(phi: f64, random: &mut SplitMix64) -> Self {
        Self { phi, state: random.normal() }
    }

    fn next(&mut self, random: &mut SplitMix64) -> f64 {
        self.state = self.phi * self.state + (1.0 - self.phi * self.phi).sqrt() * random.normal();
        self.state
    }
}

fn independent(noise: f64) -> impl Fn(SplitMix64) -> Box<dyn FnMut() -> f64> {
    move |mut random| Box::new(move || TRUTH + noise * random.normal())
}

fn correlated(phi: f64, noise: f64) -> impl Fn(SplitMix64) -> Box<dyn FnMut() -> f64> {
    move |mut random| {
        let mut series = Autoregression::new(phi, &mut random);
        Box::new(move || TRUTH + noise * series.next(&mut random))
    }
}

/// A trial's value is the mean of 20 correlated observations on its own connection, plus that connection's own offset; the
/// two parts have equal variance and together a standard deviation of `noise`.
fn trials_of_correlated_observations(phi: f64, noise: f64) -> impl Fn(SplitMix64) -> Box<dyn FnMut() -> f64> {
    const OBSERVATIONS: usize = 20;
    let variance_of_mean: f64 =
        (0..OBSERVATIONS).flat_map(|i| (0..OBSERVATIONS).map(move |j| phi.powi(i.abs_diff(j) as i32))).sum::<f64>()
            / (OBSERVATIONS * OBSERVATIONS) as f64;
    let part = noise * 0.5f64.sqrt();
    let within = part / variance_of_mean.sqrt();
    move |mut random| {
        Box::new(move || {
            let connection = part * random.normal();
            let mut series = Autoregression::new(phi, &mut random);
            let sum: f64 = (0..OBSERVATIONS).map(|_| series.next(&mut random)).sum();
            TRUTH + connection + within * sum / OBSERVATIONS as f64
        })
    }
}

/// Trials with a slow wave from pass to pass: a first-order autoregression that carries `share` of the variance.
fn drifting(phi: f64, share: f64, noise: f64) -> impl Fn(SplitMix64) -> Box<dyn FnMut() -> f64> {
    move |mut random| {
        let mut wave = Autoregression::new(phi, &mut random);
        Box::new(move || {
            let slow = share.sqrt() * wave.next(&mut random);
            TRUTH + noise * (slow + (1.0 - share).sqrt() * random.normal())
        })
    }
}

/// A path whose level moves all the time: in a second its correlation falls to `phi`. A trial sees its mean over a second, plus the offset
/// of its connection, which has the same variance; together they have a standard deviation of `noise`. Trials are ten milliseconds apart.
/// Returns whether the interval covers the path's mean over the whole session, from its first trial to its last.
fn in_a_moving_session(sequential: &Sequential, phi: f64, noise: f64, mut random: SplitMix64) -> (bool, bool, usize) {
    const STEPS: usize = 100;
    let part = noise * 0.5f64.sqrt();
    let mut level = Autoregression::new(phi.powf(1.0 / STEPS as f64), &mut random);
    let (mut all, mut steps) = (0.0, 0usize);
    let result = run(sequential, usize::MAX, || {
        // The pause is one step.
        let pause = level.next(&mut random);
        let trial: f64 = (0..STEPS).map(|_| level.next(&mut random)).sum();
        all += if steps == 0 { trial } else { pause + trial };
        steps += if steps == 0 { STEPS } else { STEPS + 1 };
        TRUTH + part * (trial / STEPS as f64 + random.normal())
    });
    let truth = TRUTH + part * all / steps as f64;
    (result.0.contains(truth), result.1, result.2)
}

/// Log-normal noise with mean 1: `sigma` is the standard deviation of the logarithm.
fn skewed(sigma: f64) -> impl Fn(SplitMix64) -> Box<dyn FnMut() -> f64> {
    move |mut random| Box::new(move || (sigma * random.normal() - sigma * sigma / 2.0).exp())
}

#[test]
fn independent_trials() {
    let rule = Stopping::default();
    for (i, noise) in
        [0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.2].into_iter().enumerate()
    {
        let coverage = simulate(&rule, 100 + i as u64, no_budget, independent(noise));
        contract("independent", noise, &coverage);
        // The intervals must not be wider than necessary: quiet series end at the first analysis, noisy ones never, and those
        // in between take about as many values as a 2 % interval needs: (1.96 * noise / 0.02)^2.
        match noise {
            n if n <= 0.002 => assert!(coverage.at_first > 0.95, "{noise}: {}", coverage.at_first),
            n if n <= 0.01 => assert!(coverage.taken < 6.0, "{noise}: {}", coverage.taken),
            n if n <= 0.05 => {
                let ideal = (1.96 * noise / 0.02).powi(2);
                assert!(coverage.converged > 0.95 && coverage.taken < 1.5 * ideal + 6.0, "{noise}: {}", coverage.taken);
            }
            n if n >= 0.2 => assert!(coverage.converged < 0.01 && coverage.taken > 63.0),
            _ => {}
        }
    }
}

#[test]
fn trials_that_are_means_of_correlated_observations() {
    let rule = Stopping::default();
    for (i, phi) in [0.3, 0.5, 0.8].into_iter().enumerate() {
        for (j, noise) in [0.005, 0.02, 0.04, 0.08].into_iter().enumerate() {
            let seed = 200 + 10 * i as u64 + j as u64;
            let coverage = simulate(&rule, seed, no_budget, trials_of_correlated_observations(phi, noise));
            contract(&format!("observations AR(1) {phi}, connection effect"), noise, &coverage);
            assert!(noise > 0.01 || coverage.taken < 6.0);
        }
    }
}

#[test]
fn long_autocorrelated_series() {
    // The raw series itself is judged: from 100 values on, up to 3200.
    let rule = Stopping { min_trials: 100, max_trials: 3_200, ..Stopping::default() };
    for (i, phi) in [0.3, 0.5, 0.8].into_iter().enumerate() {
        for (j, noise) in [0.02, 0.05, 0.1, 0.2, 0.6].into_iter().enumerate() {
            let coverage = simulate(&rule, 300 + 10 * i as u64 + j as u64, no_budget, correlated(phi, noise));
            contract(&format!("series AR(1) {phi}, 100 to 3200"), noise, &coverage);
            match noise {
                // (1.96 * noise / 0.02)^2 * (1 + phi) / (1 - phi) values are needed; analyses come at factors of 1.6 from 100 on.
                n if n <= 0.1 => {
                    let ideal = (1.96 * n / 0.02).powi(2) * (1.0 + phi) / (1.0 - phi);
                    assert!(
                        coverage.converged > 0.97 && coverage.taken < 1.7 * ideal + 100.0,
                        "{phi}: {}",
                        coverage.taken
                    );
                }
                n if n >= 0.6 => assert!(coverage.converged < 0.05),
                _ => {}
            }
        }
    }
}

#[test]
fn a_slow_wave_under_white_noise_in_a_long_series() {
    // Lag-1 correlation is only 0.27, but the mean varies 6.4 times as much as that of independent values.
    let rule = Stopping { min_trials: 100, max_trials: 3_200, ..Stopping::default() };
    let coverage = simulate(&rule, 350, no_budget, drifting(0.9, 0.3, 0.4));
    contract("series with a wave AR(1) 0.9, 30 % of variance, 100 to 3200", 0.4, &coverage);
}

#[test]
fn a_mild_wave_from_pass_to_pass() {
    let rule = Stopping::default();
    for (j, noise) in [0.005, 0.02, 0.04, 0.08].into_iter().enumerate() {
        let coverage = simulate(&rule, 400 + j as u64, no_budget, drifting(0.5, 0.05, noise));
        contract("pass-to-pass AR(1) 0.5, 5 % of variance", noise, &coverage);
    }
}

/// What is estimated is the path in this session: what moves slower than the trials is part of it, and not an error.
#[test]
fn the_session_is_covered_however_slowly_its_path_moves() {
    let rule = Stopping::default();
    for (i, phi) in [0.3, 0.6, 0.9].into_iter().enumerate() {
        for (j, noise) in [0.005, 0.02, 0.04, 0.2].into_iter().enumerate() {
            let coverage = judge(&rule, 450 + 10 * i as u64 + j as u64, |sequential, seeds| {
                in_a_moving_session(sequential, phi, noise, SplitMix64::new(seeds.next_u64()))
            });
            print(&format!("the session's own mean, level AR(1) {phi}, connection effect"), noise, &coverage);
            assert!(coverage.covered >= 0.93, "{phi} at {noise}: {}", coverage.covered);
        }
    }
}

#[test]
fn a_budget_that_ends_between_analyses() {
    let rule = Stopping::default();
    for (j, noise) in [0.005, 0.02, 0.04, 0.2].into_iter().enumerate() {
        let coverage = simulate(&rule, 500 + j as u64, |random| 6 + random.below(58), independent(noise));
        contract("independent, budget ends anywhere", noise, &coverage);
    }
}

#[test]
fn other_rules_hold_their_own_confidence() {
    for (confidence, low, high) in [(0.9, 0.88, 0.96), (0.99, 0.983, 0.998)] {
        for (j, noise) in [0.005, 0.03, 0.05, 0.2].into_iter().enumerate() {
            let rule = Stopping { confidence, max_trials: 40, target: 0.03, ..Stopping::default() };
            let coverage = simulate(&rule, 600 + j as u64, no_budget, independent(noise));
            print(&format!("independent, {} % requested", 100.0 * confidence), noise, &coverage);
            assert!((low..=high).contains(&coverage.covered), "{confidence} at {noise}: {}", coverage.covered);
        }
    }
}

/// A single trial: its samples follow each other, the closer the more alike. 5 s to a minute of tenths of a second.
#[test]
fn the_samples_of_a_single_trial() {
    for samples in [50, 100, 200, 590] {
        for (i, phi) in [0.0, 0.3, 0.6, 0.8].into_iter().enumerate() {
            let mut seeds = SplitMix64::new(1_100 + 10 * samples as u64 + i as u64);
            let covers = |_: &u64| {
                let mut source = correlated(phi, 0.1)(SplitMix64::new(seeds.next_u64()));
                let values: Vec<f64> = (0..samples).map(|_| source()).collect();
                samples_interval(&values, 0.95).expect("enough samples").interval.contains(TRUTH)
            };
            let covered = (0..RUNS).filter(covers).count() as f64 / RUNS as f64;
            println!("| {samples} samples within a trial, AR(1) {phi} | 10 % | {:.1} % | | |", 100.0 * covered);
            assert!((0.93..=0.98).contains(&covered), "{samples} samples with {phi}: {covered}");
        }
    }
}

/// Not part of the contract: the limits of the rule. The bounds only detect regressions.
#[test]
fn limits_that_the_manual_states() {
    let rule = Stopping::default();
    for (j, (sigma, floor)) in
        [(0.02, 0.93), (0.05, 0.93), (0.2, 0.93), (0.5, 0.91), (1.0, 0.82)].into_iter().enumerate()
    {
        let coverage = simulate(&rule, 700 + j as u64, no_budget, skewed(sigma));
        print("log-normal", sigma, &coverage);
        assert!(coverage.covered >= floor, "log-normal {sigma}: {}", coverage.covered);
    }
    for (i, (phi, floors)) in
        [(0.3, [0.87, 0.87, 0.93]), (0.5, [0.77, 0.82, 0.93]), (0.8, [0.5, 0.6, 0.93])].into_iter().enumerate()
    {
        for (j, noise) in [0.005, 0.04, 0.2].into_iter().enumerate() {
            let coverage = simulate(&rule, 800 + 10 * i as u64 + j as u64, no_budget, correlated(phi, noise));
            print(&format!("trial values themselves AR(1) {phi}"), noise, &coverage);
            assert!(coverage.covered >= floors[j], "AR(1) {phi} at {noise}: {}", coverage.covered);
        }
    }
    for (j, noise) in [0.005, 0.04, 0.2].into_iter().enumerate() {
        let coverage = simulate(&rule, 900 + j as u64, no_budget, drifting(0.8, 0.1, noise));
        print("pass-to-pass AR(1) 0.8, 10 % of variance", noise, &coverage);
        assert!(coverage.covered >= 0.86, "{noise}: {}", coverage.covered);
    }
    let long = Stopping { min_trials: 100, max_trials: 3_200, ..Stopping::default() };
    let coverage = simulate(&long, 950, no_budget, drifting(0.9, 0.3, 0.05));
    print("series with a wave AR(1) 0.9, 30 % of variance, 100 to 3200", 0.05, &coverage);
    assert!(coverage.covered >= 0.75, "{}", coverage.covered);
}

/// Why the rule is needed: the coverage of a plain interval that is checked after every trial from the third on.
#[test]
fn stopping_when_a_plain_interval_first_looks_narrow_covers_too_little() {
    let (mut covered, mut at_three, mut covered_at_three) = (0u32, 0u32, 0u32);
    let mut seeds = SplitMix64::new(1_000);
    for _ in 0..RUNS {
        let mut next = independent(0.03)(SplitMix64::new(seeds.next_u64()));
        let mut values = vec![next(), next()];
        let interval = loop {
            values.push(next());
            let interval = t_interval(&values, 0.95).expect("three values");
            if interval.relative_half_width(mean(&values).expect("three values")) <= 0.02 || values.len() == 64 {
                break interval;
            }
        };
        let held = u32::from(interval.contains(TRUTH));
        covered += held;
        at_three += u32::from(values.len() == 3);
        covered_at_three += if values.len() == 3 { held } else { 0 };
    }
    let all = f64::from(covered) / RUNS as f64;
    let three = f64::from(covered_at_three) / f64::from(at_three);
    println!(
        "| plain t checked from 3 trials on | 3 % | {:.1} % ({:.1} % of those that stop at 3) |",
        100.0 * all,
        100.0 * three
    );
    assert!(all < 0.92 && three < 0.7, "{all}, {three}");
}

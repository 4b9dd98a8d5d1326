//! The contract of the search behind `thru advise`: a planted optimum is found in at least 90 % of runs, and if nothing helps a gain
//! is reported in at most 5 %. The trials are simulated; the search and its confirmation are the real ones.
//!
//! `make truth` takes 2,000 runs for each line (THRU_TRUTH_RUNS=2000) and prints the table that docs/manual/statistics.md
//! quotes. Without that variable the tests take 200 runs and widen the bounds by three standard errors.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use analysis::advice::{Confirmation, Confirmed, Search, SearchRule, TrialScore};
use model::SplitMix64;

/// Runs of a quick test, and of the contract.
const RUNS: [u64; 2] = [200, 2_000];
/// Trials of a confirmation.
const FRESH: u32 = 200;

/// Gains of levels, as logarithms, by dimension.
type Planted<'a> = &'a [&'a [f64]];

struct Sample {
    /// Share of runs whose best combination is within the smallest effect of the planted one.
    found: f64,
    /// Share of runs with a confirmed gain.
    claimed: f64,
    /// Share of runs with a confirmed change that does not gain.
    false_claims: f64,
    trials: f64,
}

fn runs() -> u64 {
    std::env::var("THRU_TRUTH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS[0])
}

fn slack(p: f64) -> f64 {
    let error = |runs: u64| (p * (1.0 - p) / runs as f64).sqrt();
    if runs() < RUNS[1] { 3.0 * error(runs()) } else { 0.0 }
}

/// Runs complete searches over a path with `noise`, which loses `drift` with each trial.
fn simulate(planted: Planted<'_>, noise: f64, drift: f64, seed: u64) -> Sample {
    let mut seeds = SplitMix64::new(seed);
    let most: f64 = planted.iter().map(|gains| gains.iter().copied().fold(0.0, f64::max)).sum();
    let levels: Vec<usize> = planted.iter().map(|gains| gains.len()).collect();
    let of = |at: &[usize]| -> f64 { at.iter().zip(planted).map(|(level, gains)| gains[*level]).sum() };
    let (mut found, mut claimed, mut wrong, mut trials) = (0u32, 0u32, 0u32, 0u64);
    for _ in 0..runs() {
        let rule = SearchRule { min_effect: 0.01, min_goodput: None, seed: seeds.next_u64() };
        let mut random = SplitMix64::new(seeds.next_u64());
        let mut taken = 0u64;
        let mut score = |at: &Vec<usize>| {
            taken += 1;
            Some(TrialScore { score: of(at) + noise * random.normal() - drift * taken as f64, goodput: None })
        };
        let mut search = Search::new(&levels, rule);
        while let Some(round) = search.next_round() {
            let scores: Vec<Option<TrialScore>> = round.trials.iter().map(&mut score).collect();
            search.record(&scores);
        }
        let mut judged: Vec<Confirmed> = Vec::new();
        if let Some(mut fresh) = Confirmation::new(&search, FRESH) {
            while let Some(round) = fresh.next_round() {
                let [one, two, three, four] = &round.trials;
                fresh.record([score(one), score(two), score(three), score(four)]);
            }
            judged = fresh.judged();
        }
        found += u32::from(of(search.best()) >= most - 1.01f64.ln());
        claimed += u32::from(judged.iter().any(|one| one.confirmed));
        let gains = |one: &Confirmed| match one.dimension {
            Some(at) => planted[at][search.best()[at]],
            None => of(search.best()),
        };
        wrong += u32::from(judged.iter().any(|one| one.confirmed && gains(one) <= 0.0));
        trials += taken;
    }
    let share = |count: u32| f64::from(count) / runs() as f64;
    Sample {
        found: share(found),
        claimed: share(claimed),
        false_claims: share(wrong),
        trials: trials as f64 / runs() as f64,
    }
}

fn print(scenario: &str, noise: f64, came: &Sample) {
    println!(
        "| {scenario} | {} % | {:.1} % | {:.1} % | {:.1} % | {:.0} |",
        100.0 * noise,
        100.0 * came.found,
        100.0 * came.claimed,
        100.0 * came.false_claims,
        came.trials
    );
}

const NOTHING: Planted<'static> = &[&[0.0; 6], &[0.0; 2], &[0.0; 4], &[0.0; 3], &[0.0; 5], &[0.0; 2]];

#[test]
fn a_planted_optimum_is_found() {
    // A window of six levels that saturates, another change of 10 %, and dimensions without effect or with a loss.
    let window: &[f64] = &[0.0, 0.6, 1.1, 1.15, 1.15, 1.15];
    let planted: Planted<'_> =
        &[window, &[0.0, -0.05], &[0.0, 0.1, 0.02, -0.2], &[0.0; 3], &[0.0, -0.01, 0.0, -0.3, 0.0]];
    for (i, noise) in [0.005, 0.01, 0.02].into_iter().enumerate() {
        let came = simulate(planted, noise, 0.0005, 10 + i as u64);
        print("window and one change of 10 %, drift 0.05 % a trial", noise, &came);
        assert!(came.found >= 0.9 - slack(0.9), "{noise}: found in {}", came.found);
        assert!(came.claimed >= 0.9 - slack(0.9), "{noise}: claimed in {}", came.claimed);
        assert!(came.false_claims <= 0.05 + slack(0.05), "{noise}: false claims in {}", came.false_claims);
    }
}

#[test]
fn a_change_that_only_helps_with_another_one_is_found() {
    // A gain of 5 % is twice the noise.
    let planted: Planted<'_> = &[&[0.0, 0.05, -0.02], &[0.0, 0.0], &[0.0, 0.05]];
    let came = simulate(planted, 0.02, 0.0, 20);
    print("two changes of 5 %", 0.02, &came);
    assert!(came.found >= 0.9 - slack(0.9), "found in {}", came.found);
    assert!(came.false_claims <= 0.05 + slack(0.05), "false claims in {}", came.false_claims);
}

#[test]
fn if_nothing_helps_no_gain_is_reported() {
    for (i, (noise, drift)) in [(0.005, 0.0), (0.02, 0.0), (0.02, 0.002), (0.1, 0.0)].into_iter().enumerate() {
        let came = simulate(NOTHING, noise, drift, 30 + i as u64);
        print(&format!("nothing helps, drift {} % a trial", 100.0 * drift), noise, &came);
        assert!(came.claimed <= 0.05 + slack(0.05), "{noise}: claimed in {}", came.claimed);
    }
}

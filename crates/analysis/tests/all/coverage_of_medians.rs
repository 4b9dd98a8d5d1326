//! The contract of a curve's points: the reported 95 % interval of the median of the legs covers it in at least 93 % of runs, with the
//! curve's analyses in effect, whatever the noise. Every scenario is 2,000 simulated runs with fixed seeds. docs/manual/statistics.md
//! quotes the table that `cargo test -p throughline-analysis --test all coverage_of_medians:: -- --nocapture --test-threads 1` prints.

#![allow(clippy::print_stdout, reason = "the table")]

use analysis::outcome::point;
use analysis::stats::{mean, median_estimate, t_interval};
use model::{SplitMix64, Stopping};

const RUNS: u32 = 2_000;

/// Gives the next leg from random numbers and a state.
type Source = Box<dyn Fn(&mut SplitMix64, &mut f64) -> f64>;

/// A source of legs and their true median.
struct Noise {
    name: &'static str,
    truth: f64,
    next: Source,
}

fn normal(noise: f64) -> Noise {
    Noise { name: "independent", truth: 1.0, next: Box::new(move |random, _| (noise * random.normal()).exp()) }
}

/// A first-order autoregression; the state is its last value.
fn correlated(name: &'static str, phi: f64, noise: f64) -> Noise {
    let next = move |random: &mut SplitMix64, state: &mut f64| {
        *state =
            if *state == 0.0 { random.normal() } else { phi * *state + (1.0 - phi * phi).sqrt() * random.normal() };
        (noise * *state).exp()
    };
    Noise { name, truth: 1.0, next: Box::new(next) }
}

/// One leg in ten takes 3 to 10 times as long. 0.9 of a normal distribution reach one half at 0.1397 standard deviations.
fn contaminated(noise: f64) -> Noise {
    let next = move |random: &mut SplitMix64, _: &mut f64| {
        let disturbed = if random.below(10) == 0 { 3.0 + 7.0 * random.below(1000) as f64 / 1000.0 } else { 1.0 };
        disturbed * (noise * random.normal()).exp()
    };
    Noise { name: "one leg in ten 3 to 10 times", truth: (0.1397 * noise).exp(), next: Box::new(next) }
}

/// Four legs in ten take half as long again. 0.6 of a normal distribution reach one half at 0.9674 standard deviations.
fn bimodal(noise: f64) -> Noise {
    let next = move |random: &mut SplitMix64, _: &mut f64| {
        let mode = if random.below(10) < 4 { 1.5 } else { 1.0 };
        mode * (noise * random.normal()).exp()
    };
    Noise { name: "two modes, 60 and 40 %", truth: (0.9674 * noise).exp(), next: Box::new(next) }
}

/// Student's t with two degrees of freedom, whose variance is infinite.
fn heavy(noise: f64) -> Noise {
    let next = move |random: &mut SplitMix64, _: &mut f64| {
        let squares = random.normal().powi(2) + random.normal().powi(2);
        (noise * random.normal() / (squares / 2.0).sqrt()).exp()
    };
    Noise { name: "heavy tails (t, 2 degrees of freedom)", truth: 1.0, next: Box::new(next) }
}

/// Shares of runs whose interval covers the truth, and that reach the target; median half width and mean number of legs.
struct Covered {
    covered: f64,
    converged: f64,
    width: f64,
    legs: f64,
}

fn simulate(noise: &Noise, seed: u64) -> Covered {
    let rule = point::analyses(&Stopping::default());
    let mut seeds = SplitMix64::new(seed);
    let (mut covered, mut converged, mut legs) = (0_u32, 0_u32, 0);
    let mut widths = Vec::new();
    for _ in 0..RUNS {
        let (mut random, mut state) = (SplitMix64::new(seeds.next_u64()), 0.0);
        let most = rule.analyses().last().copied().unwrap_or(64);
        let values: Vec<f64> = (0..most).map(|_| (noise.next)(&mut random, &mut state)).collect();
        let stop = rule.analyses().iter().copied().find(|n| point::is_converged(&values[..*n], None, &rule));
        converged += u32::from(stop.is_some());
        let taken = &values[..stop.unwrap_or(most)];
        legs += taken.len();
        let Some(found) = median_estimate(taken, rule.confidence_at(taken.len())) else { continue };
        covered += u32::from(found.interval.contains(noise.truth));
        widths.push(found.interval.relative_half_width(found.median));
    }
    widths.sort_by(f64::total_cmp);
    Covered {
        covered: f64::from(covered) / f64::from(RUNS),
        converged: f64::from(converged) / f64::from(RUNS),
        width: widths[widths.len() / 2],
        legs: legs as f64 / f64::from(RUNS),
    }
}

#[test]
fn the_interval_of_the_median_covers_it_under_every_noise() {
    let mut seed = 0;
    for noise in [0.005, 0.03, 0.1] {
        let sources = [
            normal(noise),
            correlated("AR(1) 0.3", 0.3, noise),
            correlated("AR(1) 0.6", 0.6, noise),
            contaminated(noise),
            bimodal(noise),
            heavy(noise),
        ];
        for source in sources {
            seed += 1;
            let found = simulate(&source, seed);
            println!(
                "| {} | {} % | {:.1} % | {:.0} % | ±{:.2} % | {:.0} |",
                source.name,
                noise * 100.0,
                100.0 * found.covered,
                100.0 * found.converged,
                100.0 * found.width,
                found.legs
            );
            assert!(found.covered >= 0.93, "{} at {noise}: {}", source.name, found.covered);
            assert!(noise > 0.005 || source.name.contains("modes") || found.converged > 0.95, "{}", source.name);
        }
    }
}

/// Why curves do not use the mean: one disturbed leg in ten makes its interval useless.
#[test]
fn the_interval_of_a_mean_is_many_times_as_wide_if_one_leg_in_ten_is_disturbed() {
    let (source, mut random) = (contaminated(0.03), SplitMix64::new(7));
    let (mut of_mean, mut of_median) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let values: Vec<f64> = (0..64).map(|_| (source.next)(&mut random, &mut 0.0)).collect();
        let width = t_interval(&values, 0.95).zip(mean(&values)).map(|(found, mean)| found.relative_half_width(mean));
        of_mean.extend(width);
        of_median.extend(median_estimate(&values, 0.95).map(|found| found.interval.relative_half_width(found.median)));
    }
    let typical = |mut widths: Vec<f64>| {
        widths.sort_by(f64::total_cmp);
        widths[widths.len() / 2]
    };
    let (mean, median) = (typical(of_mean), typical(of_median));
    println!(
        "| one leg in ten 3 to 10 times, 64 legs | mean ±{:.1} % | median ±{:.1} % |",
        100.0 * mean,
        100.0 * median
    );
    assert!(mean > 10.0 * median, "{mean} and {median}");
}

//! Why estimates use Student's interval and not a bootstrap: with few values the coverage of the percentile bootstrap is too low.
//! docs/manual/statistics.md quotes what this prints with `--nocapture`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use analysis::stats::{bootstrap_interval, mean, t_interval};
use model::SplitMix64;
use model::median;

#[test]
fn student_covers_at_small_counts_where_the_bootstrap_does_not() {
    const RUNS: u32 = 2_000;
    for (n, most_bootstrap) in [(6usize, 0.90), (15, 0.945)] {
        let mut random = SplitMix64::new(42);
        let (mut student, mut bootstrap, mut of_median) = (0u32, 0u32, 0u32);
        for run in 0..RUNS {
            let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            student += u32::from(t_interval(&values, 0.95).unwrap().contains(0.0));
            let seed = u64::from(run);
            bootstrap += u32::from(bootstrap_interval(&values, 0.95, seed, 300, mean).unwrap().contains(0.0));
            of_median += u32::from(bootstrap_interval(&values, 0.95, seed, 300, median).unwrap().contains(0.0));
        }
        let share = |count: u32| f64::from(count) / f64::from(RUNS);
        println!(
            "n {n}: t {:.3}, bootstrap mean {:.3}, bootstrap median {:.3}",
            share(student),
            share(bootstrap),
            share(of_median)
        );
        assert!((0.94..=0.96).contains(&share(student)));
        assert!(share(bootstrap) < most_bootstrap, "{}", share(bootstrap));
    }
}

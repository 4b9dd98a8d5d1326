//! The knee over the number of senders: where their common goodput stops rising, and whether it falls.

use crate::stats::{MeanDifference, holm, mean};

/// A higher goodput counts as a rise from this ratio on.
const RISE: f64 = 1.05;
/// A lower one counts as a fall from this ratio of the higher one to it on.
const FALL: f64 = 1.25;
/// A fall to less than one half is a collapse.
const COLLAPSE: f64 = 2.0;

/// What the goodput does over rising numbers of senders, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knee {
    /// The first number after which the goodput is not significantly higher any more.
    pub knee: usize,
    /// The number with the highest goodput among those from the knee to the first fall.
    pub best: usize,
    /// Where it falls.
    pub fall: Option<Fall>,
    /// Where it is lower, and may be so only by the time between the starts of transfers.
    pub unclear: Option<Fall>,
}

/// A goodput that is significantly lower than that of fewer senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fall {
    /// The first such number.
    pub from: usize,
    /// The one with the lowest goodput.
    pub worst: usize,
    /// It is less than half of the highest one.
    pub collapse: bool,
}

/// The knee of `goodput`, which has the values of all rounds for each number of senders, ascending. Each number is compared with the
/// highest one after it (rise) and before it (fall), by Welch's test of the logarithms. p-values are corrected for the numbers among which
/// the highest one was chosen (Bonferroni), and over the comparisons (Holm).
/// `None` with fewer than two numbers, or with fewer than two rounds of one.
#[must_use]
pub(super) fn knee(goodput: &[Vec<f64>], confidence: f64) -> Option<Knee> {
    let logs: Vec<Vec<f64>> =
        goodput.iter().map(|rounds| rounds.iter().map(|value| value.max(1.0).ln()).collect()).collect();
    let means: Vec<f64> = logs.iter().map(|rounds| mean(rounds)).collect::<Option<_>>()?;
    if means.len() < 2 {
        return None;
    }
    let highest = |places: &mut dyn Iterator<Item = usize>| places.max_by(|a, b| means[*a].total_cmp(&means[*b]));
    let last = means.len() - 1;
    let rises = (0..last).map(|at| {
        let higher = MeanDifference::new(&logs[at], &logs[highest(&mut (at + 1..=last))?])?;
        Some((higher.p_above(0.0) * (last - at) as f64, higher.value))
    });
    let falls = (1..=last).map(|at| {
        let lower = MeanDifference::new(&logs[highest(&mut (0..at))?], &logs[at])?;
        Some((lower.p_below(0.0) * at as f64, -lower.value))
    });
    let rises = significant(&rises.collect::<Option<Vec<_>>>()?, RISE, confidence);
    let falls = significant(&falls.collect::<Option<Vec<_>>>()?, FALL, confidence);
    let knee = rises.iter().position(|rises| !rises).unwrap_or(last);
    let fallen: Vec<usize> = (1..=last).filter(|at| falls[at - 1]).collect();
    let fall = fallen.iter().copied().min_by(|a, b| means[*a].total_cmp(&means[*b])).map(|worst| Fall {
        from: fallen[0],
        worst,
        collapse: highest(&mut (0..worst)).is_some_and(|best| means[best] - means[worst] > COLLAPSE.ln()),
    });
    let end = fall.map_or(last, |fall| fall.from - 1);
    let best = highest(&mut (knee.min(end)..=end)).unwrap_or(end);
    Some(Knee { knee, best, fall, unclear: None })
}

/// Which of these p-values with logarithms of ratios are significant and at least `least`.
fn significant(tests: &[(f64, f64)], least: f64, confidence: f64) -> Vec<bool> {
    let corrected = holm(&tests.iter().map(|(p, _)| *p).collect::<Vec<_>>());
    corrected.iter().zip(tests).map(|(p, (_, ln))| *p <= 1.0 - confidence && *ln >= least.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    /// Rounds of these goodputs, which vary by `spread`.
    fn rounds(means: &[f64], spread: f64, rounds: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut random = SplitMix64::new(seed);
        let mut of = |mean: &f64| (0..rounds).map(|_| mean * (spread * random.normal()).exp()).collect();
        means.iter().map(&mut of).collect()
    }

    #[test]
    fn a_port_that_one_sender_fills_has_its_knee_there() {
        let found = knee(&rounds(&[94.0, 94.1, 94.0, 93.9], 0.003, 5, 1), 0.95).unwrap();
        assert_eq!((found.knee, found.fall), (0, None));
    }

    #[test]
    fn the_goodput_rises_to_the_knee_and_collapses_after_it() {
        let found = knee(&rounds(&[20.0, 40.0, 80.0, 94.0, 60.0, 12.0], 0.05, 5, 2), 0.95).unwrap();
        let fall = Some(Fall { from: 4, worst: 5, collapse: true });
        assert_eq!(found, Knee { knee: 3, best: 3, fall, unclear: None });
        let shallow = knee(&rounds(&[50.0, 94.0, 60.0], 0.02, 5, 3), 0.95).unwrap();
        assert_eq!(shallow.fall, Some(Fall { from: 2, worst: 2, collapse: false }));
    }

    #[test]
    fn a_fall_at_once_has_no_knee_before_it() {
        let found = knee(&rounds(&[94.0, 12.0, 90.0], 0.02, 5, 3), 0.95).unwrap();
        assert_eq!((found.best, found.fall.map(|fall| (fall.from, fall.worst))), (0, Some((1, 1))));
    }

    #[test]
    fn one_number_or_one_round_is_not_judged() {
        assert_eq!(knee(&[vec![1.0, 2.0]], 0.95), None);
        assert_eq!(knee(&[vec![94.0], vec![12.0]], 0.95), None);
        assert_eq!(knee(&[], 0.95), None);
    }

    #[test]
    fn even_goodput_falls_in_few_runs_of_a_hundred() {
        // The spread is that of the least ratio, so that the ratio keeps nothing out.
        let falls = |count: usize| {
            let of = |seed: &u64| knee(&rounds(&[94.0; 5], 0.25, count, 1_000 + seed), 0.95).unwrap().fall.is_some();
            (0..1_000).filter(of).count()
        };
        let counts = [3, 5, 10].map(falls);
        assert!(counts.iter().all(|count| *count <= 50), "{counts:?} of 1000 with 3, 5, 10 rounds");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_collapse_far_beyond_the_spread_is_always_found(
            seed: u64, steps in 2usize..7, ratio in 6.0f64..50.0, spread in 0.0f64..0.1,
        ) {
            let mut means = vec![94.0; steps];
            means[steps - 1] = 94.0 / ratio;
            let found = knee(&rounds(&means, spread, 5, seed), 0.95).unwrap();
            prop_assert_eq!(found.fall, Some(Fall { from: steps - 1, worst: steps - 1, collapse: true }));
        }
    }
}

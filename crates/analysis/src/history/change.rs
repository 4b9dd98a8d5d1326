//! Where the level of a series changed.
//!
//! Each value is first replaced by the median of itself and its neighbours, which removes single wild ones and keeps steps, and the series
//! is divided into pieces of one level ([`pieces`] with slopes of 0). A boundary is kept if the medians of the values at its sides differ by
//! [`LEAST`] or more, if four of five values lie on their side, and if it is significant: by Student's t on a robust scale of all values about their pieces, with the degrees of freedom of a
//! median absolute deviation, corrected (Bonferroni) for all series and all positions of a boundary. The least significant boundary is removed
//! first, and its pieces are joined.

use model::{ChangePoint, median};

use crate::stats::MeanDifference;
use crate::stats::changepoint::{MeasuredPoint, pieces};

/// Smallest change that is reported, as a ratio.
const LEAST: f64 = 1.1;
/// Fewest values at each side of a change, as [`pieces`] has it.
const LEAST_VALUES: usize = 3;
/// Standard deviation that is assumed at least, as a logarithm: half a percent.
const LEAST_SCALE: f64 = 0.005;
/// The median absolute deviation of normal values is their standard deviation over this.
const NORMAL: f64 = 1.4826;
/// A robust scale knows as much as a standard deviation of this share of the values.
const EFFICIENCY: f64 = 0.37;
/// The share of the values that lie on their side.
const MOST_OF: f64 = 0.8;
/// The variance of the median of normal values is this many times that of their mean.
const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// A part of a series with one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Its first value, by its place in the series.
    pub from: usize,
    /// The median of its values.
    pub value: f64,
}

/// The changes of one of `number` series that are looked at together. Their times are left at 0.
pub(super) fn changes(values: &[Option<f64>], number: usize, confidence: f64) -> Vec<ChangePoint> {
    let known: Vec<(usize, f64)> = values
        .iter()
        .enumerate()
        .filter_map(|(at, value)| Some((at, (*value).filter(|value| *value > 0.0)?.ln())))
        .collect();
    let logs: Vec<f64> = known.iter().map(|(_, log)| *log).collect();
    let Some(positions) = (logs.len() + 1).checked_sub(2 * LEAST_VALUES).filter(|positions| *positions > 0) else {
        return Vec::new();
    };
    let level = (1.0 - confidence) / (number.max(1) * positions) as f64;
    let mut cuts = boundaries(&logs);
    loop {
        let tests = tests(&logs, &cuts);
        let p = |test: &MeanDifference| (2.0 * test.p_above(0.0).min(test.p_below(0.0))).min(1.0);
        let weight = |(at, test): (usize, &MeanDifference)| {
            let sides = [&logs[cuts[at]..cuts[at + 1]], &logs[cuts[at + 1]..cuts[at + 2]]];
            if test.value.abs() < LEAST.ln() || !are_apart(sides) { 1.0 } else { p(test) }
        };
        let weakest = tests.iter().enumerate().map(weight).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        match weakest {
            Some((at, p)) if p > level => {
                cuts.remove(at + 1);
            }
            _ => {
                return tests
                    .iter()
                    .enumerate()
                    .filter_map(|(at, test)| {
                        let interval = test.interval(confidence)?;
                        let side = |from: usize, to: usize| Some(median(&logs[cuts[from]..cuts[to]])?.exp());
                        Some(ChangePoint {
                            pass: u32::try_from(known[cuts[at + 1]].0).ok()?,
                            at_unix_ns: 0,
                            before: side(at, at + 1)?,
                            after: side(at + 1, at + 2)?,
                            ratio: test.value.exp(),
                            low: interval.low.exp(),
                            high: interval.high.exp(),
                            confidence,
                        })
                    })
                    .collect();
            }
        }
    }
}

/// Whether most values of both sides lie on their side of the middle between the medians: two wild passes of three are no new level.
fn are_apart(sides: [&[f64]; 2]) -> bool {
    let medians = sides.map(|side| median(side).unwrap_or(0.0));
    let middle = (medians[0] + medians[1]) / 2.0;
    sides.into_iter().zip(medians).all(|(side, own)| {
        let on_side = side.iter().filter(|log| (**log - middle) * (own - middle) > 0.0).count();
        on_side as f64 >= MOST_OF * side.len() as f64
    })
}

/// The levels of a series between its `changes`.
#[must_use]
pub fn levels_of(values: &[Option<f64>], changes: &[ChangePoint]) -> Vec<Level> {
    let starts: Vec<usize> = std::iter::once(0).chain(changes.iter().map(|change| change.pass as usize)).collect();
    let ends = starts.iter().skip(1).copied().chain([values.len()]);
    let level = |(from, to): (usize, usize)| {
        let own: Vec<f64> = values.get(from..to)?.iter().flatten().copied().collect();
        Some(Level { from, value: median(&own)? })
    };
    starts.iter().copied().zip(ends).filter_map(level).collect()
}

/// The starts of the pieces, and the end.
fn boundaries(logs: &[f64]) -> Vec<usize> {
    let around = |at: usize| median(&logs[at.saturating_sub(1)..(at + 2).min(logs.len())]).unwrap_or(logs[at]);
    // Beside an edge there is one neighbour only.
    let smooth: Vec<f64> =
        (0..logs.len()).map(|at| if at == 0 || at + 1 == logs.len() { logs[at] } else { around(at) }).collect();
    let steps: Vec<f64> = logs.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
    let se = (NORMAL * median(&steps).unwrap_or(0.0) / std::f64::consts::SQRT_2).max(LEAST_SCALE);
    let points: Vec<MeasuredPoint> =
        smooth.iter().enumerate().map(|(x, y)| MeasuredPoint { x: x as f64, y: *y, se }).collect();
    pieces(&points, &(0.0..=0.0)).iter().map(|piece| piece.from).chain([logs.len()]).collect()
}

/// The difference of the levels at each boundary.
fn tests(logs: &[f64], cuts: &[usize]) -> Vec<MeanDifference> {
    let parts: Vec<&[f64]> = cuts.windows(2).map(|cut| &logs[cut[0]..cut[1]]).collect();
    let medians: Vec<f64> = parts.iter().map(|part| median(part).unwrap_or(0.0)).collect();
    let apart: Vec<f64> = parts
        .iter()
        .zip(&medians)
        .flat_map(|(part, middle)| part.iter().map(move |log| (log - middle).abs()))
        .collect();
    let free = logs.len() as f64 - parts.len() as f64;
    // The median of each piece is one of its values or lies between two, which makes the deviations too small.
    let small = (logs.len() as f64 / free.max(1.0)).sqrt();
    let scale = (NORMAL * median(&apart).unwrap_or(0.0) * small).max(LEAST_SCALE);
    let df = (EFFICIENCY * free).max(1.0);
    let number = |at: usize| parts[at].len() as f64;
    (1..parts.len())
        .map(|at| MeanDifference {
            value: medians[at] - medians[at - 1],
            standard_error: scale * (OF_MEDIAN * (1.0 / number(at - 1) + 1.0 / number(at))).sqrt(),
            df,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;

    fn noisy(n: usize, seed: u64, level: impl Fn(usize) -> f64) -> Vec<Option<f64>> {
        let mut random = SplitMix64::new(seed);
        (0..n).map(|at| Some(1e9 * level(at) * (0.03 * random.normal()).exp())).collect()
    }

    fn places(values: &[Option<f64>]) -> Vec<u32> {
        changes(values, 100, 0.95).iter().map(|change| change.pass).collect()
    }

    #[test]
    fn steps_down_and_up_are_located() {
        let found = places(&noisy(40, 1, |at| if (15..28).contains(&at) { 0.6 } else { 1.0 }));
        assert_eq!(found, [15, 28]);
    }

    #[test]
    fn one_wild_pass_and_a_small_change_are_no_changes() {
        assert_eq!(places(&noisy(30, 2, |at| if at == 12 { 0.1 } else { 1.0 })), [0; 0]);
        assert_eq!(places(&noisy(60, 3, |at| if at >= 30 { 0.95 } else { 1.0 })), [0; 0]);
    }

    #[test]
    fn a_change_is_named_after_three_passes_and_across_gaps() {
        assert_eq!(places(&noisy(13, 4, |at| if at >= 10 { 0.4 } else { 1.0 })), [10]);
        let mut gaps = noisy(20, 5, |at| if at >= 12 { 0.4 } else { 1.0 });
        for at in [3, 11, 12, 15] {
            gaps[at] = None;
        }
        assert_eq!(places(&gaps), [13], "the first pass with a value after it");
    }

    #[test]
    fn few_equal_and_missing_values_have_none() {
        assert_eq!(places(&[]), [0; 0]);
        assert_eq!(places(&[Some(1.0); 5]), [0; 0]);
        assert_eq!(places(&[Some(1.0); 50]), [0; 0]);
        assert_eq!(places(&[None; 50]), [0; 0]);
        assert_eq!(places(&[Some(0.0); 50]), [0; 0]);
    }

    #[test]
    fn intervals_of_the_size_cover_it() {
        let mut covered = 0;
        for seed in 0..300 {
            let values = noisy(30, 1_000 + seed, |at| if at >= 18 { 0.5 } else { 1.0 });
            let found = changes(&values, 20, 0.95);
            covered += usize::from(found.len() == 1 && found[0].low <= 0.5 && 0.5 <= found[0].high);
        }
        assert!(covered >= 276, "{covered} of 300");
    }
}

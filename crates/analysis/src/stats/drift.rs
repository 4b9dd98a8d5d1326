//! Whether a series moves one way.

use super::batch::batch_means;
use model::median;

/// Fewest values.
const LEAST: usize = 10;
/// Batches of a longer series: all pairs of values are compared.
const BATCHES: usize = 100;
/// Bound of the normal score of Kendall's statistic: chance exceeds it in one independent series in a thousand.
const SCORE: f64 = 3.29;
/// Smallest change over the whole series that counts, relative to its median.
const CHANGE: f64 = 0.02;

/// Whether the values rise or fall over the series beyond chance and by 2 % or more, by Kendall's rank correlation with time (Mann,
/// 1945, "Nonparametric tests against trend"). Strong correlation between neighbours counts as movement too. False for fewer than ten
/// values.
#[must_use]
pub fn is_drifting(values: &[f64]) -> bool {
    if values.len() < LEAST {
        return false;
    }
    let values = batch_means(values, values.len().div_ceil(BATCHES));
    let n = values.len() as f64;
    let pairs = || values.iter().enumerate().flat_map(|(at, a)| values[at + 1..].iter().map(move |b| b - a));
    let s: f64 = pairs().map(|difference| if difference == 0.0 { 0.0 } else { difference.signum() }).sum();
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let slopes: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(at, a)| values[at + 1..].iter().zip(1..).map(move |(b, distance)| (b - a) / f64::from(distance)))
        .collect();
    let change = median(&slopes).unwrap_or(0.0) * (n - 1.0);
    let middle = median(&values).unwrap_or(0.0);
    (s.abs() - 1.0) / deviation > SCORE && change.abs() >= CHANGE * middle.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;

    /// How many of 1,000 series of 20 values around 100 with this change over the series and 3 % of noise are called drifting.
    fn called(change: f64) -> usize {
        let mut random = SplitMix64::new(7);
        let mut normal = || (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
        let mut series =
            || (0..20).map(|at| 100.0 + change * f64::from(at) / 19.0 + 3.0 * normal()).collect::<Vec<_>>();
        (0..1_000).filter(|_| is_drifting(&series())).count()
    }

    #[test]
    fn a_trend_is_told_from_noise() {
        assert!(called(0.0) <= 6, "{}", called(0.0));
        assert!(called(15.0) >= 900 && called(-15.0) >= 900, "{} {}", called(15.0), called(-15.0));
    }

    #[test]
    fn short_or_level_series_do_not_drift() {
        let rising: Vec<f64> = (0..9).map(f64::from).collect();
        assert!(!is_drifting(&rising));
        assert!(!is_drifting(&[5.0; 40]));
        let slowly: Vec<f64> = (0..30).map(|at| 1000.0 + 0.5 * f64::from(at)).collect();
        assert!(!is_drifting(&slowly), "1.5 % over the whole series");
        let long: Vec<f64> = (0..3_200).map(|at| 1000.0 + 0.05 * f64::from(at)).collect();
        assert!(is_drifting(&long) && !is_drifting(&[5.0; 3_200]));
    }
}

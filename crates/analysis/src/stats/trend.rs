//! The linear trend of a series, and how clear it is.

use model::median;

use super::batch::lag1;
use super::summary::mean;

/// The slope of a series over its abscissa, relative to the mean of the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Relative change for one unit of the abscissa.
    pub slope: f64,
    /// Standard error of the slope, widened for the lag-1 correlation of the residuals.
    pub standard_error: f64,
}

/// The trend of `points` (abscissa, value) by least squares. `None` for fewer than four points, a mean that is not positive, or points
/// at one place.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len() as f64;
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (centre, level) = (mean(&xs)?, mean(&ys).filter(|level| *level > 0.0)?);
    let spread: f64 = xs.iter().map(|x| (x - centre).powi(2)).sum();
    if points.len() < 4 || spread <= 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - centre) * (y - level)).sum::<f64>() / spread;
    let residuals: Vec<f64> = points.iter().map(|(x, y)| y - level - slope * (x - centre)).collect();
    let squares: f64 = residuals.iter().map(|one| one * one).sum();
    let correlation = lag1(&residuals).unwrap_or(0.0).clamp(0.0, 0.9);
    let inflation = (1.0 + correlation) / (1.0 - correlation);
    let standard_error = (squares / (n - 2.0) / spread * inflation).sqrt();
    Some(Trend { slope: slope / level, standard_error: standard_error / level })
}

/// The median slope between any two of `points` whose abscissas differ by at least `least` (Theil, 1950; Sen, 1968). `None` without such
/// a pair.
#[must_use]
pub fn median_slope(points: &[(f64, f64)], least: f64) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(at, one)| points[..at].iter().map(move |other| (one, other)));
    let apart = pairs.filter(|(one, other)| (one.0 - other.0).abs() >= least && one.0 != other.0);
    median(&apart.map(|(one, other)| (one.1 - other.1) / (one.0 - other.0)).collect::<Vec<f64>>())
}

/// The median deviation from the median, scaled so that for normal values it is their standard deviation. `None` for an empty list.
#[must_use]
pub fn median_deviation(values: &[f64]) -> Option<f64> {
    const OF_NORMAL: f64 = 1.4826;
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    Some(OF_NORMAL * median(&deviations)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;

    #[test]
    fn single_outliers_do_not_move_the_median_slope() {
        let mut points: Vec<(f64, f64)> = (0..20).map(|at| (f64::from(at), 5.0 + 3.0 * f64::from(at))).collect();
        points[19].1 = -400.0;
        assert!((median_slope(&points, 0.0).unwrap() - 3.0).abs() < 1e-12);
        assert_eq!(median_slope(&[(1.0, 2.0), (1.5, 9.0)], 1.0), None, "too close to each other");
        assert_eq!(median_slope(&[(1.0, 2.0); 5], 0.0), None);
    }

    #[test]
    fn a_line_has_its_slope_without_error() {
        let points: Vec<(f64, f64)> = (0..10).map(|at| (f64::from(at), 100.0 + 2.0 * f64::from(at))).collect();
        let found = trend(&points).unwrap();
        assert!((found.slope - 2.0 / 109.0).abs() < 1e-12 && found.standard_error < 1e-9, "{found:?}");
        assert_eq!(trend(&points[..3]), None);
        assert_eq!(trend(&[(1.0, 1.0); 8]), None, "no abscissa");
        assert_eq!(trend(&[(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]), None, "no level");
    }

    #[test]
    fn noise_is_rarely_a_clear_trend_even_if_it_is_correlated() {
        for phi in [0.0, 0.6] {
            let clear = (0..2000).filter(|seed| {
                let mut random = SplitMix64::new(*seed);
                let mut state = 0.0;
                let mut step = || {
                    state = phi * state + random.normal();
                    100.0 + state
                };
                let points: Vec<(f64, f64)> = (0..30).map(|at| (f64::from(at), step())).collect();
                trend(&points).is_some_and(|trend| trend.slope > 4.0 * trend.standard_error)
            });
            let share = clear.count() as f64 / 2000.0;
            assert!(share < 0.01, "{share} with a correlation of {phi}");
        }
    }

    #[test]
    fn the_median_deviation_of_normal_values_is_their_standard_deviation() {
        let mut random = SplitMix64::new(7);
        let values: Vec<f64> = (0..20_000).map(|_| 5.0 + 3.0 * random.normal()).collect();
        assert!((median_deviation(&values).unwrap() - 3.0).abs() < 0.1);
        assert_eq!(median_deviation(&[1.0, 1.0, 1.0, 900.0]), Some(0.0));
        assert_eq!(median_deviation(&[]), None);
    }
}

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

/// Points for each degree of the curve that the errors are taken from, and the highest degree.
const POINTS_A_DEGREE: usize = 6;
const DEGREES: usize = 3;

/// The trend of `points` (abscissa, value) by least squares. Its standard error is that of the values about a curve of up to the third
/// degree: about a line, growth that is bent would look like noise. `None` for fewer than four points, a mean that is not positive, or
/// points at one place.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (centre, level) = (mean(&xs)?, mean(&ys).filter(|level| *level > 0.0)?);
    let off: Vec<f64> = xs.iter().map(|x| x - centre).collect();
    let spread = product(&off, &off);
    if points.len() < 4 || spread <= 0.0 {
        return None;
    }
    let slope = product(&off, &ys) / spread;
    let mut residuals: Vec<f64> = ys.iter().map(|y| y - level).collect();
    let degrees = (points.len() / POINTS_A_DEGREE).clamp(1, DEGREES);
    for term in polynomials(&off, degrees) {
        take_out(&mut residuals, &term);
    }
    let fitted = (1 + degrees) as f64;
    let free = points.len() as f64 - fitted;
    // Each fitted term takes 1/n from the correlation of the residuals.
    let correlation = (lag1(&residuals).unwrap_or(0.0) + fitted / points.len() as f64).clamp(0.0, 0.9);
    let inflation = (1.0 + correlation) / (1.0 - correlation);
    let standard_error = (product(&residuals, &residuals) / free / spread * inflation).sqrt();
    Some(Trend { slope: slope / level, standard_error: standard_error / level })
}

/// Polynomials in `off` of the degrees 1 to `degrees`, orthogonal to each other and to a constant.
fn polynomials(off: &[f64], degrees: usize) -> Vec<Vec<f64>> {
    let scale = off.iter().fold(f64::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let mut terms = vec![vec![1.0; off.len()]];
    for degree in 1..=degrees {
        let mut term: Vec<f64> = off.iter().map(|x| (x / scale).powi(degree as i32)).collect();
        for other in &terms {
            take_out(&mut term, other);
        }
        terms.push(term);
    }
    terms.split_off(1)
}

/// Subtracts from `values` their part along `term`.
fn take_out(values: &mut [f64], term: &[f64]) {
    let part = product(values, term) / product(term, term).max(f64::MIN_POSITIVE);
    values.iter_mut().zip(term).for_each(|(value, at)| *value -= part * at);
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The median slope between any two of `points` whose abscissas differ by at least `least` (Theil, 1950; Sen, 1968). `None` if fewer than
/// `share` of all pairs do.
#[must_use]
pub fn median_slope(points: &[(f64, f64)], least: f64, share: f64) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(at, one)| points[..at].iter().map(move |other| (one, other)));
    let apart = pairs.filter(|(one, other)| (one.0 - other.0).abs() >= least && one.0 != other.0);
    let slopes: Vec<f64> = apart.map(|(one, other)| (one.1 - other.1) / (one.0 - other.0)).collect();
    let all = points.len() * points.len().saturating_sub(1) / 2;
    median(&slopes).filter(|_| slopes.len() as f64 >= share * all as f64)
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
        assert!((median_slope(&points, 0.0, 0.5).unwrap() - 3.0).abs() < 1e-12);
        assert_eq!(median_slope(&[(1.0, 2.0), (1.5, 9.0)], 1.0, 0.0), None, "too close to each other");
        assert_eq!(median_slope(&[(1.0, 2.0); 5], 0.0, 0.0), None);
        // Four of ten pairs are apart.
        let mostly_together = [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0), (1.0, 4.0), (9.0, 9.0)];
        assert!(median_slope(&mostly_together, 0.0, 0.4).is_some());
        assert_eq!(median_slope(&mostly_together, 0.0, 0.5), None);
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
    fn growth_that_is_bent_is_as_clear_as_that_along_a_line() {
        let shapes: [fn(f64) -> f64; 3] = [|x| x, |x| x.powi(3), |x| 1.0 - (-4.0 * x).exp()];
        for shape in shapes {
            let points: Vec<(f64, f64)> =
                (0..30).map(|at| (f64::from(at), 10.0 + shape(f64::from(at) / 29.0))).collect();
            let found = trend(&points).unwrap();
            assert!(found.slope > 8.0 * found.standard_error, "{found:?}");
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

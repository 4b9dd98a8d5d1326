//! Change points of a piecewise linear function.
//!
//! The partition of the points with the lowest sum of costs and penalties is found exactly, by optimal partitioning (B. Jackson and
//! others, "An algorithm for optimal partitioning of data on an interval", IEEE Signal Processing Letters 12, 2005). PELT (R.
//! Killick, P. Fearnhead and I. A. Eckley, JASA 107, 2012) is faster for thousands of points; a curve has hundreds.
//!
//! The cost of a piece is its weighted sum of squared residuals about a line, which is minus twice the log likelihood if the weights
//! are inverse variances. A further piece adds three parameters (level, slope, position), so by the BIC (G. Schwarz, Annals of
//! Statistics 6, 1978) its penalty is three times the logarithm of the number of points.

use std::ops::RangeInclusive;

/// A point with the standard error of its `y`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredPoint {
    /// Position.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Standard error of the value, above 0.
    pub se: f64,
}

/// A piece of the points and its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinePiece {
    /// First point.
    pub from: usize,
    /// Index after the last point.
    pub to: usize,
    /// Value of the line at `x` = 0.
    pub level: f64,
    /// Its slope.
    pub slope: f64,
}

impl LinePiece {
    /// The line's value.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        self.level + self.slope * x
    }
}

/// Fewest points of a piece: a line fits any two.
const MIN_POINTS: usize = 3;

/// Divides `points` (ascending by `x`) into pieces with lines whose slopes lie within `slopes`. One piece for few points, none
/// without points.
#[must_use]
pub fn pieces(points: &[MeasuredPoint], slopes: &RangeInclusive<f64>) -> Vec<LinePiece> {
    debug_assert!(points.is_sorted_by_key(|point| point.x), "the points ascend");
    let n = points.len();
    if n == 0 {
        return Vec::new();
    }
    let sums = Sums::of(points);
    let penalty = 3.0 * (n as f64).ln();
    let cost = |from: usize, to: usize| sums.fit(from, to, slopes).0;
    // best[i]: lowest cost of the first i points; cut[i]: start of the last of their pieces.
    let (mut best, mut cut) = (vec![f64::INFINITY; n + 1], vec![0; n + 1]);
    best[0] = -penalty;
    for to in MIN_POINTS.min(n)..=n {
        for from in 0..=to.saturating_sub(MIN_POINTS) {
            let whole = best[from] + cost(from, to) + penalty;
            if whole < best[to] {
                (best[to], cut[to]) = (whole, from);
            }
        }
    }
    let mut pieces = Vec::new();
    let mut to = n;
    while to > 0 {
        let from = cut[to];
        let (_, level, slope) = sums.fit(from, to, slopes);
        pieces.push(LinePiece { from, to, level, slope });
        to = from;
    }
    pieces.reverse();
    pieces
}

/// Sums over the first points: weight, x, y, x², xy, y², each times the weight.
struct Sums(Vec<[f64; 6]>);

impl Sums {
    fn of(points: &[MeasuredPoint]) -> Self {
        let mut sums = vec![[0.0; 6]];
        for point in points {
            let (w, x, y) = (point.se.powi(-2), point.x, point.y);
            let mut next = sums.last().copied().unwrap_or_default();
            next.iter_mut().zip([w, w * x, w * y, w * x * x, w * x * y, w * y * y]).for_each(|(sum, own)| *sum += own);
            sums.push(next);
        }
        Self(sums)
    }

    /// Squared residuals, level and slope of the best line through the points.
    fn fit(&self, from: usize, to: usize, slopes: &RangeInclusive<f64>) -> (f64, f64, f64) {
        let mut part = self.0[to];
        part.iter_mut().zip(self.0[from]).for_each(|(sum, before)| *sum -= before);
        let [w, x, y, xx, xy, yy] = part;
        let (mean_x, mean_y) = (x / w, y / w);
        let (xx, xy, yy) = (xx - x * mean_x, xy - x * mean_y, yy - y * mean_y);
        let free = if xx > 0.0 { xy / xx } else { 0.0 };
        let slope = free.clamp(*slopes.start(), *slopes.end());
        let squares = (yy - 2.0 * slope * xy + slope * slope * xx).max(0.0);
        (squares, mean_y - slope * mean_x, slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    fn noisy(n: usize, seed: u64, y: impl Fn(f64) -> f64) -> Vec<MeasuredPoint> {
        let mut random = SplitMix64::new(seed);
        (0..n).map(|i| i as f64).map(|x| MeasuredPoint { x, y: y(x) + 0.02 * random.normal(), se: 0.02 }).collect()
    }

    #[test]
    fn a_line_is_one_piece_and_noise_rarely_divides_it() {
        let cuts: usize =
            (0..200).map(|seed| pieces(&noisy(60, seed, |x| 3.0 + 0.2 * x), &(0.0..=1.0)).len() - 1).sum();
        assert!(cuts <= 20, "{cuts} cuts in 200 lines");
    }

    #[test]
    fn steps_and_bends_are_located() {
        let step = |x: f64| 0.1 * x - if (20.0..33.0).contains(&x) { 0.3 } else { 0.0 };
        let found = pieces(&noisy(60, 3, step), &(0.0..=1.0));
        assert_eq!(found.iter().map(|piece| piece.from).collect::<Vec<_>>(), [0, 20, 33]);
        let bend = |x: f64| 0.5 * x.min(30.0);
        let found = pieces(&noisy(60, 4, bend), &(0.0..=1.0));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].from.abs_diff(30) <= 1 && found[1].slope < 0.01, "{found:?}");
    }

    #[test]
    fn few_points_are_one_piece() {
        assert_eq!(pieces(&[], &(0.0..=1.0)), []);
        for n in 1..6 {
            assert_eq!(pieces(&noisy(n, 1, |x| 9.0 * (x % 2.0)), &(0.0..=1.0)).len(), 1, "{n}");
        }
    }

    proptest! {
        #[test]
        fn no_other_partition_costs_less(ys in prop::collection::vec(-3.0f64..3.0, 3..40), one in 3usize..37, other in 3usize..37) {
            let points: Vec<MeasuredPoint> = ys.iter().enumerate().map(|(i, y)| MeasuredPoint { x: i as f64, y: *y, se: 0.3 }).collect();
            let (n, slopes) = (points.len(), 0.0..=1.0);
            let sums = Sums::of(&points);
            let penalty = 3.0 * (n as f64).ln();
            let cost = |cuts: &[usize]| -> f64 {
                cuts.windows(2).map(|cut| sums.fit(cut[0], cut[1], &slopes).0).sum::<f64>() + penalty * (cuts.len() - 2) as f64
            };
            let found = pieces(&points, &slopes);
            let cuts: Vec<usize> = found.iter().map(|piece| piece.from).chain([n]).collect();
            prop_assert!(found.windows(2).all(|pair| pair[0].to == pair[1].from) && cuts[0] == 0, "{:?}", cuts);
            let (low, high) = (one.min(other), one.max(other));
            for others in [vec![0, n], vec![0, low, n], vec![0, low, high, n]] {
                let allowed = others.windows(2).all(|cut| cut[1] >= cut[0] + MIN_POINTS) || others.len() == 2;
                prop_assert!(!allowed || cost(&cuts) <= cost(&others) + 1e-6, "{:?} {:?}", cuts, others);
            }
        }
    }
}

//! The randomisation test for differences whose sign was drawn at random, and its confidence interval.
//!
//! Each round of a paired comparison is ABBA or BAAB at random. If B has no effect, the other order would only have changed the
//! sign of the round's difference, whatever the drift or noise: all 2^n combinations of signs were equally likely (Fisher, 1935,
//! "The Design of Experiments"). An effect of `theta` shifts every difference by `theta`; the values of `theta` that the test does
//! not reject form the interval. Its ends are order statistics of the means over subsets of the differences, and a random sample
//! of subsets works as well as all of them (Hartigan, 1969, "Using subsample values as typical values").

use super::interval::ConfidenceInterval;
use model::SplitMix64;

/// Up to this many differences all subsets are used.
const ENUMERATED: usize = 11;
/// Number of random subsets for more differences: one less than a power of two, like the number of all subsets.
const DRAWN: usize = 2_047;

/// The means over subsets of paired differences, in the differences' unit.
#[derive(Debug, Clone, PartialEq)]
pub struct SubsetMeans {
    /// Ascending. With the observed arrangement there is one arrangement more than means.
    means: Vec<f64>,
}

impl SubsetMeans {
    /// The means over all nonempty subsets of up to 11 differences, or over 2,047 random ones of more. The same `seed`, which must
    /// differ from that of the signs, gives the same subsets. Without differences the test rejects nothing.
    #[must_use]
    pub fn new(differences: &[f64], seed: u64) -> Self {
        let n = differences.len();
        let mut means = if n <= ENUMERATED {
            (1..1u64 << n).map(|subset| mean_of(differences, |i| subset >> i & 1 == 1)).collect()
        } else {
            drawn(differences, seed)
        };
        means.sort_unstable_by(f64::total_cmp);
        Self { means }
    }

    /// The interval of the effects that the two-sided test at `1 - confidence` does not reject. It covers the true effect with at
    /// least that confidence, exactly if all subsets were used. `None` for too few differences to reject anything: fewer than six
    /// at 95 %.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Option<ConfidenceInterval> {
        let arrangements = (self.means.len() + 1) as f64;
        // 1e-9 keeps rounding errors from lowering a whole number by one.
        let tail = ((1.0 - confidence) / 2.0 * arrangements + 1e-9).floor() as usize;
        let (low, high) = (tail.checked_sub(1)?, self.means.len().checked_sub(tail)?);
        (low <= high).then(|| ConfidenceInterval { low: self.means[low], high: self.means[high] })
    }

    /// The two-sided p-value: twice the share of the arrangements that are at least as extreme against an effect of `theta` as the
    /// observed one, on its side. Never 0, because the observed arrangement is one of them.
    #[must_use]
    pub fn p_value(&self, theta: f64) -> f64 {
        let below = self.means.partition_point(|mean| *mean <= theta);
        let above = self.means.len() - self.means.partition_point(|mean| *mean < theta);
        let arrangements = (self.means.len() + 1) as f64;
        (2.0 * (1 + below.min(above)) as f64 / arrangements).min(1.0)
    }
}

/// Means over random subsets: each difference is included with probability 1/2.
fn drawn(differences: &[f64], seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let mut means = Vec::with_capacity(DRAWN);
    while means.len() < DRAWN {
        let mut bits = 0;
        let mean = mean_of(differences, |i| {
            if i % 64 == 0 {
                bits = random.next_u64();
            }
            bits >> (i % 64) & 1 == 1
        });
        // The empty subset has no mean and is drawn again.
        if !mean.is_nan() {
            means.push(mean);
        }
    }
    means
}

/// Mean of the differences whose index is chosen; NaN for none.
fn mean_of(differences: &[f64], mut chosen: impl FnMut(usize) -> bool) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for (i, difference) in differences.iter().enumerate() {
        if chosen(i) {
            sum += difference;
            count += 1;
        }
    }
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The test in Fisher's form: all combinations of signs, compared by their sums.
    fn by_all_signs(differences: &[f64], theta: f64) -> f64 {
        let shifted: Vec<f64> = differences.iter().map(|difference| difference - theta).collect();
        let observed: f64 = shifted.iter().sum();
        let signed = |signs: u64| -> f64 {
            shifted.iter().enumerate().map(|(i, d)| if signs >> i & 1 == 1 { -d } else { *d }).sum()
        };
        let all = 1u64 << differences.len();
        let tail = |as_strong: &dyn Fn(f64) -> bool| (0..all).filter(|signs| as_strong(signed(*signs))).count();
        let hair = 1e-12;
        let tails = [tail(&|sum| sum >= observed - hair), tail(&|sum| sum <= observed + hair)];
        (2.0 * *tails.iter().min().unwrap() as f64 / all as f64).min(1.0)
    }

    #[test]
    fn six_differences_are_the_fewest_that_reject_at_95_percent() {
        let six = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06];
        let means = SubsetMeans::new(&six, 1);
        // One arrangement of 64 in each tail: the interval is the range.
        assert_eq!(means.interval(0.95), Some(ConfidenceInterval { low: 0.01, high: 0.06 }));
        assert_eq!(means.interval(0.99), None);
        assert!((means.p_value(0.0) - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(SubsetMeans::new(&six[..5], 1).interval(0.95), None);
        assert_eq!((SubsetMeans::new(&[], 1).interval(0.95), SubsetMeans::new(&[], 1).p_value(0.0)), (None, 1.0));
    }

    #[test]
    fn random_subsets_approximate_all_of_them() {
        let mut random = SplitMix64::new(5);
        let differences: Vec<f64> = (0..16).map(|_| 0.01 + 0.03 * random.normal()).collect();
        let all: Vec<f64> = (1..1u64 << 16).map(|subset| mean_of(&differences, |i| subset >> i & 1 == 1)).collect();
        let mut all = SubsetMeans { means: all };
        all.means.sort_unstable_by(f64::total_cmp);
        let (exact, near) = (all.interval(0.95).unwrap(), SubsetMeans::new(&differences, 9).interval(0.95).unwrap());
        let tolerance = 0.15 * exact.half_width();
        assert!((exact.low - near.low).abs() < tolerance && (exact.high - near.high).abs() < tolerance);
        assert_eq!(SubsetMeans::new(&differences, 9), SubsetMeans::new(&differences, 9));
        assert_ne!(SubsetMeans::new(&differences, 9), SubsetMeans::new(&differences, 10));
    }

    proptest! {
        #[test]
        fn subset_means_are_the_test_over_all_signs(values in prop::collection::vec(-1.0f64..1.0, 1..9), theta in -1.0f64..1.0) {
            let p = SubsetMeans::new(&values, 0).p_value(theta);
            prop_assert!((p - by_all_signs(&values, theta)).abs() < 1e-9, "{p}");
        }

        #[test]
        fn the_interval_contains_what_the_test_does_not_reject(values in prop::collection::vec(-1.0f64..1.0, 6..14), theta in -1.0f64..1.0) {
            let means = SubsetMeans::new(&values, 3);
            let interval = means.interval(0.95).unwrap();
            prop_assert_eq!(interval.contains(theta), means.p_value(theta) > 0.05 - 1e-12);
        }

        #[test]
        fn turning_all_signs_mirrors_the_interval(values in prop::collection::vec(-1.0f64..1.0, 6..20)) {
            let turned: Vec<f64> = values.iter().map(|value| -value).collect();
            let (one, other) = (SubsetMeans::new(&values, 3), SubsetMeans::new(&turned, 3));
            let (one, other) = (one.interval(0.95).unwrap(), other.interval(0.95).unwrap());
            prop_assert!((one.low + other.high).abs() < 1e-12 && (one.high + other.low).abs() < 1e-12);
        }
    }
}

//! An exact interval of the median between two values of a sample, for few independent values.
//!
//! Of n independent values the number below the median is binomial with probability 1/2, whatever their distribution. The interval
//! from the k-th smallest to the k-th largest value therefore holds the median with probability 1 - 2 P(Bin(n, 1/2) < k) or more
//! (David and Nagaraja, 2003, "Order Statistics", 7.1). Nothing is interpolated and nothing is drawn at random.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::interval::ConfidenceInterval;

/// Relative error that the binomial sums may have.
const ROUNDING: f64 = 1e-9;

/// The narrowest interval between the k-th smallest and the k-th largest value that holds the median with probability `confidence`
/// or more. `None` if even the whole range is not that sure ([`values_needed`]), or for a confidence outside 0 to 1.
#[must_use]
pub fn order_interval(values: &[f64], confidence: f64) -> Option<ConfidenceInterval> {
    let rank = rank(values.len(), confidence)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(ConfidenceInterval { low: sorted[rank - 1], high: sorted[sorted.len() - rank] })
}

/// The fewest values whose range holds the median with probability `confidence`: 6 for 0.95. `None` for a confidence outside 0 to 1.
#[must_use]
pub fn values_needed(confidence: f64) -> Option<usize> {
    // The range misses the median only if all values are on one side of it: 2^(1-n).
    (confidence > 0.0 && confidence < 1.0)
        .then(|| (1.0 - ((1.0 - confidence) * (1.0 + ROUNDING)).log2()).ceil() as usize)
}

/// The largest k of n values; `None` if there is none.
fn rank(n: usize, confidence: f64) -> Option<usize> {
    if n < values_needed(confidence)? {
        return None;
    }
    let below = Binomial::new(0.5, n as u64).ok()?;
    let most = (1.0 - confidence) / 2.0 * (1.0 + ROUNDING);
    // P(Bin < k) grows with k; it is below `most` for k = 1 and not for the middle.
    (1..=n.div_ceil(2)).take_while(|k| below.cdf(*k as u64 - 1) <= most).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    fn ranks(n: usize, confidence: f64) -> Option<[f64; 2]> {
        let values: Vec<f64> = (1..=n).rev().map(|value| value as f64).collect();
        order_interval(&values, confidence).map(|interval| [interval.low, interval.high])
    }

    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        // Conover (1999), "Practical Nonparametric Statistics", table A3 (binomial, 1/2): the tails are at most 0.025.
        for (n, low, high) in
            [(6, 1.0, 6.0), (8, 1.0, 8.0), (9, 2.0, 8.0), (12, 3.0, 10.0), (15, 4.0, 12.0), (20, 6.0, 15.0)]
        {
            assert_eq!(ranks(n, 0.95), Some([low, high]), "{n}");
        }
        assert_eq!(ranks(5, 0.95), None);
        // 99 %: the tail of 10 values at k = 1 is 1 / 1024, at k = 2 it is 11 / 1024.
        assert_eq!(ranks(10, 0.99), Some([1.0, 10.0]));
        assert_eq!(ranks(10, 0.978), Some([2.0, 9.0]));
    }

    #[test]
    fn a_confidence_that_a_range_has_exactly_is_reached() {
        // 1 - 2^(1-n).
        for n in 2..40 {
            let exact = 1.0 - 0.5f64.powi(n - 1);
            assert_eq!(values_needed(exact), Some(n as usize), "{n}");
            assert_eq!(ranks(n as usize, exact), Some([1.0, f64::from(n)]), "{n}");
        }
        assert_eq!((values_needed(0.95), values_needed(0.99), values_needed(1.0)), (Some(6), Some(8), None));
        assert_eq!((values_needed(0.0), ranks(9, 0.0), ranks(0, 0.5)), (None, None, None));
    }

    #[test]
    fn it_covers_the_median_as_often_as_the_binomial_says() {
        // Of 15 skewed values the 4th to 12th hold the median with probability 0.9648.
        let mut random = SplitMix64::new(7);
        let median = 0.5f64.powi(2);
        let covers = (0..20_000).filter(|_| {
            let values: Vec<f64> =
                (0..15).map(|_| (random.below(1 << 20) as f64 / f64::from(1 << 20)).powi(2)).collect();
            order_interval(&values, 0.95).unwrap().contains(median)
        });
        let share = covers.count() as f64 / 20_000.0;
        assert!((share - 0.9648).abs() < 0.005, "{share}");
    }

    proptest! {
        #[test]
        fn more_confidence_is_wider_and_ends_are_values(values in prop::collection::vec(-1e6f64..1e6, 8..60)) {
            let [narrow, wide] = [0.8, 0.99].map(|confidence| order_interval(&values, confidence).unwrap());
            prop_assert!(wide.low <= narrow.low && narrow.low <= narrow.high && narrow.high <= wide.high);
            prop_assert!(values.contains(&narrow.low) && values.contains(&wide.high));
        }
    }
}

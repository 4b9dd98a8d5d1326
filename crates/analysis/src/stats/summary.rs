//! Descriptive statistics. All functions take the values in any order and in any one unit, and return that unit.

/// Arithmetic mean; `None` for an empty list.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (divisor n - 1); `None` for fewer than two values.
#[must_use]
pub fn sample_sd(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The `q` quantile (0 to 1), interpolated linearly between order statistics (type 7 of Hyndman and Fan, 1996). `None` for an
/// empty list or a `q` outside 0 to 1.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// As [`quantile`], for sorted values.
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    debug_assert!(sorted.is_sorted_by(|a, b| a.total_cmp(b).is_le()), "the values are sorted");
    if sorted.is_empty() || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor();
    let low = sorted[below as usize];
    let high = sorted[position.ceil() as usize];
    Some(low + (high - low) * (position - below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_lists() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((sample_sd(&values).unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(quantile(&values, 0.5), Some(4.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[10.0, 20.0], 0.9), Some(19.0));
    }

    #[test]
    fn too_few_values_give_nothing() {
        assert_eq!((mean(&[]), quantile(&[], 0.5), sample_sd(&[1.0])), (None, None, None));
        assert_eq!(quantile(&[1.0], 1.5), None);
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_stay_inside(values in prop::collection::vec(-1e9f64..1e9, 1..40), a in 0.0f64..1.0, b in 0.0f64..1.0) {
            let (low, high) = (a.min(b), a.max(b));
            let (q_low, q_high) = (quantile(&values, low).unwrap(), quantile(&values, high).unwrap());
            prop_assert!(q_low <= q_high);
            prop_assert!(values.iter().any(|value| *value <= q_low) && values.iter().any(|value| *value >= q_high));
        }

        #[test]
        fn spread_scales_with_the_unit(values in prop::collection::vec(0.0f64..1e6, 2..40), factor in 0.001f64..1e6) {
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            let (sd, sd_scaled) = (sample_sd(&values).unwrap(), sample_sd(&scaled).unwrap());
            prop_assert!((sd * factor - sd_scaled).abs() <= 1e-6 * (1.0 + sd_scaled));
        }
    }
}

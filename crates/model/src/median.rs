//! The median, for every crate: the layers below `analysis` need it too.

/// The median of values in any order, in their unit; the mean of the middle two for an even count. `None` for an empty list.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    // With an odd count both are the same value.
    Some(sorted[(sorted.len() - 1) / 2].midpoint(upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_count_has_the_mean_of_the_middle_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[2.0, 1.0]), Some(1.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[10.0, 3.0, 1.0, 2.0]), Some(2.5));
        // Nor does the sum of two large values overflow.
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }
}

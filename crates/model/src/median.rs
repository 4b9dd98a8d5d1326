//! The median, for every crate: the layers below `analysis` need it too.

/// The median of values in any order, in their unit; the mean of the middle two for an even count. `None` for an empty list.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    // Without sorting, which would be most of the time of a large table's fit.
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd);
    Some(lower.map_or(*upper, |lower| lower.midpoint(*upper)))
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

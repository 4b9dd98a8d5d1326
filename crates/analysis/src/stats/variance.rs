//! The variance within and between connections.

use super::summary::mean;

/// A one-way random-effects split of variance, in the squared unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceSplit {
    /// Variance of a single value within its group.
    pub within: f64,
    /// Variance of the groups' true means; 0 if the groups differ no more than their values explain.
    pub between: f64,
    /// Number of groups.
    pub groups: usize,
    /// Number of values in all groups.
    pub values: usize,
}

impl VarianceSplit {
    /// Share of a single value's variance that lies between groups, 0 to 1 (the intraclass correlation); 0 without variance.
    #[must_use]
    pub fn share_between(&self) -> f64 {
        let total = self.within + self.between;
        if total > 0.0 { self.between / total } else { 0.0 }
    }
}

/// Splits the variance of grouped values by the analysis-of-variance estimator for groups of unequal size (Searle, Casella and
/// McCulloch, 1992, "Variance Components"). A group is a connection; its values are independent samples (batch means if the raw
/// series is correlated). Groups with fewer than two values are skipped; `None` for fewer than two groups.
#[must_use]
pub fn variance_split<G: AsRef<[f64]>>(groups: &[G]) -> Option<VarianceSplit> {
    let groups: Vec<&[f64]> = groups.iter().map(AsRef::as_ref).filter(|group| group.len() >= 2).collect();
    if groups.len() < 2 {
        return None;
    }
    let all: Vec<f64> = groups.iter().flat_map(|group| group.iter().copied()).collect();
    let (grand, total, count) = (mean(&all)?, all.len() as f64, groups.len() as f64);
    let mut squares_within = 0.0;
    let mut squares_between = 0.0;
    let mut sizes_squared = 0.0;
    for group in &groups {
        let centre = mean(group)?;
        let size = group.len() as f64;
        squares_within += group.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        squares_between += size * (centre - grand).powi(2);
        sizes_squared += size * size;
    }
    let within = squares_within / (total - count);
    let typical_size = (total - sizes_squared / total) / (count - 1.0);
    let between = ((squares_between / (count - 1.0) - within) / typical_size).max(0.0);
    Some(VarianceSplit { within, between, groups: groups.len(), values: all.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    #[test]
    fn a_worked_table() {
        // Group means 2, 4 and 9 around 5: mean squares 26 between and 2 within, two values each: (26 - 2) / 2 between.
        let split = variance_split(&[[1.0, 3.0], [3.0, 5.0], [8.0, 10.0]]).unwrap();
        assert!((split.within - 2.0).abs() < 1e-12);
        assert!((split.between - 12.0).abs() < 1e-12);
    }

    #[test]
    fn both_parts_are_recovered() {
        let mut random = SplitMix64::new(11);
        let groups: Vec<Vec<f64>> = (0..2000)
            .map(|i| {
                let centre = 100.0 + 3.0 * random.normal();
                (0..4 + i % 5).map(|_| centre + 2.0 * random.normal()).collect()
            })
            .collect();
        let split = variance_split(&groups).unwrap();
        assert!((split.within / 4.0 - 1.0).abs() < 0.05, "{split:?}");
        assert!((split.between / 9.0 - 1.0).abs() < 0.08, "{split:?}");
        assert!((split.share_between() - 9.0 / 13.0).abs() < 0.03);
    }

    #[test]
    fn one_connection_gives_no_split() {
        assert_eq!(variance_split(&[vec![1.0, 2.0, 3.0], vec![1.0]]), None);
        assert_eq!(variance_split(&[[5.0, 5.0], [5.0, 5.0]]).unwrap().share_between(), 0.0);
    }

    proptest! {
        #[test]
        fn parts_are_never_negative(groups in prop::collection::vec(prop::collection::vec(0.0f64..1e9, 2..8), 2..8)) {
            let split = variance_split(&groups).unwrap();
            prop_assert!(split.within >= 0.0 && split.between >= 0.0);
            prop_assert!((0.0..=1.0).contains(&split.share_between()));
        }
    }
}

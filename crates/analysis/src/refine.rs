//! Where a curve needs more block sizes.

use model::Outcome;

use crate::curve::{Group, groups, points};

/// Smallest interpolation error that justifies a measurement, as a relative difference of rates.
const MIN_ERROR: f64 = 0.01;
/// Standard errors that are subtracted from a bend.
const BEND_ERRORS: f64 = 2.0;
/// Standard error assumed for points without an interval.
const UNKNOWN_ERROR: f64 = 0.02;

/// Up to `limit` new block sizes in bytes, ascending: the middles (on the logarithmic axis) of the gaps with the largest
/// interpolation error on the log-log graph of rate against block. The error of a gap is its width squared times the mean bend of
/// its two ends over 8, as for linear interpolation, where the bend is the second divided difference less what the intervals
/// explain. Gaps between adjacent integers get none, and neither do gaps with an error below 1 %.
#[must_use]
pub fn refine(outcomes: &[Outcome], limit: usize) -> Vec<u64> {
    let groups = groups(&points(outcomes));
    let bends: Vec<f64> = (0..groups.len()).map(|at| bend(&groups, at)).collect();
    let mut gaps: Vec<(f64, u64)> = groups
        .windows(2)
        .zip(bends.windows(2))
        .filter_map(|(pair, bends)| {
            let width = pair[1].ln_block() - pair[0].ln_block();
            let error = (bends[0] + bends[1]) / 2.0 * width * width / 8.0;
            let block = middle(&pair[0], &pair[1])?;
            (error > MIN_ERROR).then_some((error, block))
        })
        .collect();
    gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut sizes: Vec<u64> = gaps.into_iter().take(limit).map(|(_, block)| block).collect();
    sizes.sort_unstable();
    sizes
}

/// Absolute second derivative of ln rate by ln block at a group, less what its intervals explain; 0 at the ends.
fn bend(groups: &[Group], at: usize) -> f64 {
    let Some((before, after)) = at.checked_sub(1).and_then(|before| groups.get(before)).zip(groups.get(at + 1)) else {
        return 0.0;
    };
    let here = &groups[at];
    let (left, right) = (here.ln_block() - before.ln_block(), after.ln_block() - here.ln_block());
    let change = (after.ln_rate() - here.ln_rate()) / right - (here.ln_rate() - before.ln_rate()) / left;
    let weights = [(before, 1.0 / left), (here, 1.0 / left + 1.0 / right), (after, 1.0 / right)];
    let variance: f64 =
        weights.iter().map(|(group, weight)| (weight * group.se.unwrap_or(UNKNOWN_ERROR)).powi(2)).sum();
    (change.abs() - BEND_ERRORS * variance.sqrt()).max(0.0) * 2.0 / (left + right)
}

/// A block strictly between two groups, at their geometric mean; `None` if no integer lies between.
fn middle(low: &Group, high: &Group) -> Option<u64> {
    let (from, to) = (low.points.last()?.block, high.points.first()?.block);
    if to - from < 2 {
        return None;
    }
    let middle = (from as f64 * to as f64).sqrt().round() as u64;
    Some(middle.clamp(from + 1, to - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::*;
    use model::Pattern;
    use proptest::prelude::*;

    fn powers() -> Vec<u64> {
        (0..24).map(|i| 1 << i).collect()
    }

    #[test]
    fn new_sizes_are_at_a_break() {
        let broken = |block: u64| hockney(10_000.0, 1.0)(block) * if block >= 20_000 { 1.8 } else { 1.0 };
        let sizes = refine(&curve(&powers(), broken, 0.005, 1), 1);
        assert!(sizes.len() == 1 && (16_384..32_768).contains(&sizes[0]), "{sizes:?}");
    }

    #[test]
    fn repeated_refinement_converges_to_the_break() {
        let broken = |block: u64| hockney(10_000.0, 1.0)(block) * if block >= 20_000 { 1.8 } else { 1.0 };
        let mut sizes = powers();
        for round in 0..6 {
            sizes.extend(refine(&curve(&sizes, broken, 0.002, round), 2));
            sizes.sort_unstable();
        }
        let above = *sizes.iter().find(|size| **size >= 20_000).unwrap();
        let below = *sizes.iter().rfind(|size| **size < 20_000).unwrap();
        assert!(above - below < 1_500, "{below} to {above}");
    }

    #[test]
    fn the_knee_is_preferred_on_a_smooth_curve() {
        // The bend of Hockney's line is largest at its half-peak block, 10,000 B.
        let sizes = refine(&curve(&powers(), hockney(10_000.0, 1.0), 0.0, 1), 4);
        assert!(sizes.iter().all(|size| (1_000..100_000).contains(size)), "{sizes:?}");
    }

    #[test]
    fn straight_curves_and_noise_get_no_new_sizes() {
        assert_eq!(refine(&curve(&powers(), |block| block as f64, 0.0, 1), 10), Vec::<u64>::new());
        let new: usize =
            (0..20).map(|seed| refine(&curve(&powers(), |block| 100.0 * block as f64, 0.02, seed), 10).len()).sum();
        assert!(new <= 20, "{new} sizes in 20 curves");
    }

    #[test]
    fn adjacent_integers_have_nothing_between() {
        let jagged = |block: u64| if block.is_multiple_of(2) { 1_000.0 } else { 3_000.0 };
        assert_eq!(refine(&curve(&[1, 2, 3, 4, 5], jagged, 0.0, 1), 10), Vec::<u64>::new());
        assert_eq!(refine(&[], 3), Vec::<u64>::new());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn new_sizes_are_new_few_and_inside(
            sizes in prop::collection::btree_set(1u64..5_000, 0..40), times in prop::collection::vec(10.0f64..1e6, 40), limit in 0usize..8
        ) {
            let sizes: Vec<u64> = sizes.into_iter().collect();
            let outcomes: Vec<_> = sizes.iter().zip(&times).enumerate().map(|(i, (size, time))| made(Pattern::Pingpong, i as u32, *size, &[*time; 6])).collect();
            let new = refine(&outcomes, limit);
            prop_assert!(new.len() <= limit && new.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(new.iter().all(|size| !sizes.contains(size) && size > sizes.first().unwrap() && size < sizes.last().unwrap()));
        }
    }
}

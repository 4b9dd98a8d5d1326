//! The saturation point.
//!
//! Snell, Mikler and Gustafson (1996, "NetPIPE: A Network Protocol Independent Performance Evaluator") read it off the graph
//! of block size against transfer time, both logarithmic: the knee after which time grows nearly in proportion to the block, so
//! larger blocks raise the rate little. Here the saturation point is the smallest block from which every rate is at least 90 % of
//! all later rates, so no larger block raises the rate by more than 11 %. For Hockney's line, time = t0 + block / r, this is where
//! the slope of the log-log graph passes 0.9, at nine times the half-peak block.

use model::{Estimate, Finding, FindingKind};
use text::say;

use super::wording;
use crate::curve::Group;
use crate::curve_fit::Fit;

/// Share of every later rate that a saturated block must reach.
const NEARLY: f64 = 0.9;
/// Fewest groups in the saturated part of the curve.
const MIN_GROUPS: usize = 3;
/// Smallest factor in block size that the saturated part must span.
const MIN_SPAN: f64 = 2.0;
/// Standard errors by which the rates are varied for the bracket.
const BRACKET_ERRORS: f64 = 2.0;

/// The saturation finding, also for a curve that ends before it saturates. `None` for curves of fewer than three groups.
pub(super) fn saturation(fit: &Fit) -> Option<Finding> {
    let (groups, rates) = (fit.groups.as_slice(), fit.rates.as_slice());
    let last = groups.last()?;
    if groups.len() < MIN_GROUPS {
        return None;
    }
    let errors: Vec<f64> = groups.iter().map(|group| BRACKET_ERRORS * group.se.unwrap_or(0.0)).collect();
    let at = first_saturated(rates, |_| 0.0);
    if groups.len() - at < MIN_GROUPS || (last.block as f64) < MIN_SPAN * groups[at].block as f64 {
        return Some(not_reached(groups, rates));
    }
    // Rates two standard errors higher and lower give the bracket. Its low end is the block before the first saturated one, which
    // is still below saturation.
    let earliest = first_saturated(rates, |i| errors[i]).min(at).saturating_sub(1);
    let latest = first_saturated(rates, |i| -errors[i]).max(at);
    Some(found(groups, at, earliest, latest))
}

/// The smallest index from which every rate, with `bonus(index)` added, reaches [`NEARLY`] of the highest later rate.
fn first_saturated(rates: &[f64], bonus: impl Fn(usize) -> f64) -> usize {
    let mut top = f64::NEG_INFINITY;
    let mut first = rates.len();
    for (i, rate) in rates.iter().enumerate().rev() {
        top = top.max(*rate);
        if rate + bonus(i) < top + NEARLY.ln() {
            break;
        }
        first = i;
    }
    first.min(rates.len().saturating_sub(1))
}

fn found(groups: &[Group], at: usize, earliest: usize, latest: usize) -> Finding {
    let (low, high) = (&groups[earliest], &groups[latest]);
    let block = groups[at].block;
    let bracket = if at == 0 {
        "it is the smallest block measured".into()
    } else {
        say!("between {} and {}", wording::size(low.block), wording::size(high.block))
    };
    let statement = say!(
        "The curve saturates at blocks of {} ({bracket}): from there the time grows in proportion to the block size, and no larger \
         block raises the rate by more than 11 %.",
        wording::size(block)
    );
    Finding {
        kind: FindingKind::Saturation,
        statement,
        estimate: Some(Estimate {
            statistic: "smallest block from which every rate is at least 90 % of all later rates".to_owned(),
            unit: "B".to_owned(),
            value: block as f64,
            low: Some(low.block as f64),
            high: Some(high.block as f64),
            confidence: groups[at].points[0].rate.confidence,
            method: "bracket: the same with all rates two standard errors higher and lower".to_owned(),
            n: (latest - earliest + 1) as u32,
        }),
        block: Some(block),
        cells: groups[at].cells(),
        comparison: None,
    }
}

fn not_reached(groups: &[Group], rates: &[f64]) -> Finding {
    let (first, last) = (&groups[0], &groups[groups.len() - 1]);
    let highest = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let why = if rates.last().is_some_and(|rate| *rate >= highest + NEARLY.ln()) {
        "the rate still rises at the largest block"
    } else {
        "the rates vary by more than 11 % up to the largest block"
    };
    let statement =
        say!("No saturation between {} and {}: {why}.", wording::size(first.block), wording::size(last.block));
    let cells = last.cells();
    Finding { kind: FindingKind::Saturation, statement, estimate: None, block: None, cells, comparison: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::points;
    use crate::curve::testing::*;
    use proptest::prelude::*;

    fn of(sizes: &[u64], time: impl Fn(u64) -> f64, noise: f64, seed: u64) -> Finding {
        let outcomes = curve(sizes, time, noise, seed);
        saturation(&Fit::new(&points(&outcomes), &outcomes)).unwrap()
    }

    #[test]
    fn hockneys_line_saturates_at_nine_times_the_half_peak_block() {
        // Half-peak at 10,000 B: 90,000 B, so 96 KiB is the first NetPIPE size above.
        assert_eq!(of(&netpipe(), hockney(10_000.0, 1.0), 0.0, 1).block, Some(98_304));
        for seed in 0..20 {
            let found = of(&netpipe(), hockney(10_000.0, 1.0), 0.02, seed);
            let estimate = found.estimate.clone().unwrap();
            assert!((49_000.0..200_000.0).contains(&estimate.value), "{}", found.statement.plain());
            assert!(
                estimate.low.unwrap() < 90_000.0 && estimate.high.unwrap() > 85_000.0,
                "{}",
                found.statement.plain()
            );
        }
    }

    #[test]
    fn a_dip_in_the_saturated_part_does_not_move_it() {
        let dipped = |block: u64| {
            hockney(10_000.0, 1.0)(block) * if (1_000_000..1_100_000).contains(&block) { 1.5 } else { 1.0 }
        };
        assert_eq!(of(&netpipe(), dipped, 0.0, 1).block, Some(98_304));
    }

    #[test]
    fn a_rate_that_falls_at_the_end_is_saturated() {
        let falling = |block: u64| hockney(10_000.0, 1.0)(block) * if block > 3_000_000 { 1.4 } else { 1.0 };
        let found = of(&netpipe(), falling, 0.01, 2);
        assert!((60_000..140_000).contains(&found.block.unwrap()), "{}", found.statement.plain());
    }

    #[test]
    fn a_second_rise_counts() {
        // Flat from 10 kB to 100 kB, then twice the rate.
        let two = |block: u64| if block < 100_000 { hockney(100.0, 1.0)(block) } else { block as f64 / 2.0 };
        let found = of(&netpipe(), two, 0.0, 1);
        assert!((98_000..140_000).contains(&found.block.unwrap()), "{}", found.statement.plain());
    }

    #[test]
    fn a_curve_that_ends_too_early_has_no_saturation_point() {
        let sizes: Vec<u64> = (0..14).map(|i| 1 << i).collect();
        let found = of(&sizes, hockney(10_000.0, 1.0), 0.0, 1);
        assert_eq!((found.block, found.estimate.clone()), (None, None));
        assert!(found.statement.plain().contains("still rises"), "{}", found.statement.plain());
    }

    #[test]
    fn rates_that_fall_and_rise_to_the_end_are_not_said_to_rise() {
        let uneven = |block: u64| {
            hockney(10_000.0, 1.0)(block) * if (2_000_000..7_000_000).contains(&block) { 6.0 } else { 1.0 }
        };
        let sizes: Vec<u64> = netpipe().into_iter().filter(|block| *block < 12_000_000).collect();
        let found = of(&sizes, |block| uneven(block) * if block > 7_000_000 { 3.0 } else { 1.0 }, 0.0, 1);
        assert_eq!(found.block, None, "{}", found.statement.plain());
        assert!(found.statement.plain().contains("vary by more than 11 %"), "{}", found.statement.plain());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_point_scales_with_the_half_peak_block(startup in 1_000.0f64..40_000.0, seed: u64) {
            let found = of(&netpipe(), hockney(startup, 1.0), 0.01, seed);
            let ratio = found.block.unwrap() as f64 / (9.0 * startup);
            prop_assert!((0.6..1.8).contains(&ratio), "{} of {}", ratio, found.statement.plain());
        }
    }
}

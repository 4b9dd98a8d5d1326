//! The RTT of small blocks, from all of them.

use model::{Estimate, Finding, FindingKind, Outcome, median};
use text::{Time, say};

use super::wording;
use crate::outcome::Headline;

/// Largest block that counts as small, bytes: one segment, whose transmission takes next to nothing.
pub(super) const SMALL: u64 = 256;
/// Efficiency loss of a median against a mean, as a factor on the half width (the square root of pi / 2).
const MEDIAN_LOSS: f64 = 1.25;

/// The latency finding of a pingpong curve; `None` for streams, where the time of a block is not a latency.
pub(super) fn latency(outcomes: &[&Outcome]) -> Option<Finding> {
    let mut points: Vec<(&Outcome, &Estimate)> = outcomes
        .iter()
        .filter(|outcome| Headline::of(&outcome.spec) == Headline::RoundTrip)
        .filter_map(|outcome| Some((*outcome, outcome.estimate.as_ref()?)))
        .collect();
    points.sort_by_key(|(outcome, _)| outcome.spec.block);
    let (smallest, single) = *points.first()?;
    points.retain(|(outcome, _)| outcome.spec.block <= SMALL);
    let (of, estimate, cells) = match pooled(&points) {
        Some(estimate) => {
            let cells = points.iter().map(|(outcome, _)| outcome.cell).collect();
            (say!("blocks up to {}", wording::size(SMALL)), estimate, cells)
        }
        None => (say!("{} blocks", wording::size(smallest.spec.block)), single.clone(), vec![smallest.cell]),
    };
    let statement = say!(
        "The RTT of {of} is {}; NetPIPE's latency is half of it, {} (not a one-way delay).",
        wording::estimate(&estimate),
        Time(estimate.value / 2.0),
    );
    Some(Finding {
        kind: FindingKind::Latency,
        statement,
        estimate: Some(estimate),
        block: Some(smallest.spec.block),
        cells,
        comparison: None,
    })
}

/// The RTT of the smallest block from a straight line through all small ones (slope by Theil, 1950; intercept by medians), in ns. Their
/// own intervals shrink with their number, the level that they share does not. `None` for fewer than three sizes with intervals.
fn pooled(small: &[(&Outcome, &Estimate)]) -> Option<Estimate> {
    let with_width = |(outcome, estimate): &(&Outcome, &Estimate)| {
        let own = outcome.summary.within_pass.as_deref().and_then(Estimate::relative_half_width);
        Some((outcome.spec.block as f64, estimate.value, estimate.relative_half_width()?, own.unwrap_or(0.0)))
    };
    let points: Vec<(f64, f64, f64, f64)> = small.iter().filter_map(with_width).collect();
    if points.len() < 3 {
        return None;
    }
    let mut slopes = Vec::new();
    for (index, (x, y, ..)) in points.iter().enumerate() {
        slopes.extend(points[index + 1..].iter().map(|(later, higher, ..)| (higher - y) / (later - x)));
    }
    let (slope, first) = (median(&slopes)?, points[0].0);
    let of = |value: fn(&(f64, f64, f64, f64)) -> f64| median(&points.iter().map(value).collect::<Vec<f64>>());
    let value = median(&points.iter().map(|(x, y, ..)| y - slope * (x - first)).collect::<Vec<f64>>())?;
    let (total, own) = (of(|point| point.2)?, of(|point| point.3)?);
    let shared = (total * total - own * own).max(0.0).sqrt();
    let half = value * shared.hypot(MEDIAN_LOSS * own / (points.len() as f64).sqrt());
    Some(Estimate {
        statistic: format!("RTT of a line through the sizes up to {SMALL} B, at the smallest"),
        value,
        low: Some((value - half).max(0.0)),
        high: Some(value + half),
        method: "Theil's line through the sizes; their own intervals pooled, the level that they share kept".to_owned(),
        ..small[0].1.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::curve::testing::*;
    use super::*;
    use model::Pattern;

    fn of(outcomes: &[Outcome]) -> Option<Finding> {
        latency(&outcomes.iter().collect::<Vec<_>>())
    }

    #[test]
    fn one_or_two_small_sizes_give_the_rtt_of_the_smallest() {
        let found = of(&curve(&[64, 1024, 2], hockney(10_000.0, 1.0), 0.0, 1)).unwrap();
        assert_eq!((found.block, found.cells.as_slice()), (Some(2), &[2][..]));
        let [rtt, half] = [20_000.0, 10_000.0].map(Time);
        assert!(
            found.statement.plain().starts_with(&format!("The RTT of 2 B blocks is {rtt}")),
            "{}",
            found.statement.plain()
        );
        assert!(
            found.statement.plain().contains(&format!("NetPIPE's latency is half of it, {half}")),
            "{}",
            found.statement.plain()
        );
    }

    #[test]
    fn many_small_sizes_are_pooled() {
        let sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 1024];
        let found = of(&curve(&sizes, hockney(10_000.0, 1.0), 0.02, 7)).unwrap();
        let estimate = found.estimate.unwrap();
        assert_eq!((found.block, found.cells.len()), (Some(1), 16));
        assert!(
            found.statement.plain().starts_with("The RTT of blocks up to 256 B is "),
            "{}",
            found.statement.plain()
        );
        assert!((estimate.value / 20_000.0 - 1.0).abs() < 0.02, "{estimate:?}");
        assert!(estimate.low.unwrap() < estimate.value && estimate.value < estimate.high.unwrap());
    }

    #[test]
    fn streams_have_none() {
        assert_eq!(of(&[made(Pattern::Stream, 0, 1, &[1e9; 6])]), None);
    }
}

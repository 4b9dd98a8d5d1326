//! The RTT of the smallest block.

use model::units::seconds;
use model::{Finding, FindingKind, Outcome};

use super::wording;
use crate::outcome::Headline;

/// The latency finding of a pingpong curve; `None` for streams, where the time of a block is not a latency.
pub(super) fn latency(outcomes: &[Outcome]) -> Option<Finding> {
    let smallest = outcomes
        .iter()
        .filter(|outcome| Headline::of(&outcome.spec) == Headline::RoundTrip && outcome.estimate.is_some())
        .min_by_key(|outcome| outcome.spec.block)?;
    let estimate = smallest.estimate.clone()?;
    let statement = format!(
        "The RTT of {} blocks is {}; NetPIPE's latency is half of it, {} (not a one-way delay).",
        wording::size(smallest.spec.block),
        wording::estimate(&estimate),
        seconds(estimate.value / 2.0),
    );
    Some(Finding {
        kind: FindingKind::Latency,
        statement,
        estimate: Some(estimate),
        block: Some(smallest.spec.block),
        cells: vec![smallest.cell],
        comparison: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::curve::testing::*;
    use super::*;

    #[test]
    fn the_smallest_block_gives_the_rtt_and_the_half_of_it() {
        let found = latency(&curve(&[64, 1, 2], hockney(10_000.0, 1.0), 0.0, 1)).unwrap();
        assert_eq!((found.block, found.cells.as_slice()), (Some(1), &[1][..]));
        let [rtt, half] = [20_000.0, 10_000.0].map(seconds);
        assert!(found.statement.starts_with(&format!("The RTT of 1 B blocks is {rtt}")), "{}", found.statement);
        assert!(found.statement.contains(&format!("NetPIPE's latency is half of it, {half}")), "{}", found.statement);
    }

    #[test]
    fn streams_have_none() {
        assert_eq!(latency(&[made("stream", 0, 1, &[1e9; 6])]), None);
    }
}

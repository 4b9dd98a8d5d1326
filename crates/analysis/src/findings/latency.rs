//! The round trip of the smallest block.

use model::units::seconds;
use model::{Finding, FindingKind, Outcome};

use super::wording;
use crate::outcome::Headline;

/// The latency finding of a pingpong curve; `None` for streams, whose time of a block is no latency.
pub(super) fn latency(outcomes: &[Outcome]) -> Option<Finding> {
    let smallest = outcomes
        .iter()
        .filter(|outcome| Headline::of(&outcome.spec) == Headline::RoundTrip && outcome.estimate.is_some())
        .min_by_key(|outcome| outcome.spec.block)?;
    let estimate = smallest.estimate.clone()?;
    let statement = format!(
        "The round trip of {} blocks is {}; NetPIPE's latency, half of it, is {}, which is not a one-way delay.",
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
    fn the_smallest_block_is_meant_and_the_half_is_named() {
        let found = latency(&curve(&[64, 1, 2], hockney(10_000.0, 1.0), 0.0, 1)).unwrap();
        assert_eq!((found.block, found.cells.as_slice()), (Some(1), &[1][..]));
        assert!(found.statement.starts_with("The round trip of 1 B blocks is 20.0 us"), "{}", found.statement);
        assert!(found.statement.contains("10.0 us") && found.statement.contains("NetPIPE's latency"));
    }

    #[test]
    fn streams_have_none() {
        assert_eq!(latency(&[made("stream", 0, 1, &[1e9; 6])]), None);
    }
}

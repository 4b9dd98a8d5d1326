//! The points of a block-size curve.

use model::{Estimate, Outcome};

use super::Ranged;

/// Which rate of an outcome a curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Block bits over half the round trip.
    Netpipe,
    /// Bytes that the receivers counted over their time.
    Goodput,
}

impl Measure {
    /// The measure of an outcome: a pingpong has no goodput.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        if outcome.summary.goodput_bps.is_some() { Self::Goodput } else { Self::Netpipe }
    }

    /// The rate's name on an axis or over a column.
    pub(crate) fn rate_label(self) -> &'static str {
        match self {
            Self::Netpipe => "NetPIPE rate",
            Self::Goodput => "goodput",
        }
    }

    pub(super) fn time_label(self) -> &'static str {
        match self {
            Self::Netpipe => "half a round trip",
            Self::Goodput => "time per block",
        }
    }

    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Netpipe => "rate = block / half the round trip, as in NetPIPE",
            Self::Goodput => "goodput as the receiver counted it",
        }
    }
}

/// One block size of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvePoint {
    /// Bytes.
    pub(crate) block: u64,
    /// Bit/s.
    pub(crate) rate: Ranged,
    /// Nanoseconds of a block: its bits over the rate, for a pingpong half of a round trip.
    pub(crate) time: Ranged,
}

/// The points of the outcomes that have a rate above zero.
pub(crate) fn curve_points(outcomes: &[&Outcome], measure: Measure) -> Vec<CurvePoint> {
    outcomes.iter().filter_map(|outcome| curve_point(outcome, measure)).collect()
}

fn curve_point(outcome: &Outcome, measure: Measure) -> Option<CurvePoint> {
    let bps = match measure {
        Measure::Netpipe => outcome.summary.netpipe_bps,
        Measure::Goodput => outcome.summary.goodput_bps,
    };
    let bps = bps.filter(|bps| bps.is_finite() && *bps > 0.0)?;
    let ns = outcome.spec.block as f64 * 8.0 / bps * 1e9;
    if !(ns.is_finite() && ns > 0.0) {
        return None;
    }
    let (slow, fast) = outcome.estimate.as_ref().and_then(rate_span).unzip();
    Some(CurvePoint {
        block: outcome.spec.block,
        rate: Ranged { value: bps, low: slow.map(|s| bps * s), high: fast.map(|f| bps * f) },
        // A rate of 0 is a time without a bound.
        time: Ranged { value: ns, low: fast.map(|f| ns / f), high: slow.map(|s| ns / s) },
    })
}

/// The ends of an estimate's interval as factors of the rate, low end first. The upper end of a time is the lower end of a rate. An
/// interval that reaches 0 bounds a rate by 0 or not at all.
fn rate_span(estimate: &Estimate) -> Option<(f64, f64)> {
    let (value, low, high) = (estimate.value, estimate.low?, estimate.high?);
    if !(value.is_finite() && value > 0.0) || low.is_nan() || high.is_nan() || high <= 0.0 {
        return None;
    }
    let low = low.max(0.0);
    Some(if estimate.unit == "ns" { (value / high, value / low) } else { (low / value, high / value) })
}

/// Largest distance of sizes that are drawn as one, bytes, and the share of the size that it is at most.
const NEAR: u64 = 16;
const SHARE: u64 = 8;

/// The points with each size of NetPIPE's and its neighbours, a few bytes below and above (usually 3), as one: at the middle size,
/// with the median of the three values, and the range of all three intervals. Drawn on their own, neighbours are a zigzag.
pub(crate) fn neighbours_joined(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let triple = |at: usize| -> Option<u64> {
        let [a, b, c] = points.get(at..at + 3)? else { return None };
        let by = b.block.checked_sub(a.block)?;
        let alone =
            |other: Option<&CurvePoint>, from: u64| other.is_none_or(|other| other.block.abs_diff(from) > 2 * by);
        let before = at.checked_sub(1).and_then(|before| points.get(before));
        let apart = alone(before, a.block) && alone(points.get(at + 3), c.block);
        let near = by > 0 && c.block.checked_sub(b.block) == Some(by) && by <= NEAR && by * SHARE <= b.block;
        (near && apart).then_some(by)
    };
    // Three sizes near each other may be what the user asked for; many such triples are neighbours.
    let found: Vec<u64> = (0..points.len()).filter_map(triple).collect();
    let by = found.first().copied().filter(|by| found.iter().filter(|other| *other == by).count() > 1);
    let mut joined = Vec::with_capacity(points.len());
    let mut at = 0;
    while let Some(point) = points.get(at) {
        if by.is_some() && triple(at) == by {
            joined.push(merged(&points[at..at + 3]));
            at += 3;
        } else {
            joined.push(*point);
            at += 1;
        }
    }
    joined
}

fn merged(points: &[CurvePoint]) -> CurvePoint {
    let one = |of: fn(&CurvePoint) -> Ranged| {
        let values: Vec<f64> = points.iter().map(|point| of(point).value).collect();
        let ends =
            |end: fn(Ranged) -> Option<f64>| points.iter().map(move |point| end(of(point)).unwrap_or(of(point).value));
        Ranged {
            value: model::median(&values).unwrap_or(f64::NAN),
            low: ends(|range| range.low).reduce(f64::min),
            high: ends(|range| range.high).reduce(f64::max),
        }
    };
    CurvePoint { block: points[points.len() / 2].block, rate: one(|point| point.rate), time: one(|point| point.time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(block: u64, rate: f64) -> CurvePoint {
        let rate = Ranged { value: rate, low: Some(rate * 0.9), high: Some(rate * 1.1) };
        CurvePoint { block, rate, time: Ranged { value: 1.0, low: None, high: None } }
    }

    fn blocks(sizes: &[u64]) -> Vec<u64> {
        let points: Vec<CurvePoint> = sizes.iter().map(|block| point(*block, 1.0)).collect();
        neighbours_joined(&points).iter().map(|point| point.block).collect()
    }

    #[test]
    fn neighbours_of_netpipes_sizes_are_one_point_and_others_are_kept() {
        assert_eq!(blocks(&[1, 2, 3, 4, 6, 61, 64, 67, 93, 96, 99, 200]), [1, 2, 3, 4, 6, 64, 96, 200]);
        // The sizes around an MTU that somebody asked for, and sizes at equal steps.
        assert_eq!(blocks(&[1, 1_497, 1_500, 1_503]), [1, 1_497, 1_500, 1_503]);
        assert_eq!(blocks(&[1_000, 1_010, 1_020, 1_030, 1_040, 1_050]), [1_000, 1_010, 1_020, 1_030, 1_040, 1_050]);
        let sizes = model::NetpipeSizes::DEFAULT.list();
        assert!(blocks(&sizes).len() * 2 < sizes.len());
    }

    #[test]
    fn a_joined_point_has_the_middle_value_and_the_whole_range() {
        let points =
            [point(61, 7.0), point(64, 9.0), point(67, 8.0), point(125, 1.0), point(128, 1.0), point(131, 1.0)];
        let first = neighbours_joined(&points)[0];
        assert_eq!((first.block, first.rate.value), (64, 8.0));
        assert!((first.rate.low.unwrap() - 6.3).abs() < 1e-9 && (first.rate.high.unwrap() - 9.9).abs() < 1e-9);
        assert_eq!(first.time.low, Some(1.0), "a value without an interval is its own range");
    }

    #[test]
    fn an_interval_that_reaches_zero_remains_an_interval() {
        let estimate = |unit: &str, low, high| {
            rate_span(&Estimate { unit: unit.into(), value: 10.0, low, high, ..crate::sample::blank() })
        };
        assert_eq!(estimate("ns", Some(-5.0), Some(25.0)), Some((0.4, f64::INFINITY)));
        assert_eq!(estimate("bit/s", Some(-5.0), Some(25.0)), Some((0.0, 2.5)));
        assert_eq!(estimate("ns", Some(5.0), Some(20.0)), Some((0.5, 2.0)));
        assert_eq!(estimate("ns", None, Some(20.0)), None);
    }
}

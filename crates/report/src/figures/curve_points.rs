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
        time: Ranged { value: ns, low: fast.map(|f| ns / f), high: slow.map(|s| ns / s) },
    })
}

/// The ends of an estimate's interval as factors of the rate, low end first. The upper end of a time is the lower end of a rate.
fn rate_span(estimate: &Estimate) -> Option<(f64, f64)> {
    let (value, low, high) = (estimate.value, estimate.low?, estimate.high?);
    let span = if estimate.unit == "ns" { (value / high, value / low) } else { (low / value, high / value) };
    let usable = |factor: f64| factor.is_finite() && factor > 0.0;
    (usable(span.0) && usable(span.1)).then_some(span)
}

//! The check of a curve's peak: fresh passes of its fastest size, and streams.

use model::{Direction, EndTally, Estimate, PeakCheck, Spec, Stopping, median};

use super::{Headline, estimate};
use crate::direction::local;

/// A stream of a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckStream {
    /// From the far end to the near one.
    pub reverse: bool,
    /// Its goodput after its start, bit/s.
    pub bps: f64,
    /// The share of its time in which the busier thread of the two ends ran; `None` if it is unreported.
    pub busy: Option<f64>,
}

impl CheckStream {
    /// The stream of a trial of `spec`; `None` if it has no value, and over the loopback interface: what limits there is the host's
    /// memory, in which a block that returns at once finds the caches warm, and a stream does not.
    #[must_use]
    pub fn of(spec: &Spec, near: &EndTally, far: &EndTally) -> Option<Self> {
        if near.flows.first().and_then(local).is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let busy = [near, far].into_iter().filter_map(busy_share).reduce(f64::max);
        let bps = super::trial_value(spec, near, far)?;
        Some(Self { reverse: spec.direction == Direction::Reverse, bps, busy })
    }
}

/// The share of its time in which an end's busiest thread ran. On a busy host it also waits for a core, but then it has more to do at
/// once when it runs, so that the wait limits nothing as long as it is short of the buffers.
fn busy_share(end: &EndTally) -> Option<f64> {
    let thread = end.spent.as_ref()?.busiest?;
    (thread.elapsed_ns > 0).then(|| thread.cpu_ns as f64 / thread.elapsed_ns as f64)
}

/// The check of the size of `spec` from its values on fresh passes and from streams over the same path.
#[must_use]
pub fn peak_check(spec: &Spec, fresh: &[f64], streams: &[CheckStream], rule: &Stopping) -> PeakCheck {
    let headline = Headline::of(spec);
    let rates: Vec<f64> = fresh.iter().filter_map(|value| headline.goodput(spec, *value)).collect();
    let busy: Vec<f64> = streams.iter().filter_map(|stream| stream.busy).collect();
    PeakCheck {
        fresh: mean_rate(&rates, "mean rate on fresh passes", rule),
        sustained: mean_rate(&both_directions(streams), "mean goodput of streams after their start", rule),
        busy: median(&busy),
    }
}

fn mean_rate(rates: &[f64], statistic: &str, rule: &Stopping) -> Option<Estimate> {
    Some(Estimate { statistic: statistic.to_owned(), ..estimate(Headline::Goodput, rates, &[], rule)? })
}

/// The rates of the streams; where both directions were measured in turns, the harmonic mean of each two.
fn both_directions(streams: &[CheckStream]) -> Vec<f64> {
    let of = |reverse: bool| -> Vec<f64> {
        streams.iter().filter(|stream| stream.reverse == reverse && stream.bps > 0.0).map(|stream| stream.bps).collect()
    };
    match (of(false), of(true)) {
        (one, other) if one.is_empty() || other.is_empty() => [one, other].concat(),
        (out, back) => out.iter().zip(&back).map(|(out, back)| 2.0 / (1.0 / out + 1.0 / back)).collect(),
    }
}

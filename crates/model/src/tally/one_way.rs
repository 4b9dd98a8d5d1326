//! One-way delays of each direction, by two hosts' clocks.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RttTally;
use crate::Histogram;

/// One-way delays by the times in the datagrams (RFC 8762). Each is the difference of two clocks, so its error is the clocks'
/// difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OneWay {
    /// From this end to the other.
    pub outbound: Delay,
    /// From the other end to this one.
    #[serde(rename = "return")]
    pub return_trip: Delay,
    /// Median time within the other end, ns, which is neither part of the delays nor of the round trip. The highest one of several
    /// trials.
    pub reflector_p50_ns: u64,
    /// This end's report on its clock.
    pub near_clock: WallClock,
    /// The other end's report on its clock.
    pub far_clock: WallClock,
    /// Largest difference of the two clocks by both ends' reports, ns; null if one of them does not follow UTC.
    pub clock_error_ns: Option<u64>,
    /// Minimum and maximum of far clock less near clock, ns. No delay is negative, so the shortest delays bound it, independent of
    /// the ends' reports, unless a clock was set during the trial.
    pub offset_ns: (i64, i64),
    /// Datagrams that did not reach the other end, up to the last one that came back; the direction of later losses is unknown.
    /// Null if datagrams were lost and the other end does not count.
    pub lost_outbound: Option<u64>,
    /// Datagrams that reached the other end and did not come back; null in the same cases.
    pub lost_return: Option<u64>,
}

/// An end's report on its wall clock (the error estimate of RFC 4656, 4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WallClock {
    /// Whether it is synchronised to UTC by an external source (the S bit).
    pub follows_utc: bool,
    /// Its largest error, ns (multiplier and scale); null without a valid report.
    pub error_ns: Option<u64>,
}

/// Delays of one direction, ns; negative if the clocks differ by more than the delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Delay {
    /// Number of delays.
    pub count: u64,
    /// Shortest.
    pub min_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// 99th percentile; null with fewer than 1,000 delays.
    pub p99_ns: Option<i64>,
    /// Longest.
    pub max_ns: i64,
    /// All delays less the shortest; absent if several trials were merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_min: Option<Histogram>,
}

impl OneWay {
    /// Several trials together; `None` without any. Percentiles are of all their delays, clock errors are the largest reported
    /// ones, and the offset range is the one that fits all trials, or the widest if none does.
    #[must_use]
    pub fn merged(trials: &[&Self]) -> Option<Self> {
        let offsets = || trials.iter().map(|trial| trial.offset_ns);
        let narrow = (offsets().map(|offset| offset.0).max()?, offsets().map(|offset| offset.1).min()?);
        let wide = (offsets().map(|offset| offset.0).min()?, offsets().map(|offset| offset.1).max()?);
        let sum = |lost: fn(&Self) -> Option<u64>| trials.iter().map(|trial| lost(trial)).sum::<Option<u64>>();
        let clock_errors = trials.iter().map(|trial| trial.clock_error_ns).collect::<Option<Vec<_>>>();
        Some(Self {
            outbound: Delay::merged(trials.iter().map(|trial| &trial.outbound))?,
            return_trip: Delay::merged(trials.iter().map(|trial| &trial.return_trip))?,
            reflector_p50_ns: trials.iter().map(|trial| trial.reflector_p50_ns).max()?,
            near_clock: trials.iter().map(|trial| trial.near_clock).reduce(WallClock::worse)?,
            far_clock: trials.iter().map(|trial| trial.far_clock).reduce(WallClock::worse)?,
            clock_error_ns: clock_errors.and_then(|errors| errors.into_iter().max()),
            offset_ns: if narrow.0 <= narrow.1 { narrow } else { wide },
            lost_outbound: sum(|trial| trial.lost_outbound),
            lost_return: sum(|trial| trial.lost_return),
        })
    }
}

impl WallClock {
    /// The report that is valid for both.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            follows_utc: self.follows_utc && other.follows_utc,
            error_ns: self.error_ns.zip(other.error_ns).map(|(own, others)| own.max(others)),
        }
    }
}

impl Delay {
    fn merged<'a>(trials: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let min_ns = trials.clone().map(|trial| trial.min_ns).min()?;
        let mut all = Histogram::new();
        for trial in trials.clone() {
            let shift = trial.min_ns.abs_diff(min_ns);
            let kept = trial.above_min.iter().flat_map(Histogram::buckets);
            kept.for_each(|(ns, count)| all.record_n(ns.saturating_add(shift), count));
        }
        let count: u64 = trials.clone().map(|trial| trial.count).sum();
        let mean_ns = trials.clone().map(|trial| trial.mean_ns * trial.count as f64).sum::<f64>() / count as f64;
        let max_ns = trials.map(|trial| trial.max_ns).max()?;
        Self::digest(count, (min_ns, max_ns), mean_ns, &all)
    }

    /// `None` if `above` is empty.
    fn digest(count: u64, (min_ns, max_ns): (i64, i64), mean_ns: f64, above: &Histogram) -> Option<Self> {
        let at = |share: f64| Some(min_ns.saturating_add_unsigned(above.quantile(share)?).min(max_ns));
        Some(Self {
            count,
            min_ns,
            p50_ns: at(0.5)?,
            mean_ns,
            p99_ns: at(0.99).filter(|_| count >= RttTally::P99_SAMPLES),
            max_ns,
            above_min: None,
        })
    }
}

/// Counts delays in little memory, independent of their number.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    /// The first delay, from which the others are counted: delays of one direction are close to each other.
    anchor: Option<i64>,
    above: Histogram,
    below: Histogram,
    bounds: (i64, i64),
    /// Sum of the differences from the anchor.
    sum: i128,
}

impl Delays {
    /// Counts one delay, ns.
    pub fn record(&mut self, ns: i64) {
        let anchor = *self.anchor.get_or_insert_with(|| {
            self.bounds = (ns, ns);
            ns
        });
        self.bounds = (self.bounds.0.min(ns), self.bounds.1.max(ns));
        self.sum += i128::from(ns) - i128::from(anchor);
        let side = if ns < anchor { &mut self.below } else { &mut self.above };
        side.record(ns.abs_diff(anchor));
    }

    /// The digest with all delays; `None` without any.
    #[must_use]
    pub fn digest(&self) -> Option<Delay> {
        let anchor = self.anchor?;
        let (min_ns, count) = (self.bounds.0, self.above.count() + self.below.count());
        let mut above_min = Histogram::new();
        let mut add = |ns: i64, count| above_min.record_n(u64::try_from(ns.saturating_sub(min_ns)).unwrap_or(0), count);
        self.below.buckets().for_each(|(ns, count)| add(anchor.saturating_sub_unsigned(ns), count));
        self.above.buckets().for_each(|(ns, count)| add(anchor.saturating_add_unsigned(ns), count));
        let mean_ns = anchor as f64 + self.sum as f64 / count as f64;
        let digest = Delay::digest(count, self.bounds, mean_ns, &above_min)?;
        Some(Delay { above_min: Some(above_min), ..digest })
    }
}

impl FromIterator<i64> for Delays {
    fn from_iter<I: IntoIterator<Item = i64>>(delays: I) -> Self {
        let mut all = Self::default();
        delays.into_iter().for_each(|ns| all.record(ns));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(delays: impl IntoIterator<Item = i64>) -> Delay {
        delays.into_iter().collect::<Delays>().digest().unwrap()
    }

    fn one_way(outbound: Delay, offset_ns: (i64, i64)) -> OneWay {
        OneWay {
            return_trip: outbound.clone(),
            outbound,
            reflector_p50_ns: 5,
            near_clock: WallClock { follows_utc: true, error_ns: Some(10) },
            far_clock: WallClock { follows_utc: true, error_ns: Some(20) },
            clock_error_ns: Some(30),
            offset_ns,
            lost_outbound: Some(1),
            lost_return: Some(2),
        }
    }

    #[test]
    fn a_digest_is_of_the_nearest_ranks() {
        let digest = of((1..=1000).rev());
        assert_eq!((digest.min_ns, digest.p50_ns, digest.p99_ns, digest.max_ns), (1, 500, Some(990), 1000));
        let digest = of([-5, 7]);
        // The shortest is counted among those that are 1 ns above it, where a histogram begins.
        assert_eq!((digest.min_ns, digest.p50_ns, digest.p99_ns, digest.mean_ns), (-5, -4, None, 1.0));
        assert_eq!(Delays::default().digest(), None);
    }

    #[test]
    fn trials_together_have_the_percentiles_of_all() {
        let [low, high] = [of(-600..0), of(0..600)];
        let mut second = one_way(high, (-50, 40));
        second.far_clock.follows_utc = false;
        second.clock_error_ns = None;
        second.lost_outbound = None;
        let merged = OneWay::merged(&[&one_way(low, (-20, 70)), &second]).unwrap();
        assert_eq!((merged.outbound.count, merged.outbound.min_ns, merged.outbound.max_ns), (1200, -600, 599));
        assert_eq!((merged.outbound.p50_ns, merged.outbound.p99_ns, merged.outbound.mean_ns), (-1, Some(587), -0.5));
        assert_eq!((merged.offset_ns, merged.lost_outbound, merged.lost_return), ((-20, 40), None, Some(4)));
        let clock = WallClock { follows_utc: false, error_ns: Some(20) };
        assert_eq!((merged.clock_error_ns, merged.far_clock), (None, clock));
        assert_eq!(OneWay::merged(&[]), None);
    }

    #[test]
    fn offsets_that_no_clock_has_at_once_are_reported_as_the_widest() {
        let [first, second] = [one_way(of([1]), (-20, -10)), one_way(of([1]), (10, 20))];
        assert_eq!(OneWay::merged(&[&first, &second]).unwrap().offset_ns, (-20, 20));
    }

    proptest! {
        #[test]
        fn a_digest_is_near_its_delays(base in -1_000_000_000_000_i64..1_000_000_000_000, mut above in prop::collection::vec(0_i64..50_000_000, 1..300)) {
            let digest = of(above.iter().map(|ns| base + ns));
            above.sort_unstable();
            let exact = above[(above.len() - 1) / 2];
            // Two buckets' width of the distance between the delays, wherever the clocks are.
            let width = (above[above.len() - 1] - above[0]) / 500 + 2;
            prop_assert_eq!((digest.min_ns, digest.max_ns), (base + above[0], base + above[above.len() - 1]));
            prop_assert!((digest.p50_ns - base - exact).abs() <= width, "{:?} {}", digest, exact);
        }
    }
}

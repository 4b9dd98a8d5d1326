//! Where the time of a round trip goes, by the kernel's time stamps.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RttTally;
use crate::stamps::{AnatomyTally, PartTally, Parts};

/// The anatomy of a cell's round trips: means over the stamped exchanges of all trials. The six parts add up to
/// `round_trip_ns`; they are null without a stamped exchange.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Anatomy {
    /// From the near program's send call to its having the reply, ns.
    pub round_trip_ns: Option<f64>,
    /// From the near program's send call to the stamp of its departure, ns.
    pub near_send_ns: Option<f64>,
    /// Between the two hosts' stamps, there and back, ns: the round trip by the near host's stamps less the stay at the far host by
    /// that host's stamps.
    pub network_ns: Option<f64>,
    /// From the stamp of the arrival at the far host to the far program having the request, ns. With blocking waits this includes
    /// the wake-up of its thread.
    pub far_wakeup_ns: Option<f64>,
    /// From then to the far program's send call, ns.
    pub far_turnaround_ns: Option<f64>,
    /// From the far program's send call to the stamp of its departure, ns.
    pub far_send_ns: Option<f64>,
    /// From the stamp of the arrival at the near host to the near program having the reply, ns.
    pub near_wakeup_ns: Option<f64>,
    /// Exchanges with all stamps of both ends, on which the figures are based.
    pub stamped: u64,
    /// Exchanges that were to be stamped and lack a stamp.
    pub missing: u64,
    /// Exchanges during which a host's wall clock was set; they are left out.
    pub stepped: u64,
    /// Of the stamped exchanges, those whose network part is by the clocks of both NICs.
    pub hardware: u64,
    /// Median of the stamped round trips less that of the others in the same trials, ns: the cost of the stamps. May be negative.
    pub observer_ns: Option<f64>,
    /// Median of the stamped round trips, ns.
    pub round_trip_p50_ns: Option<u64>,
    /// Their 99th percentile, ns; null with fewer than 1,000.
    pub round_trip_p99_ns: Option<u64>,
    /// Each part in detail.
    pub parts: Option<Parts<PartFigures>>,
    /// Why there are no stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One part of the stamped round trips.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PartFigures {
    /// Mean, ns.
    pub mean_ns: f64,
    /// Its share of the mean round trip, 0 to 1.
    pub share: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns; null with fewer than 1,000 exchanges.
    pub p99_ns: Option<u64>,
}

impl AnatomyTally {
    /// Its figures; `plain_p50_ns` is the median of the round trips without stamps in the same trials.
    #[must_use]
    pub fn figures(&self, plain_p50_ns: Option<f64>) -> Anatomy {
        let counted = Anatomy {
            stamped: self.stamped,
            missing: self.missing,
            stepped: self.stepped,
            hardware: self.hardware,
            refused: self.refused.clone(),
            ..Anatomy::default()
        };
        if self.stamped == 0 {
            return counted;
        }
        let mean = |of: &PartTally| of.sum_ns as f64 / self.stamped as f64;
        let enough = self.stamped >= RttTally::P99_SAMPLES;
        let quantile = |of: &PartTally, q| of.histogram.quantile(q);
        let whole = mean(&self.round_trip);
        let parts = Parts::of(|part| {
            let of = self.parts.get(part);
            PartFigures {
                mean_ns: mean(of),
                share: if whole > 0.0 { mean(of) / whole } else { 0.0 },
                p50_ns: quantile(of, 0.5).unwrap_or(0),
                p99_ns: quantile(of, 0.99).filter(|_| enough),
            }
        });
        let median = quantile(&self.round_trip, 0.5);
        Anatomy {
            round_trip_ns: Some(whole),
            near_send_ns: Some(parts.near_send.mean_ns),
            network_ns: Some(parts.network.mean_ns),
            far_wakeup_ns: Some(parts.far_wakeup.mean_ns),
            far_turnaround_ns: Some(parts.far_turnaround.mean_ns),
            far_send_ns: Some(parts.far_send.mean_ns),
            near_wakeup_ns: Some(parts.near_wakeup.mean_ns),
            observer_ns: median.zip(plain_p50_ns).map(|(stamped, plain)| stamped as f64 - plain),
            round_trip_p50_ns: median,
            round_trip_p99_ns: quantile(&self.round_trip, 0.99).filter(|_| enough),
            parts: Some(parts),
            ..counted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::Part;

    fn tally(parts: [u64; 6]) -> AnatomyTally {
        let mut tally = AnatomyTally { stamped: 1, ..AnatomyTally::default() };
        tally.round_trip.record(parts.iter().sum());
        Part::ALL.into_iter().zip(parts).for_each(|(part, ns)| tally.parts.get_mut(part).record(ns));
        tally
    }

    #[test]
    fn figures_are_means_that_add_up_and_shares_of_the_whole() {
        let mut both = tally([1, 2, 3, 4, 5, 5]);
        both.merge(&AnatomyTally { missing: 3, stepped: 1, ..tally([3, 2, 3, 4, 5, 13]) });
        let figures = both.figures(Some(20.0));
        assert_eq!((figures.stamped, figures.missing, figures.stepped), (2, 3, 1));
        assert_eq!(
            (figures.round_trip_ns, figures.near_send_ns, figures.near_wakeup_ns),
            (Some(25.0), Some(2.0), Some(9.0))
        );
        assert_eq!((figures.observer_ns, figures.round_trip_p99_ns), (Some(0.0), None));
        let parts = figures.parts.unwrap();
        let shares: f64 = Part::ALL.into_iter().map(|part| parts.get(part).share).sum();
        assert!((shares - 1.0).abs() < 1e-12, "{shares}");
    }

    #[test]
    fn without_a_stamped_exchange_all_figures_are_null() {
        let refused = AnatomyTally { refused: Some("no".into()), missing: 7, ..AnatomyTally::default() };
        let figures = refused.figures(Some(1.0));
        assert_eq!((figures.round_trip_ns, figures.parts, figures.observer_ns), (None, None, None));
        assert_eq!((figures.missing, figures.refused.as_deref()), (7, Some("no")));
    }
}

//! The outcome of a cell.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Anatomy, Ceiling, CitedError, Cost, Direction, Estimate, Histogram, OneWay, Responsiveness, Shared, SizeCount,
    Spec, Trial, Trust, Verdict, Why,
};

/// The record of one cell: its spec, its trials and their result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Outcome {
    /// The cell's number within the run.
    pub cell: u32,
    /// The measurement.
    pub spec: Shared<Spec>,
    /// The flat figures that scripts read.
    pub summary: Summary,
    /// The headline statistic with its interval; null if no trial gave a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// All trials' round trips together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The trials, in the order in which they ended.
    pub trials: Vec<Trial>,
}

impl Outcome {
    /// With payload in both directions, the goodput of each with its interval, outbound first; those that have none are left out.
    pub fn directions(&self) -> impl Iterator<Item = (Direction, Estimate)> {
        let all = self.summary.directions().zip(self.estimate.iter().cycle());
        all.filter_map(|((direction, of), sum)| {
            let (low, high) = (of.ci95_low, of.ci95_high);
            Some((direction, Estimate { value: of.goodput_bps?, low, high, ..sum.clone() }))
        })
    }
}

/// The flat figures of an outcome. A figure that the pattern does not have is absent: a pingpong has no goodput.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Summary {
    /// Payload that the receivers counted, over the receivers' time, bit/s; for `both` the sum of the two directions. Mean of
    /// trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// Payload that the senders counted, over the senders' time, bit/s. Mean of trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_bps: Option<f64>,
    /// Payload bytes sent, all trials; null if they are unreported, as in some imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Payload bytes received, all trials; null if they are unreported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Median round trip over all trials' samples, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_p50_ns: Option<f64>,
    /// 99th percentile of the round trip over all trials' samples, ns; null with too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_p99_ns: Option<f64>,
    /// Interval of the median round trip, ns: two order statistics of the trials' own medians, which hold the median of such medians
    /// with 95 % or more. Null for a point of a curve and with fewer than 6 trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_p50_interval_ns: Option<[f64; 2]>,
    /// The same of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_p99_interval_ns: Option<[f64; 2]>,
    /// Round trips per second. Mean of trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions_per_s: Option<f64>,
    /// Distinct datagrams received per second. Mean of trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<f64>,
    /// Datagrams that never arrived, all trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_lost: Option<u64>,
    /// Datagrams sent, all trials; null for transports without datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_sent: Option<u64>,
    /// Datagrams that arrived after one with a higher number, all trials. They are not lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_reordered: Option<u64>,
    /// Second and further copies of received datagrams, all trials. No other count includes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_duplicated: Option<u64>,
    /// Of a mix of sizes, the datagrams of each size, ascending, all trials; absent for one size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeCount>,
    /// Jitter of the arriving datagrams (RFC 3550), ns: mean over the trials of the largest of the two directions; null if the
    /// datagrams carry no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// Segments that TCP retransmitted, all trials, both ends; null for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Their payload, bytes; null before Linux 4.19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_retransmitted: Option<u64>,
    /// TCP's smoothed RTT at the senders of a stream, ns: median over the readings of all trials after the warm-up, weighted by flow
    /// and not by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_rtt_ns: Option<f64>,
    /// The congestion window of one connection of a stream, bytes: the same median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<f64>,
    /// The start-up of a steady stream's connections; null for other measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_up: Option<StartUp>,
    /// The goodput of the seconds of a single trial; null for several trials, and for one of less than 3 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Seconds>,
    /// Low end of the estimate's interval, in the estimate's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_low: Option<f64>,
    /// High end of the estimate's interval, in the estimate's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_high: Option<f64>,
    /// Trials that gave a value.
    pub trials: u32,
    /// Calls that sent payload, all trials, both ends; null if they are unreported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_sent: Option<u64>,
    /// Calls that received payload, all trials, both ends; null if they are unreported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_received: Option<u64>,
    /// Measured time of all trials, ns; null if it is unreported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// NetPIPE's rate: block bits over half the round trip (for a stream curve: over the time of a block), bit/s. Half a
    /// round trip is NetPIPE's convention, not a one-way delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netpipe_bps: Option<f64>,
    /// Jain's fairness index of the flows' received bytes (streams) or round trips: 1 if all are equal, 1/n if one of n has
    /// everything. Mean of trials; null with one flow, and for `both`, whose directions have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// The spread of the flows' shares; null with one flow and for `both`. The trials have the counts of each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Shares>,
    /// The result of a probe during the stream; null without `--probe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Box<Responsiveness>>,
    /// One-way delays of each direction, over all trials; null if the far end reports no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<Box<OneWay>>,
    /// The parts of the round trips by the kernel's time stamps; null without `--anatomy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anatomy: Option<Box<Anatomy>>,
    /// For a point of a curve: the estimate without the effects that each pass has on all sizes alike (its connections, the state
    /// of the machine). It shows how certain the point is relative to the others; `estimate` includes both parts. Null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_pass: Option<Box<Estimate>>,
    /// For the fastest size of a curve: what was measured anew to check the peak; null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Box<PeakCheck>>,
    /// The highest goodput that the path could carry; null if no bound is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// CPU cost; null on curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<Cost>>,
    /// What limited it; null on curves, if nothing is known, and for `both`, whose directions have different senders and queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Box<Why>>,
    /// Errors of the last self-test of the measuring host in this regime (the nearest tested rate, round trips, losses); the first
    /// one is that of the headline figure. Absent without a self-test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accuracy: Vec<CitedError>,
    /// For `both`, these figures of the payload from near to far alone, with what limited it; null elsewhere. Its estimate is a
    /// goodput, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound: Option<Box<Summary>>,
    /// The same of the payload from far to near.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub return_trip: Option<Box<Summary>>,
    /// Flags that say what to know before relying on the figures.
    pub verdicts: Vec<Verdict>,
    /// How far to rely on the figures; null if no trial gave a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// How long connections took to settle. Their start-up does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StartUp {
    /// When it was over, ns since the receiver began: median of the trials.
    pub over_ns: u64,
    /// Length of a trial in which the rate would settle, ns, estimated from its growth; null if it has settled.
    pub needs_ns: Option<u64>,
}

/// The goodput of the whole seconds of a trial, in bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Seconds {
    /// The lowest.
    pub min_bps: f64,
    /// Their median.
    pub median_bps: f64,
    /// The highest.
    pub max_bps: f64,
}

impl Summary {
    /// The figures of each direction of `both`, outbound first; none of one direction.
    pub fn directions(&self) -> impl Iterator<Item = (Direction, &Self)> {
        let all = [(Direction::Send, &self.outbound), (Direction::Reverse, &self.return_trip)];
        all.into_iter().filter_map(|(direction, of)| Some((direction, of.as_deref()?)))
    }

    /// The same, to be changed.
    pub fn directions_mut(&mut self) -> impl Iterator<Item = (Direction, &mut Self)> {
        let all = [(Direction::Send, &mut self.outbound), (Direction::Reverse, &mut self.return_trip)];
        all.into_iter().filter_map(|(direction, of)| Some((direction, of.as_deref_mut()?)))
    }

    /// What limited it: of one direction one statement, of both one for each that has any.
    pub fn limits(&self) -> impl Iterator<Item = (Option<Direction>, &Why)> {
        let each = self.directions().map(|(direction, of)| (Some(direction), of));
        std::iter::once((None, self)).chain(each).filter_map(|(direction, of)| Some((direction, of.why.as_deref()?)))
    }
}

/// The flows' shares of the received bytes (streams) or round trips, relative to an equal share: 1 is the share of each flow
/// if all are equal.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Shares {
    /// The smallest share of any flow in any trial.
    pub min: f64,
    /// The median of the trials' medians.
    pub median: f64,
    /// The largest share of any flow in any trial.
    pub max: f64,
    /// Flows that got nothing in a trial, in the trial with the most of them.
    pub empty: u32,
}

/// The check of a curve's peak after its passes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct PeakCheck {
    /// The rate of the size on fresh passes, which did not choose it, bit/s: NetPIPE's for round trips, the goodput for streams. Null
    /// if too few passes fit into the budget.
    pub fresh: Option<Estimate>,
    /// What streams carried after their start, which empties the token buckets on the path, bit/s: the goodput, for round trips the
    /// harmonic mean of both directions, as a block goes there and back. Null if the transport is not TCP's, or the streams did not
    /// fit into the budget.
    pub sustained: Option<Estimate>,
    /// The share of its time in which the busier thread of the two ends ran during the streams, as a fraction: the median over the
    /// streams. Where both threads mostly did not run, the path limits. Null if it is unreported.
    pub busy: Option<f64>,
}

//! The outcome of a cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ceiling, Cost, Histogram, OneWay, Responsiveness, Spec, Trial, Why};

/// The record of one cell: its spec, its trials and their result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The cell's number within the run.
    pub cell: u32,
    /// The measurement.
    pub spec: Spec,
    /// The flat figures that scripts read.
    pub summary: Summary,
    /// The headline statistic with its interval; null if no trial gave a value.
    pub estimate: Option<Estimate>,
    /// All trials' round trips together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The trials, in the order in which they ended.
    pub trials: Vec<Trial>,
}

/// The flat figures of an outcome. A figure that the pattern does not have is null: a pingpong has no goodput.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Payload that the receivers counted, over the receivers' time, bit/s; for `both` the sum of the two directions. Mean of
    /// trials.
    pub goodput_bps: Option<f64>,
    /// Payload that the senders counted, over the senders' time, bit/s. Mean of trials.
    pub sender_bps: Option<f64>,
    /// Payload bytes sent, all trials; null if they are unreported, as in some imports.
    pub bytes_sent: Option<u64>,
    /// Payload bytes received, all trials; null if they are unreported.
    pub bytes_received: Option<u64>,
    /// Median round trip over all trials' samples, ns.
    pub rtt_p50_ns: Option<f64>,
    /// 99th percentile of the round trip over all trials' samples, ns; null with too few samples.
    pub rtt_p99_ns: Option<f64>,
    /// Round trips per second. Mean of trials.
    pub transactions_per_s: Option<f64>,
    /// Distinct datagrams received per second. Mean of trials.
    pub packets_per_s: Option<f64>,
    /// Datagrams that never arrived, all trials.
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
    /// Low end of the estimate's interval, in the estimate's unit.
    pub ci95_low: Option<f64>,
    /// High end of the estimate's interval, in the estimate's unit.
    pub ci95_high: Option<f64>,
    /// Trials that gave a value.
    pub trials: u32,
    /// Calls that sent payload, all trials, both ends; null if they are unreported.
    pub calls_sent: Option<u64>,
    /// Calls that received payload, all trials, both ends; null if they are unreported.
    pub calls_received: Option<u64>,
    /// Measured time of all trials, ns; null if it is unreported.
    pub duration_ns: Option<u64>,
    /// NetPIPE's rate: block bits over half the round trip (for a stream curve: over the time of a block), bit/s. Half a
    /// round trip is NetPIPE's convention, not a one-way delay.
    pub netpipe_bps: Option<f64>,
    /// Jain's fairness index of the flows' received bytes (streams) or round trips: 1 if all are equal, 1/n if one of n has
    /// everything. Mean of trials; null with one flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// The spread of the flows' shares; null with one flow. The trials have the counts of each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Shares>,
    /// The result of a probe during the stream; null without `--probe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Responsiveness>,
    /// One-way delays of each direction, over all trials; null if the far end reports no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// For a point of a curve: the estimate without the effects that each pass has on all sizes alike (its connections, the state
    /// of the machine). It shows how certain the point is relative to the others; `estimate` includes both parts. Null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_pass: Option<Estimate>,
    /// The highest goodput that the path could carry; null if no bound is known.
    #[serde(default)]
    pub ceiling: Option<Ceiling>,
    /// CPU cost; null on curves.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// What limited it; null on curves and if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Flags that say what to know before relying on the figures.
    pub verdicts: Vec<Verdict>,
    /// How far to rely on the figures; null if no trial gave a value.
    pub trust: Option<Trust>,
}

/// The flows' shares of the received bytes (streams) or round trips, relative to an equal share: 1 is the share of each flow
/// if all are equal.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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

/// A number with its unit, its interval and its method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The statistic in words, such as `mean over trials of the goodput`.
    pub statistic: String,
    /// `bit/s`, `ns`, `1/s`, or `ratio` for one value over another.
    pub unit: String,
    /// The point estimate.
    pub value: f64,
    /// Low end; null with too few trials for an interval.
    pub low: Option<f64>,
    /// High end; null with too few trials for an interval.
    pub high: Option<f64>,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// The method of the interval.
    pub method: String,
    /// Number of independent values (trials, or batches of correlated trials).
    pub n: u32,
}

impl Estimate {
    /// The longer half of the interval relative to the value; `None` without an interval or for a value of 0. If the low end is
    /// cut at zero, the other half counts.
    #[must_use]
    pub fn relative_half_width(&self) -> Option<f64> {
        let arm = (self.high? - self.value).max(self.value - self.low?);
        (self.value != 0.0).then(|| (arm / self.value).abs())
    }
}

/// A flag on a trial or an outcome that says what to know before relying on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing moved for the stall time, which ended the trial.
    Stalled,
    /// The trial was too short for the clock, or had too few arrivals.
    ResolutionLimited,
    /// The two ends' byte counts do not add up.
    ByteCountMismatch,
    /// The interval did not become as narrow as requested before the budget or the trials were spent. On a curve this holds for
    /// the estimate within passes as well, and the two must agree.
    TargetMissed,
    /// Fewer than 3 trials: a value without an interval.
    FewTrials,
    /// Ended before its stop rule was met (an interrupt or a lost peer).
    CutShort,
    /// Another measurement ran on one of the hosts at the same time.
    Overlapped,
    /// Round trips were timed in batches; percentiles are of batch means.
    BatchTimed,
    /// Datagrams were dropped at the receiver's socket: by the host, not by the path.
    SocketDrops,
    /// Datagrams were lost.
    Loss,
    /// NetPIPE's limit or the budget left out blocks larger than this one.
    SelfLimited,
    /// The two ends are threads or processes of one host without a network between them.
    OneHost,
    /// The kernel's TCP metrics cache of a sending end was on and was not flushed: a trial may have started with values that an
    /// earlier one left there.
    MetricsKept,
    /// The goodput is above its ceiling: the measurement or a figure behind the ceiling is wrong.
    AboveCeiling,
    /// A flow got nothing in a trial in which all flows had the same time.
    Starved,
    /// The plan's requirements were not met before at least one trial, which was skipped.
    Unmet,
    /// The lab's emulator delivered packets more than 1 ms late: the measured path is not the requested one.
    EmulatorLate,
    /// The lab did not report on its emulated links: whether they were on time is unknown.
    EmulatorUnreported,
    /// Receivers slept between their reads (`delayed_reads`), which applications do not do.
    DelayedReads,
    /// Connections were closed while the next ones were opened (`overlap_close`).
    OverlapClose,
}

/// How far to rely on an outcome that has a value: its worst verdict decides, and a wide interval is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The ends agree and the interval is as narrow as requested.
    High,
    /// The ends agree; the interval is wider than requested, or there was loss or overlap.
    #[default]
    Fair,
    /// The trials are too few or too short.
    Low,
    /// Stalled, the ends disagree, or no trial was complete: do not use the figures.
    None,
}

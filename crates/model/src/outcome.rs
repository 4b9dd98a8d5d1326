//! What a cell's trials amount to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ceiling, Cost, Histogram, OneWay, Responsiveness, Spec, Trial, Why};

/// One immutable, self-describing record: a cell's spec, its trials and what they amount to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The cell's number within the run.
    pub cell: u32,
    /// The measurement.
    pub spec: Spec,
    /// The flat figures that scripts read.
    pub summary: Summary,
    /// The headline statistic with its interval; null when no trial gave a value.
    pub estimate: Option<Estimate>,
    /// All trials' round trips together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The trials, in the order they ended.
    pub trials: Vec<Trial>,
}

/// The flat figures of an outcome. Null where the pattern has no such thing: a pingpong has no goodput.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// What the receivers counted over the receivers' time, bit/s; for `both` the sum of the two directions. Mean of trials.
    pub goodput_bps: Option<f64>,
    /// What the senders counted over the senders' time, bit/s. Mean of trials.
    pub sender_bps: Option<f64>,
    /// Payload bytes sent, all trials; null where no end told them, as in some imports.
    pub bytes_sent: Option<u64>,
    /// Payload bytes received, all trials; null where no end told them.
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
    /// Second and further copies of datagrams that arrived, all trials. They are in no other count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_duplicated: Option<u64>,
    /// Low end of the estimate's interval, in the estimate's unit.
    pub ci95_low: Option<f64>,
    /// High end of the estimate's interval, in the estimate's unit.
    pub ci95_high: Option<f64>,
    /// Trials that gave a value.
    pub trials: u32,
    /// Calls that sent payload, all trials, both ends; null where no end told them.
    pub calls_sent: Option<u64>,
    /// Calls that received payload, all trials, both ends; null where no end told them.
    pub calls_received: Option<u64>,
    /// Measured time of all trials, ns; null where no end told it.
    pub duration_ns: Option<u64>,
    /// NetPIPE's rate: block bits over half the round trip (for a stream curve: over the time of a block), bit/s. Half a
    /// round trip is NetPIPE's convention, not a one-way delay.
    pub netpipe_bps: Option<f64>,
    /// Jain's fairness index of the flows' shares of what was received (streams) or of round trips: 1 where all are equal, 1/n
    /// where one of n has everything. Mean of trials; null with one flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// How far the flows' shares lie apart; null with one flow. What each flow got stands in the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Shares>,
    /// What a probe beside the stream found; null without `--probe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Responsiveness>,
    /// Delays of each way apart, over all trials; null where no end tells its times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// A point of a curve: the estimate without what each pass did to all sizes alike (its connections, the machine's pace
    /// meanwhile), which is how surely the point stands among the others. `estimate` holds both parts. Null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_pass: Option<Estimate>,
    /// The most goodput that the path could carry; null where nothing that bounds it is known.
    #[serde(default)]
    pub ceiling: Option<Ceiling>,
    /// What it cost; null on curves.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// What held it back; null on curves and where nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// What to know before trusting the figures.
    pub verdicts: Vec<Verdict>,
    /// How far to trust them; null where no trial gave a value.
    pub trust: Option<Trust>,
}

/// The flows' shares of what was received (streams) or of round trips, as parts of an equal share: 1 is what each would have
/// if all had the same.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// The smallest share of any flow in any trial.
    pub min: f64,
    /// The middle one; the median of the trials' medians.
    pub median: f64,
    /// The largest share of any flow in any trial.
    pub max: f64,
    /// Flows that got nothing in a trial, in the trial with the most of them.
    pub empty: u32,
}

/// A number with its unit, its interval and the way it was got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// What is estimated, in words, such as `mean over trials of the goodput`.
    pub statistic: String,
    /// `bit/s`, `ns`, `1/s`, or `ratio` for one value over another.
    pub unit: String,
    /// The point estimate.
    pub value: f64,
    /// Low end; null where the trials are too few for an interval.
    pub low: Option<f64>,
    /// High end; null where the trials are too few for an interval.
    pub high: Option<f64>,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// How the interval was got.
    pub method: String,
    /// Independent values it rests on (trials, or batches of them where they are correlated).
    pub n: u32,
}

impl Estimate {
    /// The longer arm of the interval relative to the value; `None` without an interval or for a value of 0. Where the low end
    /// is cut at zero the other arm tells.
    #[must_use]
    pub fn relative_half_width(&self) -> Option<f64> {
        let arm = (self.high? - self.value).max(self.value - self.low?);
        (self.value != 0.0).then(|| (arm / self.value).abs())
    }
}

/// Something to know about a trial or an outcome before trusting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing moved for the stall time; the trial was ended there.
    Stalled,
    /// The trial was too short for its clock or its count of arrivals.
    ResolutionLimited,
    /// The two ends' byte counts do not add up.
    ByteCountMismatch,
    /// The interval did not become as narrow as asked before the budget or the trials ran out; on a curve also the one of the size's
    /// place in it, or the two lie apart.
    TargetMissed,
    /// Fewer than 3 trials: a value without a claim.
    FewTrials,
    /// Ended before its stop rule was met (interrupt, or a peer that went away).
    CutShort,
    /// Another measurement ran on one of the hosts at the same time.
    Overlapped,
    /// Round trips were timed in batches; percentiles are of batch means.
    BatchTimed,
    /// Datagrams were dropped at the receiver's own socket: the host, not the path.
    SocketDrops,
    /// Datagrams were lost.
    Loss,
    /// NetPIPE's self-limit or the budget left larger blocks out after this one.
    SelfLimited,
    /// The two ends are threads or processes of one host without a network between them.
    OneHost,
    /// The kernel's TCP metrics cache was on at an end that sends and was not flushed: a trial there may begin with what an earlier one
    /// learnt of the path.
    MetricsKept,
    /// The goodput is above its own ceiling: a figure that the ceiling rests on is wrong, or the measurement is.
    AboveCeiling,
    /// A flow got nothing in a trial that all flows had the same time for.
    Starved,
    /// What a plan requires did not hold before at least one of its trials, which was left out.
    Unmet,
    /// The lab's emulator handed packets over more than 1 ms after their time: what was measured is not the path that was asked for.
    EmulatorLate,
    /// In a lab whose holder did not say what the emulated links did meanwhile: nobody knows whether they were on time.
    EmulatorUnreported,
    /// Receivers were let sleep between their reads (`delayed_reads`), as no application's does.
    DelayedReads,
    /// Connections were closed while the next ones were under way (`overlap_close`).
    OverlapClose,
}

/// How far to trust an outcome that has a value: the worst of its verdicts decides, and a wide interval is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The ends agree and the interval is as narrow as asked.
    High,
    /// The ends agree; the interval is wider than asked, or there was loss or overlap.
    #[default]
    Fair,
    /// Too few or too short trials to claim anything.
    Low,
    /// Stalled, the ends disagree, or not one trial was whole: do not use.
    None,
}

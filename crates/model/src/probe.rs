//! The result of a probe during a stream.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RttTally;

/// Round trips with and without a stream on the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Responsiveness {
    /// Before the first trial, without load; null if that could not be measured.
    pub idle: Option<RttTally>,
    /// During the trials.
    pub loaded: RttTally,
    /// Median under load less median without load, ns: the delay that the load adds in queues. Never below 0; null if one of the
    /// medians is of fewer than 10 round trips.
    pub bufferbloat_ns: Option<f64>,
    /// Round trips per minute under load: 60 s over the mean of the faster 95 % of the loaded round trips. The formula is that
    /// of draft-ietf-ippm-responsiveness for one kind of probe: request and response over a separate open connection. The draft
    /// also averages connection and TLS set-up and probes within the loaded connections.
    ///
    /// When responsiveness under working conditions is measured it is the draft's RPM, the mean of `working`.
    pub rpm: f64,
    /// Responsiveness under working conditions, one entry for each trial; absent where it is not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub working: Vec<WorkingConditions>,
}

/// How far a stage of the measurement got (draft-ietf-ippm-responsiveness, "Confidence of Test-Results").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It had fewer than four intervals.
    Low,
    /// It had four intervals or more, and its values varied by more than 5 %.
    Medium,
    /// It had become stable.
    High,
}

impl Confidence {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Responsiveness under working conditions in one trial, by draft-ietf-ippm-responsiveness without TLS. Its figures are those of four
/// intervals of a second: the last four before the responsiveness was stable, or of the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WorkingConditions {
    /// Round trips per minute: the mean of `foreign_rpm` and `loaded_rpm`.
    pub rpm: f64,
    /// On connections of their own: 60 s over the mean of `connect_ns` and `request_ns`.
    pub foreign_rpm: f64,
    /// On the loaded connections: 60 s over `rtt_ns`.
    pub loaded_rpm: f64,
    /// Of the responsiveness.
    pub confidence: Confidence,
    /// Of the goodput, which has to be stable first.
    pub goodput_confidence: Confidence,
    /// Goodput over the four intervals, bit/s; of both directions their sum.
    pub goodput_bps: f64,
    /// Flows that had started at their end, in each direction.
    pub flows: u32,
    /// Start of the four intervals, ns since the trial's start.
    pub from_ns: u64,
    /// Their end.
    pub to_ns: u64,
    /// Time of a TCP handshake, ns: the mean of the fastest 95 %.
    pub connect_ns: f64,
    /// From request to response on a new connection, ns: likewise.
    pub request_ns: f64,
    /// Smoothed RTT of the loaded connections by their senders' TCP, ns: likewise, over the readings.
    pub rtt_ns: f64,
    /// Probes in the four intervals.
    pub probes: u64,
    /// Every interval of a second, up to `to_ns`.
    pub intervals: Vec<WorkingInterval>,
}

/// One interval of a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WorkingInterval {
    /// Goodput in it, bit/s.
    pub goodput_bps: f64,
    /// The mean of this and the three previous ones.
    pub average_bps: f64,
    /// Round trips per minute over the same intervals; null until the goodput is stable.
    pub rpm: Option<f64>,
}

impl Responsiveness {
    /// Fewest round trips for a median of a probe.
    pub const MIN_SAMPLES: u64 = 10;
}

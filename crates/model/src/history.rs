//! The history of a mesh that is measured again and again.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// The passes of one series, each a stored run, and what changed between them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MeshHistory {
    /// The name of the series: that of its runs.
    pub name: String,
    /// The passes, the oldest one first.
    pub passes: Vec<HistoryPass>,
    /// The figures of each pair, and of each host with all others.
    pub series: Vec<HistorySeries>,
    /// The alerts that are raised after the last pass.
    pub alerts: Vec<AlertState>,
}

/// A pass.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HistoryPass {
    /// The run.
    pub run: String,
    /// Its start, ns since the Unix epoch.
    pub started_unix_ns: u64,
}

/// One figure of a pair of hosts, or of a host with all others, over the passes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HistorySeries {
    /// The figure: `goodput`, `rtt` (the median).
    pub figure: String,
    /// Its unit: `bit/s`, `ns`.
    pub unit: String,
    /// The near host; null for all of `to`'s partners, by the median.
    pub from: Option<String>,
    /// The far host; null for all of `from`'s partners, by the median.
    pub to: Option<String>,
    /// The levels of other factors, such as `block 1KiB`; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub levels: String,
    /// Its value in each pass; null without one.
    pub values: Vec<Option<f64>>,
    /// Where its level changed significantly.
    pub changes: Vec<ChangePoint>,
}

/// A significant change of a level.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ChangePoint {
    /// Number of the first pass after it, from 0.
    pub pass: u32,
    /// Start of that pass, ns since the Unix epoch.
    pub at_unix_ns: u64,
    /// The median of the passes before, since the change before.
    pub before: f64,
    /// The median of the passes after it, until the next change.
    pub after: f64,
    /// Ratio of `after` to `before`.
    pub ratio: f64,
    /// Low end of its interval.
    pub low: f64,
    /// High end of its interval.
    pub high: f64,
    /// The confidence of that interval.
    pub confidence: f64,
}

/// An alert of a threshold and a pair, or a host without values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AlertState {
    /// The condition, such as `goodput<500Mbit`; `no value` for a host without any.
    pub condition: String,
    /// The near host, or the host without values.
    pub from: String,
    /// The far host; null for a host without values.
    pub to: Option<String>,
    /// The levels of other factors; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub levels: String,
    /// The value of the pass that raised or resolved it; null without one.
    pub value: Option<f64>,
    /// The limit that it is compared with, in the value's unit; null without one.
    pub limit: Option<f64>,
    /// The unit of both: `bit/s`, `ns`, `1/s`, or empty for a share.
    pub unit: String,
    /// The start of the pass that raised it, ns since the Unix epoch.
    pub since_unix_ns: u64,
}

/// An alert that was raised or resolved: what a webhook gets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AlertEvent {
    /// `raised` or `resolved`.
    pub event: String,
    /// The name of the series.
    pub series: String,
    /// The run that raised or resolved it; null for a pass that could not be measured.
    pub run: Option<String>,
    /// The start of its pass, ns since the Unix epoch.
    pub at_unix_ns: u64,
    /// The alert.
    pub alert: AlertState,
    /// The same in a sentence.
    #[serde(with = "text::as_string")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub text: Text,
}

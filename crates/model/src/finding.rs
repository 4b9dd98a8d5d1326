//! The conclusions of the analysis from a run's outcomes.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Comparison, Estimate, Text};

/// One conclusion, with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The conclusion in text, with numbers and units.
    #[serde(flatten)]
    pub statement: Text,
    /// The figure it states, with its interval; null if there is none.
    pub estimate: Option<Estimate>,
    /// The block size it is about, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// The cells that it is based on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<u32>,
    /// The answer, for the kind `difference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Round trip of the smallest blocks.
    Latency,
    /// The highest rate and its block.
    Peak,
    /// The block from which time grows in proportion to size: larger blocks bring no higher rate.
    Saturation,
    /// The block that reaches half of the peak.
    HalfPeak,
    /// A size at which the curve drops or jumps beyond its neighbours' intervals.
    Anomaly,
    /// How much the passes of a curve, and so its connections, differ.
    Connections,
    /// How much two cells differ, and whether it matters.
    Difference,
    /// The effect of a level of a factor, over all cells that differ in nothing else; or how much it depends on a second factor.
    Effect,
    /// A pair of hosts whose two directions differ.
    Asymmetry,
    /// A host, or a pair of hosts, that stands out of a matrix of hosts.
    Outlier,
    /// What stood out of a matrix of hosts but was not confirmed when it was tested again, or was not tested again.
    Unconfirmed,
    /// The best level of a factor, or those that lead; over a range of block sizes where these vary.
    Best,
    /// A factor whose levels do not differ significantly, or not by what matters, with the largest difference that is possible.
    NoDifference,
    /// What limits the cells of a plan, by the levels of its factors.
    Limits,
    /// What groups of flows took of their common goodput, and how fair that is.
    Fairness,
    /// What hosts that send at the same time get: their common goodput, the number of senders from which it no longer rises or falls,
    /// and the tail of completion times.
    Traffic,
    /// The settings that help, by how much, and those that do not.
    Advice,
    /// A property of the hosts or of the path that affects the figures.
    Path,
    /// Something that a check found wrong with a path.
    Concern,
    /// A figure of a check that is not as the user expects.
    Unmet,
    /// A note on how the run was made.
    Note,
}

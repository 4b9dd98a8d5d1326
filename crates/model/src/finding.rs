//! What the analysis says of a run's outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Comparison, Estimate};

/// One conclusion, with the figures it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// One sentence with its numbers and units.
    pub statement: String,
    /// The figure it states, with its interval; null where there is none.
    pub estimate: Option<Estimate>,
    /// The block size it is about, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// The cells it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<u32>,
    /// The answer, of a finding of the kind `difference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Round trip of the smallest blocks.
    Latency,
    /// The highest rate and the block it was reached with.
    Peak,
    /// The block from which time grows in proportion to size: more block brings no more rate.
    Saturation,
    /// The block that reaches half of the peak.
    HalfPeak,
    /// A size at which the curve drops or jumps beyond its neighbours' intervals.
    Anomaly,
    /// How far the passes of a curve, and so its connections, lie apart.
    Connections,
    /// How much two cells differ, and whether it matters.
    Difference,
    /// What another level of a factor does, over all cells that differ in nothing else; or how much that depends on a second
    /// factor.
    Effect,
    /// A pair of hosts whose two directions differ.
    Asymmetry,
    /// Which settings help, by how much, and which do not.
    Advice,
    /// Something about the hosts or the path between them that shapes the figures.
    Path,
    /// Something about how the run was taken.
    Note,
}

//! One repetition of a cell, and the pass over fresh connections that it was part of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Capture, Change, Conditions, CpuUse, EndTally, LabReport, Observed, Spec, Verdict};

/// One combination of levels to be measured: in a curve, one block size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Number within the run, from 0.
    pub id: u32,
    /// Its measurement.
    pub spec: Spec,
    /// What tells it from the other cells, by factor (in a plan as written there) or dimension; empty where the run has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, String>,
}

impl Cell {
    /// A cell without levels.
    #[must_use]
    pub fn new(id: u32, spec: Spec) -> Self {
        Self { id, spec, levels: BTreeMap::new() }
    }
}

/// One repetition of a cell as both ends counted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The cell.
    pub cell: u32,
    /// The pass (fresh connections) that it belongs to.
    pub pass: u32,
    /// Position within the pass, from 0.
    pub position: u32,
    /// What the near end counted.
    pub near: EndTally,
    /// What the far end counted; empty for transports with one end (memcpy).
    pub far: EndTally,
    /// Whether the two agree; left out where the ends' bytes were not told, as in some imports.
    #[serde(default, skip_serializing_if = "Ledger::is_unknown")]
    pub ledger: Ledger,
    /// The sample: this trial's value of the cell's headline statistic, or null when it has none.
    pub value: Option<f64>,
    /// What is remarkable about this trial alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

/// Bytes at both ends set against each other, both directions added up: sent = received + lost + in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Payload bytes sent by both ends.
    pub sent: u64,
    /// Distinct payload bytes received by both ends.
    pub received: u64,
    /// Payload bytes of datagrams that never arrived.
    pub lost: u64,
    /// Payload bytes still queued when the drain ended.
    pub in_flight: u64,
    /// Whether the sum is exact.
    pub balanced: bool,
}

impl Ledger {
    /// Whether nobody set the ends against each other: two ends that carried nothing balance.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// One set-up of connections and the trials that were taken over it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pass {
    /// Number within the run, from 0.
    pub index: u32,
    /// Nanoseconds from the start of the run to the start of the pass.
    pub started_ns: u64,
    /// Wall-clock time of the start, ns since the Unix epoch: the time of day, for plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_ns: Option<u64>,
    /// In a plan: the round, one repetition of all open cells, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Length of the pass in ns, set-up and drain included.
    pub duration_ns: u64,
    /// The near end's host around it.
    pub near: EndPass,
    /// The far end's host around it.
    pub far: EndPass,
    /// Other measurements that ran on an agent at the same time.
    #[serde(default)]
    pub overlapped_by: u32,
    /// In a lab: what its emulated links did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabReport>,
}

/// One end's host around a pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EndPass {
    /// CPU time per core, or null where the source is missing.
    pub cpu: Option<CpuUse>,
    /// Time from the order to connect until every flow was up, in ns.
    pub setup_ns: u64,
    /// What the observers saw; null where nobody observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// In a plan that asks: what the host was like before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// In a plan: the settings in force, as they were changed and read back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Change>,
    /// The packets that were captured; null where nobody asked for a capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
}

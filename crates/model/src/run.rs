//! The record of one command.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Advice, Cell, ClockDrift, ClockOffset, Expectation, Factor, Finding, Inventory, Origin, Outcome, Pass, Path, Plan,
    Retest, RunKind, RunSettings, Stopping, Text,
};

/// The complete record of one command's measurement: the JSON document, and the content of the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Run {
    /// Version of this document's shape: `throughline-run/1`. Fields may be added within a version.
    pub schema: String,
    /// What was known at its start.
    pub header: RunHeader,
    /// How it ended; null while it runs, and if the command was killed.
    pub ending: Option<Ending>,
    /// The passes: sets of fresh connections.
    pub passes: Vec<Pass>,
    /// One outcome for each cell that was measured.
    pub outcomes: Vec<Outcome>,
    /// Trials that test again what stands out of a mesh; absent where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retests: Vec<Retest>,
    /// Conclusions from the outcomes.
    pub findings: Vec<Finding>,
    /// The result of a search through settings (`advise`); absent in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

impl Run {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-run/1";

    /// A run that has just started.
    #[must_use]
    pub fn new(header: RunHeader) -> Self {
        Self {
            schema: Self::SCHEMA.into(),
            header,
            ending: None,
            passes: Vec::new(),
            outcomes: Vec::new(),
            retests: Vec::new(),
            findings: Vec::new(),
            advice: None,
        }
    }
}

/// What is known at the start of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunHeader {
    /// Identifier, unique in a store: `20261121-203758-4f1a`.
    pub id: String,
    /// The name given with `--name`, or null.
    pub name: Option<String>,
    /// What the run is.
    pub kind: RunKind,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// Wall-clock time of the start, ns since the Unix epoch. Only for display: no duration is computed from it.
    pub started_unix_ns: u64,
    /// The program that measured.
    pub tool: Tool,
    /// HOST as the user wrote it; null for transports within one host.
    pub target: Option<String>,
    /// The stop rule, and the order of the cells.
    pub stopping: Stopping,
    /// The planned cells; an adaptive curve and a search may add cells.
    pub cells: Vec<Cell>,
    /// The near host.
    pub near: Inventory,
    /// The far host.
    pub far: Inventory,
    /// What the user of a check expects of the path; absent where that is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Expectation>,
    /// The settings that were changed on both hosts for this run and reverted after it; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<RunSettings>,
    /// The plan, of a `thru run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// Every host of a plan with several near or far ends, by its name in the plan; `near` and `far` are then those of the first
    /// cell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Inventory>,
    /// The path from near to far before the test; null if it was not probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_outbound: Option<Path>,
    /// The path from far to near before the test; null if it was not probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_return: Option<Path>,
    /// The offset of the hosts' clocks before the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockOffset>,
    /// The origin of an imported run; absent in runs that this program measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
}

impl RunHeader {
    /// The near and the far host of a cell.
    #[must_use]
    pub fn hosts_of(&self, cell: &Cell) -> [&Inventory; 2] {
        let named = |factor: &str| self.hosts.get(cell.levels.get(factor)?);
        [named(Factor::FROM).unwrap_or(&self.near), named(Factor::TO).unwrap_or(&self.far)]
    }
}

/// The program, and the cost of its clock reads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Tool {
    /// Version of the near end's program.
    pub near_version: String,
    /// Version of the far end's program.
    pub far_version: String,
    /// Cost of one clock read at the near end, ns; absent if it was not measured.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub near_clock_ns: f64,
    /// Cost of one clock read at the far end, ns; absent if it was not measured.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub far_clock_ns: f64,
}

/// Whether a cost is unknown; a known cost is never 0.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_unknown(cost_ns: &f64) -> bool {
    *cost_ns == 0.0
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ending {
    /// `finished`, `interrupted` or `failed`.
    pub how: String,
    /// The error, if it failed.
    pub error: Option<Text>,
    /// Duration of the run, ns.
    pub duration_ns: u64,
    /// The offset of the hosts' clocks after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockOffset>,
    /// The drift of the hosts' clocks during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<ClockDrift>,
}

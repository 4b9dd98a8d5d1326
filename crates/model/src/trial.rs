//! One repetition of a cell, and its pass over fresh connections.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Capture, Change, Conditions, CpuUse, EndTally, LabReport, Observed, Shared, Spec, Verdict};

/// One combination of levels; in a curve one block size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Cell {
    /// Number within the run, from 0.
    pub id: u32,
    /// Its measurement.
    pub spec: Shared<Spec>,
    /// Its levels by factor (in a plan as written there) or dimension; empty if the run has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, String>,
}

impl Cell {
    /// A cell without levels.
    #[must_use]
    pub fn new(id: u32, spec: impl Into<Shared<Spec>>) -> Self {
        Self { id, spec: spec.into(), levels: BTreeMap::new() }
    }

    /// The one with this number.
    #[must_use]
    pub fn find(all: &[Self], id: u32) -> Option<&Self> {
        of_number(all, id, |cell| cell.id)
    }
}

/// The one with this number. They are in the order of their numbers, but for those of a damaged store.
fn of_number<T>(all: &[T], number: u32, of: impl Fn(&T) -> u32) -> Option<&T> {
    let at = all.binary_search_by_key(&number, &of).ok();
    at.and_then(|at| all.get(at)).or_else(|| all.iter().find(|one| of(one) == number))
}

/// One repetition of a cell, with both ends' counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Trial {
    /// The cell.
    pub cell: u32,
    /// Its pass (fresh connections).
    pub pass: u32,
    /// Position within the pass, from 0.
    pub position: u32,
    /// The near end's counts.
    pub near: Shared<EndTally>,
    /// The far end's counts; empty for transports with one end (memcpy).
    pub far: Shared<EndTally>,
    /// The byte ledger; absent if the ends' bytes are unreported, as in some imports.
    #[serde(default, skip_serializing_if = "Ledger::is_unknown")]
    pub ledger: Ledger,
    /// This trial's value of the cell's headline statistic; null if it has none.
    pub value: Option<f64>,
    /// Flags on this trial alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

impl Trial {
    /// Takes the counts of another trial that are equal, so that they are in memory once: a file of another tool reports none for all
    /// of its trials.
    pub fn share(&mut self, other: &Self) {
        self.near.share(&other.near);
        self.far.share(&other.far);
    }
}

/// A trial that tests again what stands out of a mesh, or what it is compared with. It belongs to no outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Retest {
    /// Number of what stands out, from 0.
    pub suspect: u32,
    /// Number of the comparison of it with another pair of hosts, from 0.
    pub comparison: u32,
    /// The repetition of the comparison, from 0.
    pub round: u32,
    /// It is a trial of the other pair, the control.
    pub control: bool,
    /// The trial.
    pub trial: Trial,
}

/// The byte ledger of both ends, both directions added up: sent = received + lost + in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// Whether the ends were not compared: the ledger of two ends without bytes is balanced.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// One set of fresh connections and what was measured over it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// Duration of the pass, ns, set-up and drain included.
    pub duration_ns: u64,
    /// The near end's host activity.
    pub near: EndPass,
    /// The far end's host activity.
    pub far: EndPass,
    /// Other measurements that ran on an agent at the same time.
    #[serde(default)]
    pub overlapped_by: u32,
    /// In a lab: the report on its links during the pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabReport>,
}

impl Pass {
    /// The one with this number.
    #[must_use]
    pub fn find(all: &[Self], index: u32) -> Option<&Self> {
        of_number(all, index, |pass| pass.index)
    }
}

/// One end's host activity around a pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct EndPass {
    /// CPU time per core; null if the source is missing.
    pub cpu: Option<CpuUse>,
    /// Time from the request to connect until every flow was up, ns.
    pub setup_ns: u64,
    /// In a plan: tests of this run on the host at the same time, this one included; null where it has one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u32>,
    /// What the observers read; null without observers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// In a plan with requirements: the state of the host before the pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// In a plan: the changed settings, as they were read back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Change>,
    /// The packet capture; null if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
}

//! What a search through settings found: which of them help, by how much, and how to make them stay.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Estimate, HostSettings};

/// What a search is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// More goodput of a stream.
    Throughput,
    /// A shorter mean round trip.
    Latency,
    /// Less CPU time for a byte at both ends together, at no less than 95 % of the goodput.
    Cpu,
}

/// What came of `thru advise`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// What was searched for.
    pub goal: Goal,
    /// The least gain that counts, as a fraction of the value.
    pub min_effect: f64,
    /// What each dimension that was tried is at the start, by the dimension's name.
    pub start: BTreeMap<String, String>,
    /// What the best combination that was found changes; empty where nothing looked better than the start.
    pub best: BTreeMap<String, String>,
    /// Whether the best combination was confirmed: on fresh pairs it gains more than the least effect, and surely something.
    pub confirmed: bool,
    /// The start against the best combination, on fresh pairs; null where nothing looked better or nothing was left to confirm
    /// it with.
    pub total: Option<AdviceStep>,
    /// What each change gives: the best combination against the same without that change, on fresh pairs.
    pub steps: Vec<AdviceStep>,
    /// Dimensions that were tried and left as they were.
    pub unchanged: Vec<AdviceUnchanged>,
    /// What was not tried, and why.
    pub untried: Vec<AdviceUntried>,
    /// How the time was spent.
    pub spent: Vec<AdviceSpent>,
    /// The command that measures with the best combination; null where nothing was confirmed.
    pub command: Option<String>,
    /// Host settings of the best combination.
    pub settings: HostSettings,
    /// What makes them stay at the near host; empty where nothing was confirmed.
    pub near: AdvicePersistent,
    /// What makes them stay at the far host.
    pub far: AdvicePersistent,
}

/// One change and what it gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceStep {
    /// What is changed; of the whole, `all`.
    pub dimension: String,
    /// Its level at the start.
    pub from: String,
    /// Its level in the best combination.
    pub to: String,
    /// Ratio of the goal's statistic with the change to that without; null where nothing was measured.
    pub estimate: Option<Estimate>,
    /// The same ratio of the goodput, where the goal is another and the goodput must not suffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Estimate>,
    /// Two-sided p-value of the randomisation test that the change makes no difference, corrected for the number of confirmations
    /// (Holm); null where there were too few pairs.
    pub p_value: Option<f64>,
    /// Whether it surely gains, and by more than the least effect.
    pub confirmed: bool,
}

/// A dimension in which nothing looked better than what there was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceUnchanged {
    /// The dimension.
    pub dimension: String,
    /// What it stays.
    pub kept: String,
    /// The best of the other levels.
    pub best: Option<String>,
    /// Ratio of the goal's statistic at that level to that at the one that stays, from the search: of several levels the best looking
    /// one, so that it rather flatters it. Null where too little was measured.
    pub estimate: Option<Estimate>,
    /// The other levels that were tried.
    pub levels: Vec<String>,
    /// Whether its race ended because it was decided; otherwise the time ran out.
    pub complete: bool,
}

/// Something that was not tried.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct AdviceUntried {
    /// The dimension, with the level where it is about one.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceSpent {
    /// What it was spent on: `pilot trials`, a dimension's name, or `confirmation`.
    pub on: String,
    /// Trials.
    pub trials: u32,
    /// Time with set-ups and pauses, ns.
    pub ns: u64,
}

/// What makes a host keep what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AdvicePersistent {
    /// Lines for a file in /etc/sysctl.d.
    pub sysctl: Vec<String>,
    /// Commands for what no sysctl holds.
    pub commands: Vec<String>,
    /// What a program has to do itself.
    pub program: Vec<String>,
}

//! The result of a search through settings: which of them help, by how much, and how to make them persistent.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Estimate, HostSettings, Text};

/// The goal of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// More goodput of a stream.
    Throughput,
    /// A shorter mean round trip.
    Latency,
    /// Less CPU time per byte, both ends together, with at least 95 % of the goodput.
    Cpu,
}

/// The result of `thru advise`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Advice {
    /// The goal.
    pub goal: Goal,
    /// The smallest gain that counts, as a fraction of the value.
    pub min_effect: f64,
    /// The start level of each dimension that was tried, by the dimension's name.
    pub start: BTreeMap<String, String>,
    /// The changes of the best combination; empty if nothing was better than the start.
    pub best: BTreeMap<String, String>,
    /// Whether the best combination was confirmed: on fresh pairs its gain is significant and larger than `min_effect`.
    pub confirmed: bool,
    /// The best combination against the start, on fresh pairs; null if nothing was better or no time was left to confirm it.
    pub total: Option<AdviceStep>,
    /// The effect of each change: the best combination against the same without that change, on fresh pairs.
    pub steps: Vec<AdviceStep>,
    /// Dimensions that were tried and not changed.
    pub unchanged: Vec<AdviceUnchanged>,
    /// What was not tried, and why.
    pub untried: Vec<AdviceUntried>,
    /// How the time was spent.
    pub spent: Vec<AdviceSpent>,
    /// The command that measures with the best combination; null if nothing was confirmed.
    pub command: Option<String>,
    /// Host settings of the best combination.
    pub settings: HostSettings,
    /// Persistent settings of the near host; empty if nothing was confirmed.
    pub near: AdvicePersistent,
    /// Persistent settings of the far host.
    pub far: AdvicePersistent,
}

/// One change and its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AdviceStep {
    /// The dimension that is changed; `all` for the whole combination.
    pub dimension: String,
    /// Its level at the start.
    pub from: String,
    /// Its level in the best combination.
    pub to: String,
    /// Ratio of the goal's statistic with the change to the one without; null if nothing was measured.
    pub estimate: Option<Estimate>,
    /// The same ratio of the goodput, for goals that must not reduce the goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Estimate>,
    /// Two-sided p-value of the randomisation test that the change makes no difference, corrected for the number of confirmations
    /// (Holm); null with too few pairs.
    pub p_value: Option<f64>,
    /// Whether its gain is significant and larger than `min_effect`.
    pub confirmed: bool,
}

/// A dimension in which nothing was better than the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AdviceUnchanged {
    /// The dimension.
    pub dimension: String,
    /// The level that was kept.
    pub kept: String,
    /// The best of the other levels.
    pub best: Option<String>,
    /// Ratio of the goal's statistic at `best` to that at `kept`, from the search. As the best of several levels it is biased
    /// upwards. Null if too little was measured.
    pub estimate: Option<Estimate>,
    /// The other levels that were tried.
    pub levels: Vec<String>,
    /// Whether its race was decided; otherwise the time ran out.
    pub complete: bool,
}

/// Something that was not tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AdviceUntried {
    /// The dimension, with the level if it is about one.
    pub what: String,
    /// Why.
    #[serde(flatten)]
    pub why: Text,
    /// The class of host settings that `--allow` must have to try it; absent if something else is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AdviceSpent {
    /// `pilot trials`, a dimension's name, or `confirmation`.
    pub on: String,
    /// Number of trials.
    pub trials: u32,
    /// Time, with set-ups and pauses, ns.
    pub ns: u64,
}

/// Settings that keep the result on a host after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AdvicePersistent {
    /// Lines for a file in /etc/sysctl.d.
    pub sysctl: Vec<String>,
    /// Commands for settings that are not sysctls.
    pub commands: Vec<String>,
    /// Changes that an application must make itself.
    pub program: Vec<String>,
}

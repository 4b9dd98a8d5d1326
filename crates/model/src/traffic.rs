//! Traffic: which hosts of a plan send at the same time.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which hosts send to which at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct PlanTraffic {
    /// The pattern of the pairs.
    pub kind: TrafficKind,
    /// What random permutations and cuts are drawn with.
    pub seed: u64,
}

/// A pattern of pairs of hosts. One set of pairs is measured in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrafficKind {
    /// Many near hosts send to one far host.
    #[default]
    Incast,
    /// One near host sends to many far hosts.
    FanOut,
    /// Each host sends to the next one, the last one to the first.
    Ring,
    /// Each host of one half sends to a host of the other half, and that one sends to it.
    Bisection,
    /// Each host sends to one other host and receives from one, drawn at random.
    Permutation,
}

impl TrafficKind {
    /// Every kind with its name in a file and on the command line.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("incast", Self::Incast),
        ("fan-out", Self::FanOut),
        ("ring", Self::Ring),
        ("bisection", Self::Bisection),
        ("permutation", Self::Permutation),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The factor whose levels are its sets: numbers of senders or receivers, or of permutations or cuts. `None` for a single set.
    #[must_use]
    pub fn factor(self) -> Option<&'static str> {
        match self {
            Self::Incast => Some("senders"),
            Self::FanOut => Some("receivers"),
            Self::Ring => None,
            Self::Bisection => Some("cut"),
            Self::Permutation => Some("permutation"),
        }
    }

    /// Whether one host is at one end of all pairs of a set, and the number of hosts at the other end varies.
    #[must_use]
    pub fn has_hub(self) -> bool {
        matches!(self, Self::Incast | Self::FanOut)
    }
}

//! How far to rely on a result.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far to rely on an outcome that has a value: the width of its interval and its worst verdict decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The interval is as narrow as the target, and no verdict speaks against the value.
    High,
    /// The interval is wider than the target but within ±10 %, or there was loss or overlap.
    #[default]
    Fair,
    /// The interval is wider than ±10 % or there is none, or the trials are too short.
    Low,
    /// Stalled, the ends disagree, or no trial was complete: do not use the figures.
    None,
}

impl Trust {
    /// All grades.
    pub const ALL: [Self; 4] = [Self::High, Self::Fair, Self::Low, Self::None];

    /// What it says of the figures.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::High => "The interval is as narrow as the target, and no verdict speaks against the value.",
            Self::Fair => "The interval is wider than the target but within ±10 %, or there was loss or overlap.",
            Self::Low => "The interval is wider than ±10 % or there is none, or the trials are too short.",
            Self::None => "A trial stalled, the ends disagree, or no trial was complete. Do not use the figures.",
        }
    }
}

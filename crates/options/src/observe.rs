//! How much of the hosts is read during a measurement.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the observers of both ends read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Observe {
    /// Only CPU time per core.
    Off,
    /// Every source at the start and at the end of a pass.
    Counters,
    /// As `counters`, plus readings of the cheap sources during the pass.
    #[default]
    Series,
}

impl Observe {
    /// Whether it is the default.
    #[must_use]
    pub fn is_series(&self) -> bool {
        *self == Self::Series
    }
}

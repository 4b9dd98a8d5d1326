//! The stop rule of a measurement, and the order of its cells.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that ends a measurement: converged, or the budget is spent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Stopping {
    /// Half width of the interval, relative to its value, at which a cell has converged, such as 0.02; for `ab` the tolerance. It
    /// ends nothing where the smallest and the largest number of trials are equal.
    pub target: f64,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// Trials before the first interim analysis.
    pub min_trials: u32,
    /// Most trials.
    pub max_trials: u32,
    /// Nanoseconds for the whole command, or null for no limit.
    pub budget_ns: Option<u64>,
    /// Order of the cells within a pass.
    pub order: Order,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Stopping {
    /// Whether a cell ends when its interval is as narrow as the target. A fixed number of trials asks for no width.
    #[must_use]
    pub fn has_target(&self) -> bool {
        self.max_trials > self.min_trials
    }
}

impl Default for Stopping {
    fn default() -> Self {
        Self {
            target: 0.02,
            confidence: 0.95,
            min_trials: 3,
            max_trials: 64,
            budget_ns: None,
            order: Order::Random,
            seed: 1,
        }
    }
}

/// Order of the cells within a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Small blocks first, as NetPIPE does.
    Ascending,
    /// In the order of the plan's file.
    AsWritten,
    /// Shuffled in each pass from the seed, so that drift does not look like an effect of the size.
    #[default]
    Random,
}

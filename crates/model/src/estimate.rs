//! Numbers with their intervals.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number with its unit, its interval and its method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Estimate {
    /// The statistic in words, such as `mean over trials of the goodput`.
    pub statistic: String,
    /// `bit/s`, `ns`, `1/s`, or `ratio` for one value over another.
    pub unit: String,
    /// The point estimate.
    pub value: f64,
    /// Low end; null with too few trials for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// High end; null with too few trials for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// The method of the interval.
    pub method: String,
    /// Number of independent values (trials, or batches of correlated trials).
    pub n: u32,
}

impl Estimate {
    /// The statistic of a list's number for a run of several cells.
    pub const MEDIAN_OVER_CELLS: &str = "median over cells";

    /// The longer half of the interval relative to the value; `None` without an interval or for a value of 0. If the low end is
    /// cut at zero, the other half counts.
    #[must_use]
    pub fn relative_half_width(&self) -> Option<f64> {
        let arm = (self.high? - self.value).max(self.value - self.low?);
        (self.value != 0.0).then(|| (arm / self.value).abs())
    }
}

//! A self-test as later runs cite it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A self-test in the inventory of later runs on the same host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SelfTestCitation {
    /// Wall-clock time of its start, ns since the Unix epoch. Only for display.
    pub started_unix_ns: u64,
    /// Version of the program that was tested.
    pub version: String,
    /// Whether it was the short form.
    pub quick: bool,
    /// Checks that passed.
    pub passed: u32,
    /// Checks that were made.
    pub checks: u32,
    /// Largest absolute error of a rate, as a fraction of the true rate; null if no rate was checked.
    pub worst_rate_error: Option<f64>,
    /// Largest absolute error of a round trip, ns; null if none was checked.
    pub worst_rtt_error_ns: Option<f64>,
    /// What has changed since the self-test: any of `boot`, `kernel`, `version`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

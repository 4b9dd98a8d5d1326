//! A self-test as later runs cite it.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Check, Claim};

/// A self-test in the inventory of later runs on the same host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// Checks that needed a second attempt.
    #[serde(default)]
    pub second_attempts: u32,
    /// The largest error of each claim, and of each tested rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<CitedError>,
    /// What has changed since the self-test: any of `boot`, `kernel`, `version`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// An error of a self-test that says how accurate later measurements of the same kind are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CitedError {
    /// The kind of check.
    pub claim: Claim,
    /// The path, and the source of the known value.
    pub path: String,
    /// The known value.
    pub truth: f64,
    /// Unit of both figures.
    pub unit: String,
    /// Measured value less known value.
    pub error: f64,
    /// Whether the error was within what the check allows.
    pub passed: bool,
    /// Number of attempts.
    pub attempts: u32,
}

impl CitedError {
    /// The error of a check.
    #[must_use]
    pub fn of(check: &Check) -> Self {
        Self {
            claim: check.claim,
            path: check.path.clone(),
            truth: check.truth,
            unit: check.unit.clone(),
            error: check.error,
            passed: check.passed,
            attempts: check.attempts,
        }
    }
}

//! A check of a self-test.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Claim {
    /// Bytes are counted as the kernel, or the other end, counts them.
    Bytes,
    /// A rate is the shaper's rate, or the requested one.
    Rate,
    /// A round trip agrees with the kernel's own measurement.
    Rtt,
    /// The path emulator has the configured delay.
    Delay,
    /// The clock is cheap to read.
    Clock,
    /// The measuring loop takes little time compared with what it measures.
    Loop,
    /// What a round trip of `rr` and of the probe has beside ping and the configured delay.
    Added,
    /// A paced sender keeps to its rate by the interface's counter, and to the times between its datagrams.
    Pacing,
    /// Lost datagrams are counted as the emulator counts them.
    Loss,
    /// Reordered datagrams are counted as the emulator counts them.
    Reorder,
    /// One-way delays are the configured ones of each direction.
    OneWay,
    /// The parts of a round trip by the kernel's stamps: the network's part, and the sum of all.
    Anatomy,
}

impl Claim {
    /// Whether later runs cite its errors: those of the host itself (`clock`, `loop`) and of the emulator (`delay`) are not errors
    /// of a figure.
    pub(crate) fn is_cited(self) -> bool {
        !matches!(self, Self::Clock | Self::Loop | Self::Delay)
    }
}

/// The figures of the first of two attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Attempt {
    /// The measured value.
    pub measured: f64,
    /// The known value.
    pub truth: f64,
    /// Measured value less known value.
    pub error: f64,
    /// Its note.
    pub note: String,
}

/// One comparison of a measured value with a known one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Check {
    /// The kind of check.
    pub claim: Claim,
    /// The path, and the source of the known value: `tbf, 100 Mbit/s, MTU 1500`.
    pub path: String,
    /// The measured value.
    pub measured: f64,
    /// The known value.
    pub truth: f64,
    /// Unit of all figures: `B`, `bit/s` or `ns`.
    pub unit: String,
    /// Measured value less known value.
    pub error: f64,
    /// Largest absolute error that passes.
    pub allowed: f64,
    /// Whether the error is within `allowed`.
    pub passed: bool,
    /// Number of attempts, of which the last one counts: more than 1 after a failure.
    pub attempts: u32,
    /// How the known value was determined, or what disturbed the measurement.
    pub note: String,
    /// The first attempt, if there was a second one; it may have passed, because the checks of a group are repeated together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Attempt>,
}

impl Check {
    /// Compares a measured value with a known one; NaN fails.
    #[must_use]
    pub fn judge(claim: Claim, path: &str, [measured, truth, allowed]: [f64; 3], unit: &str, note: String) -> Self {
        let error = measured - truth;
        Self {
            claim,
            path: path.into(),
            measured,
            truth,
            unit: unit.into(),
            error,
            allowed,
            passed: error.abs() <= allowed,
            attempts: 1,
            note,
            earlier: None,
        }
    }

    /// The same check as the second attempt after `first`, whose figures it keeps.
    #[must_use]
    pub fn after(self, first: Option<Self>) -> Self {
        let attempt = |check: Self| Attempt {
            measured: check.measured,
            truth: check.truth,
            error: check.error,
            note: check.note,
        };
        Self { attempts: 2, earlier: first.map(attempt), ..self }
    }
}

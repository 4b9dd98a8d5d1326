//! What `thru selftest` found: the tool's errors on a host, against truths that are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One self-test of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelfTest {
    /// Version of this document's shape: `throughline-selftest/1`. Fields may be added within a version.
    pub schema: String,
    /// Wall-clock time of the start, ns since the Unix epoch. Only for people.
    pub started_unix_ns: u64,
    /// Version of the program.
    pub version: String,
    /// The host's name, where it is known.
    pub hostname: Option<String>,
    /// The short form for continuous integration.
    pub quick: bool,
    /// Whether the path emulator ran at real-time priority; null without one.
    pub realtime: Option<bool>,
    /// The checks, in the order they were made.
    pub checks: Vec<Check>,
    /// What could not be checked here, each with the reason.
    pub missing: Vec<String>,
}

impl SelfTest {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-selftest/1";

    /// Whether there was a check and none failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }
}

/// What is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Claim {
    /// Bytes are counted as the kernel, or the other end, counts them.
    Bytes,
    /// A rate is the one that a shaper allows, or that was asked for.
    Rate,
    /// A round-trip time is the one that the kernel's own measurement gives.
    Rtt,
    /// The path emulator delays as it was told to.
    Delay,
    /// The clock is cheap to read.
    Clock,
    /// The measuring loop is cheap beside what it measures.
    Loop,
}

/// One claim set against one truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The claim.
    pub claim: Claim,
    /// Over what, and against what: `tbf, 100 Mbit/s, MTU 1500`.
    pub path: String,
    /// What this program measured.
    pub measured: f64,
    /// What is known.
    pub truth: f64,
    /// Unit of all figures: `B`, `bit/s` or `ns`.
    pub unit: String,
    /// Measured less truth.
    pub error: f64,
    /// Largest error, either way, that passes.
    pub allowed: f64,
    /// Whether it does.
    pub passed: bool,
    /// Times that it was measured, the last of which counts: more than 1 after a failure.
    pub attempts: u32,
    /// How the truth was got, or what spoilt the measurement.
    pub note: String,
}

impl Check {
    /// Sets a measurement against a truth; an error that is no number fails.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(measured: f64, allowed: f64) -> Check {
        Check::judge(Claim::Bytes, "somewhere", [measured, 10.0, allowed], "B", String::new())
    }

    #[test]
    fn errors_count_either_way_and_no_number_fails() {
        assert!(check(10.0, 0.0).passed);
        assert!(check(8.0, 2.0).passed && check(12.0, 2.0).passed);
        assert!(!check(7.0, 2.0).passed && !check(13.0, 2.0).passed);
        assert!(!check(f64::NAN, 2.0).passed);
    }

    #[test]
    fn a_self_test_without_a_check_has_not_passed() {
        let mut test = SelfTest {
            schema: SelfTest::SCHEMA.into(),
            started_unix_ns: 0,
            version: String::new(),
            hostname: None,
            quick: true,
            realtime: None,
            checks: Vec::new(),
            missing: Vec::new(),
        };
        assert!(!test.passed());
        test.checks = vec![check(10.0, 0.0)];
        assert!(test.passed());
        test.checks.push(check(11.0, 0.0));
        assert!(!test.passed());
    }
}

//! The result of `thru selftest`: the tool's errors on a host, by comparison with known values.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Check, CitedError, Claim, Inventory, SelfTestCitation};

/// One self-test of one host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SelfTest {
    /// Version of this document's shape: `throughline-selftest/1`. Fields may be added within a version.
    pub schema: String,
    /// Wall-clock time of the start, ns since the Unix epoch. Only for display.
    pub started_unix_ns: u64,
    /// Version of the program.
    pub version: String,
    /// The host's name, if it is known.
    pub hostname: Option<String>,
    /// Identifier of the host's boot.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// The host's kernel release.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Whether it was the short form for continuous integration.
    pub quick: bool,
    /// Whether the path emulator had real-time priority; null without an emulator.
    pub realtime: Option<bool>,
    /// The checks, in their order.
    pub checks: Vec<Check>,
    /// What could not be checked, with the reason.
    pub missing: Vec<String>,
}

impl SelfTest {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-selftest/1";

    /// Whether there were checks and all passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }

    /// The checks whose first attempt failed.
    pub fn second_attempts(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.attempts > 1)
    }
}

/// Rates within this factor are one rate: what an unshaped link carries differs from trial to trial.
const SAME_RATE: f64 = 1.1;

/// The check with the largest error of each claim and unit, and of each rate.
fn worst_of_each(checks: &[Check]) -> Vec<CitedError> {
    let same = |a: &Check, b: &CitedError| {
        a.claim == b.claim
            && a.unit == b.unit
            && (a.claim != Claim::Rate || (a.truth < b.truth * SAME_RATE && b.truth < a.truth * SAME_RATE))
    };
    let mut worst: Vec<CitedError> = Vec::new();
    for check in checks.iter().filter(|check| check.error.is_finite() && check.claim.is_cited()) {
        match worst.iter_mut().find(|cited| same(check, cited)) {
            Some(cited) if cited.error.abs() < check.error.abs() => *cited = CitedError::of(check),
            Some(_) => {}
            None => worst.push(CitedError::of(check)),
        }
    }
    worst
}

impl SelfTestCitation {
    /// The citation of `test` for a run on the host `now` with the program's `version`. If the test did not record its boot or
    /// kernel, these count as unchanged.
    #[must_use]
    pub fn of(test: &SelfTest, now: &Inventory, version: &str) -> Self {
        let of = |claim: Claim| test.checks.iter().filter(move |check| check.claim == claim);
        let worst = |errors: &mut dyn Iterator<Item = f64>| errors.filter(|error| error.is_finite()).reduce(f64::max);
        let rates = of(Claim::Rate).filter(|check| check.unit == "bit/s" && check.truth != 0.0);
        let count = |checks: usize| u32::try_from(checks).unwrap_or(u32::MAX);
        let differs = |then: &Option<String>, now: &Option<String>| then.is_some() && now.is_some() && then != now;
        let changed = [
            ("boot", differs(&test.boot_id, &now.boot_id)),
            ("kernel", differs(&test.kernel, &now.kernel)),
            ("version", test.version != version),
        ];
        Self {
            started_unix_ns: test.started_unix_ns,
            version: test.version.clone(),
            quick: test.quick,
            passed: count(test.checks.iter().filter(|check| check.passed).count()),
            checks: count(test.checks.len()),
            worst_rate_error: worst(&mut rates.map(|check| (check.error / check.truth).abs())),
            worst_rtt_error_ns: worst(&mut of(Claim::Rtt).map(|check| check.error.abs())),
            second_attempts: count(test.second_attempts().count()),
            errors: worst_of_each(&test.checks),
            changed: changed.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name.to_owned()).collect(),
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
    fn errors_of_both_signs_count_and_nan_fails() {
        assert!(check(10.0, 0.0).passed);
        assert!(check(8.0, 2.0).passed && check(12.0, 2.0).passed);
        assert!(!check(7.0, 2.0).passed && !check(13.0, 2.0).passed);
        assert!(!check(f64::NAN, 2.0).passed);
    }

    #[test]
    fn a_self_test_without_a_check_has_not_passed() {
        let mut test = SelfTest { quick: true, ..SelfTest::default() };
        assert!(!test.passed());
        test.checks = vec![check(10.0, 0.0)];
        assert!(test.passed());
        test.checks.push(check(11.0, 0.0));
        assert!(!test.passed());
    }

    #[test]
    fn a_second_attempt_keeps_the_figures_of_the_first() {
        let second = check(10.0, 0.0).after(Some(check(12.0, 0.0)));
        assert_eq!((second.attempts, second.passed), (2, true));
        assert_eq!(second.earlier.map(|first| (first.measured, first.error)), Some((12.0, 2.0)));
    }

    #[test]
    fn errors_are_cited_by_claim_and_rate() {
        let rate =
            |truth: f64, error: f64| Check::judge(Claim::Rate, "", [truth + error, truth, 1.0], "bit/s", String::new());
        let clock = Check::judge(Claim::Clock, "", [20.0, 0.0, 500.0], "ns", String::new());
        let none = Check::judge(Claim::Loss, "", [f64::NAN, 0.0, 0.0], "packets", String::new());
        let checks = [rate(1e7, 1.0), rate(1e9, -5.0), rate(1.02e9, 3.0), rate(2.5e9, 2.0), clock, none];
        let cited: Vec<_> = worst_of_each(&checks).into_iter().map(|cited| (cited.truth, cited.error)).collect();
        assert_eq!(cited, [(1e7, 1.0), (1e9, -5.0), (2.5e9, 2.0)]);
    }

    #[test]
    fn a_citation_has_the_worst_errors_and_the_changes() {
        let rate = |measured| Check::judge(Claim::Rate, "", [measured, 1e8, 2e5], "bit/s", String::new());
        let rtt = Check::judge(Claim::Rtt, "", [7.9e6, 8e6, 5e4], "ns", String::new());
        let test = SelfTest {
            started_unix_ns: 7,
            version: "1".into(),
            boot_id: Some("a".into()),
            checks: vec![rate(1.001e8), rate(0.997e8), rtt],
            ..SelfTest::default()
        };
        let now = Inventory { boot_id: Some("a".into()), kernel: Some("6".into()), ..Inventory::default() };
        let cited = SelfTestCitation::of(&test, &now, "1");
        assert_eq!((cited.passed, cited.checks, cited.changed.as_slice()), (1, 3, &[][..]));
        assert!((cited.worst_rate_error.unwrap() - 0.003).abs() < 1e-9, "{cited:?}");
        assert_eq!(cited.worst_rtt_error_ns, Some(1e5));
        let figures: Vec<_> = cited.errors.iter().map(|cited| (cited.claim, cited.error.round())).collect();
        assert_eq!(figures, [(Claim::Rate, -3e5), (Claim::Rtt, -1e5)], "one rate, its worst error");
        assert_eq!(cited.second_attempts, 0);
        let later = Inventory { boot_id: Some("b".into()), ..now };
        assert_eq!(SelfTestCitation::of(&test, &later, "2").changed, ["boot", "version"]);
    }
}

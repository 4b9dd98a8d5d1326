//! A self-test as a text table.

use std::fmt::Write as _;

use model::units::{bits_per_second, seconds};
use model::{Check, Claim, SelfTest};

/// One check as a line, with its error and the allowed error.
#[must_use]
pub fn check_line(check: &Check) -> String {
    let verdict = if check.passed { "pass" } else { "FAIL" };
    let attempts = if check.attempts > 1 { format!(" (attempt {})", check.attempts) } else { String::new() };
    let note = if check.note.is_empty() { String::new() } else { format!("  [{}]", check.note) };
    format!(
        "{verdict}  {:<6} {:<46} {:>17}  of {:>17}  error {:>12}, allowed {}{attempts}{note}",
        name(check.claim),
        check.path,
        figure(check.measured, &check.unit),
        figure(check.truth, &check.unit),
        error(check.error, check),
        error(check.allowed, check),
    )
}

/// The end of the table: how many checks passed and failed, and what was not checked.
#[must_use]
pub fn selftest_summary(test: &SelfTest) -> String {
    let failed = test.checks.iter().filter(|check| !check.passed).count();
    let passed = test.checks.len() - failed;
    let mut text = format!("{passed} check{} passed, {failed} failed", if passed == 1 { "" } else { "s" });
    if test.realtime == Some(false) {
        text += "; the path emulator had no real-time priority";
    }
    text.push('\n');
    for missing in &test.missing {
        let _ = writeln!(text, "not checked: {missing}");
    }
    text
}

fn name(claim: Claim) -> &'static str {
    match claim {
        Claim::Bytes => "bytes",
        Claim::Rate => "rate",
        Claim::Rtt => "rtt",
        Claim::Delay => "delay",
        Claim::Clock => "clock",
        Claim::Loop => "loop",
        _ => "other",
    }
}

/// A figure with more digits than elsewhere, to show the difference.
fn figure(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => format!("{:.3} Mbit/s", value / 1e6),
        "ns" if value.abs() >= 1e6 => format!("{:.4} ms", value / 1e6),
        "ns" => seconds(value),
        unit => format!("{value:.0} {unit}"),
    }
}

/// An error; of a rate as a percentage.
fn error(value: f64, check: &Check) -> String {
    match check.unit.as_str() {
        "bit/s" if check.truth != 0.0 => format!("{:.3} %", value / check.truth * 100.0),
        "bit/s" => bits_per_second(value),
        "ns" => seconds(value),
        unit => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_verdict_figures_and_error() {
        let check = Check::judge(Claim::Rate, "tbf", [99.9e6, 100e6, 2e5], "bit/s", "5.5 s".into());
        let line = check_line(&check);
        assert!(line.starts_with("pass  rate   tbf "), "{line}");
        assert!(
            line.contains("99.900 Mbit/s  of    100.000 Mbit/s  error     -0.100 %, allowed 0.200 %  [5.5 s]"),
            "{line}"
        );
        let late = Check::judge(Claim::Rtt, "ping", [8.1e6, 8.02e6, 5e4], "ns", String::new());
        let line = check_line(&Check { attempts: 2, ..late });
        assert!(line.starts_with("FAIL  rtt") && line.contains("80.0 µs, allowed 50.0 µs (attempt 2)"), "{line}");
    }

    #[test]
    fn the_summary_names_what_is_missing() {
        let test = SelfTest {
            schema: SelfTest::SCHEMA.into(),
            started_unix_ns: 0,
            version: String::new(),
            hostname: None,
            boot_id: None,
            kernel: None,
            quick: false,
            realtime: Some(false),
            checks: vec![Check::judge(Claim::Bytes, "", [1.0, 2.0, 0.0], "B", String::new())],
            missing: vec!["rates: run as root".into()],
        };
        let text = selftest_summary(&test);
        assert!(text.starts_with("0 checks passed, 1 failed; the path emulator"), "{text}");
        assert!(text.contains("\nnot checked: rates: run as root\n"), "{text}");
    }
}

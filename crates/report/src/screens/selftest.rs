//! A self-test as a text table.

use std::fmt::Write as _;

use model::units::seconds;
use model::{Attempt, Check, CitedError, Claim, SelfTest};
use text::{Rate, RateUnit, Said, Spelling, Text, Time, say};

use crate::labels;

/// One check as a line, with its error and the allowed error.
#[must_use]
pub fn check_line(check: &Check, spelling: Spelling) -> String {
    let verdict = if check.passed { "pass" } else { "FAIL" };
    let attempts = if check.attempts > 1 { attempts(check).shown(spelling) } else { String::new() };
    let note = if check.note.is_empty() { String::new() } else { format!("  [{}]", check.note) };
    format!(
        "{verdict}  {:<7} {:<50} {:>17}  of {:>17}  error {:>12}, allowed {}{attempts}{note}",
        name(check.claim),
        check.path,
        figure(check.measured, &check.unit, spelling.rates),
        figure(check.truth, &check.unit, spelling.rates),
        error(check.error, check.truth, &check.unit).shown(spelling),
        error(check.allowed, check.truth, &check.unit).shown(spelling),
    )
}

/// Which attempt it is, and the first one's error.
fn attempts(check: &Check) -> Text {
    let first = |first: &Attempt| say!("; the first had an error of {}", error(first.error, first.truth, &check.unit));
    let first = check.earlier.as_ref().map_or_else(Text::default, first);
    say!(" (attempt {}{first})", check.attempts)
}

/// The errors of the self-test that apply to an outcome, in one line; `None` without any.
pub(crate) fn accuracy(errors: &[CitedError]) -> Option<Text> {
    let of = |cited: &CitedError| {
        let failed = if cited.passed { "" } else { ", failed" };
        let again = if cited.attempts > 1 { ", second attempt" } else { "" };
        let figure = error(cited.error, cited.truth, &cited.unit);
        say!("{} {figure} ({}{failed}{again})", name(cited.claim), labels::plain(&cited.path))
    };
    let all: Vec<Text> = errors.iter().map(of).collect();
    (!all.is_empty()).then(|| say!("error in this regime: {}", Text::join(all, "; ")))
}

/// The end of the table: how many checks passed and failed, and what was not checked.
#[must_use]
pub fn selftest_summary(test: &SelfTest) -> String {
    let failed = test.checks.iter().filter(|check| !check.passed).count();
    let passed = test.checks.len() - failed;
    let mut text = format!("{passed} check{} passed, {failed} failed", if passed == 1 { "" } else { "s" });
    let again = test.second_attempts().count();
    if again > 0 {
        text += &format!("; {again} of them in a second attempt");
    }
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
        Claim::Added => "added",
        Claim::Pacing => "pacing",
        Claim::Loss => "loss",
        Claim::Reorder => "reorder",
        Claim::OneWay => "one-way",
        Claim::Anatomy => "anatomy",
        _ => "other",
    }
}

/// A figure with more digits than elsewhere, to show the difference.
fn figure(value: f64, unit: &str, rates: RateUnit) -> String {
    match unit {
        "bit/s" if rates == RateUnit::Bytes => format!("{:.3} MB/s", value / 8e6),
        "bit/s" => format!("{:.3} Mbit/s", value / 1e6),
        "ns" if value.abs() >= 1e6 => format!("{:.4} ms", value / 1e6),
        "ns" => seconds(value),
        unit => format!("{value:.0} {unit}"),
    }
}

/// An error; of a rate as a percentage.
fn error(value: f64, truth: f64, unit: &str) -> Text {
    match unit {
        "bit/s" if truth != 0.0 => say!("{:.3} %", value / truth * 100.0),
        "bit/s" => Rate(value).say(),
        "ns" => Time(value).say(),
        unit => say!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_attempt_shows_the_error_of_the_first() {
        let rate = |measured| Check::judge(Claim::Rate, "tbf", [measured, 100e6, 2e5], "bit/s", String::new());
        let line = check_line(&rate(100e6).after(Some(rate(98e6))), Spelling::default());
        assert!(line.ends_with("0.200 % (attempt 2; the first had an error of -2.000 %)"), "{line}");
    }

    #[test]
    fn errors_of_a_regime_are_one_line() {
        let rate = Check::judge(Claim::Rate, "tbf, 100 Mbit/s", [99.9e6, 100e6, 2e5], "bit/s", String::new());
        let loss = Check::judge(Claim::Loss, "emulator", [12.0, 10.0, 1.0], "datagrams", String::new());
        let cited = [CitedError::of(&rate), CitedError { attempts: 2, ..CitedError::of(&loss) }];
        assert_eq!(
            accuracy(&cited).map(|text| text.plain()).as_deref(),
            Some(
                "error in this regime: rate -0.100 % (tbf, 100 Mbit/s); loss 2 datagrams (emulator, failed, second attempt)"
            )
        );
        assert_eq!(accuracy(&[]), None);
    }

    #[test]
    fn a_line_has_verdict_figures_and_error() {
        let check = Check::judge(Claim::Rate, "tbf", [99.9e6, 100e6, 2e5], "bit/s", "5.5 s".into());
        let line = check_line(&check, Spelling::default());
        assert!(line.starts_with("pass  rate    tbf "), "{line}");
        assert!(
            line.contains("99.900 Mbit/s  of    100.000 Mbit/s  error     -0.100 %, allowed 0.200 %  [5.5 s]"),
            "{line}"
        );
        let late = Check::judge(Claim::Rtt, "ping", [8.1e6, 8.02e6, 5e4], "ns", String::new());
        let line = check_line(&Check { attempts: 2, ..late }, Spelling::default());
        assert!(line.starts_with("FAIL  rtt") && line.contains("80.0 µs, allowed 50.0 µs (attempt 2)"), "{line}");
    }

    #[test]
    fn the_summary_names_what_is_missing() {
        let test = SelfTest {
            realtime: Some(false),
            checks: vec![Check::judge(Claim::Bytes, "", [1.0, 2.0, 0.0], "B", String::new())],
            missing: vec!["rates: run as root".into()],
            ..SelfTest::default()
        };
        let text = selftest_summary(&test);
        assert!(text.starts_with("0 checks passed, 1 failed; the path emulator"), "{text}");
        assert!(text.contains("\nnot checked: rates: run as root\n"), "{text}");
    }
}

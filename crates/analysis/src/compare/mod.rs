//! Comparison of B with A: paired within a run ([`of_paired`]), and across stored runs ([`stored_runs`]).
//!
//! Both use ratios, as differences of natural logarithms: effects scale with the path (10 % less goodput, not 3 Mbit/s less), a ratio
//! has no unit, and A over B is the exact inverse of B over A.

mod cells;
mod environment;
mod figures;
mod paired;
mod stored;

use model::{Answer, Estimate, Finding, FindingKind, Ratio, Run};
use text::{Text, say};

use crate::findings::wording;
use crate::outcome::Headline;
use crate::stats::ConfidenceInterval;

pub use environment::{distinguishing, host_differences};
pub use figures::{SideDifference, SideFigure, SideFigureKind, paired_figures};
pub use paired::{ROUND, log_ratios, of_paired, paired_difference};
pub use stored::{CompareError, stored_runs};

/// Unit of an estimate that is one value over another.
const RATIO: &str = "ratio";

/// The answer of a paired run, if it has one.
#[must_use]
pub fn answer_of(run: &Run) -> Option<Answer> {
    let difference = |finding: &&Finding| finding.kind == FindingKind::Difference;
    Some(run.findings.iter().find(difference)?.comparison.as_ref()?.answer)
}

/// The answer for an interval of the log ratio, given the log ratios between which a difference does not matter.
fn judge(interval: Option<ConfidenceInterval>, bounds: ConfidenceInterval, higher_is_better: bool) -> Answer {
    let Some(interval) = interval else { return Answer::CannotTell };
    // If lower is better, the signs are inverted.
    let (interval, bounds) = if higher_is_better { (interval, bounds) } else { (inverted(interval), inverted(bounds)) };
    if interval.high < bounds.low {
        Answer::Worse
    } else if interval.low > bounds.high {
        Answer::Better
    } else if interval.low > bounds.low {
        Answer::NotWorse
    } else {
        Answer::CannotTell
    }
}

fn inverted(interval: ConfidenceInterval) -> ConfidenceInterval {
    ConfidenceInterval { low: -interval.high, high: -interval.low }
}

/// An answer as a clause, with the tolerance.
fn verdict(answer: Answer, tolerance: f64) -> Text {
    let tolerance = Ratio(tolerance);
    match answer {
        Answer::Better => say!("B is better than A by more than {tolerance}"),
        Answer::NotWorse => say!("B is not worse than A by more than {tolerance}"),
        Answer::Worse => say!("B is worse than A by more than {tolerance}"),
        Answer::CannotTell => say!("Cannot tell whether B is worse than A by more than {tolerance}"),
    }
}

/// What is compared, by its unit.
#[must_use]
pub fn what(unit: &str) -> &'static str {
    match unit {
        "1/s" => "transaction rate",
        "ns" => "median RTT",
        _ => "goodput",
    }
}

/// What to know where the rates of two programs are compared, each by its name or `None` for this one; `None` if they are the same.
pub(crate) fn other_clock(one: Option<&str>, other: Option<&str>) -> Option<Text> {
    let name = |program: Option<&str>| program.unwrap_or(THRU).to_owned();
    let (one, other) = if one.is_none() { (one, other) } else { (other, one) };
    (one != other).then(|| {
        let rule = if one.is_none() { " (in thru at the first arrival, in most others with the connection)" } else { "" };
        say!(
            "a trial's clock starts at different events in {} and {}{rule}: in trials of a few round trips this explains part of the \
             difference",
            name(one),
            name(other)
        )
    })
}

/// This program among others.
const THRU: &str = "thru";

/// Whether a higher value of a headline statistic is better.
fn higher_is_better(headline: Headline) -> bool {
    headline != Headline::RoundTrip
}

/// An estimate of the ratio of B to A from its logarithm.
pub(crate) fn ratio(
    value: f64,
    interval: Option<ConfidenceInterval>,
    statistic: String,
    method: String,
    confidence: f64,
    n: usize,
) -> Estimate {
    Estimate {
        statistic,
        unit: RATIO.to_owned(),
        value: value.exp(),
        low: interval.map(|interval| interval.low.exp()),
        high: interval.map(|interval| interval.high.exp()),
        confidence,
        method,
        n: u32::try_from(n).unwrap_or(u32::MAX),
    }
}

/// A ratio as a change with its interval: `+1.2 % (95 % interval -0.3 % to +2.7 %)`.
pub(crate) fn change(estimate: &Estimate) -> Text {
    let value = signed(estimate.value);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            say!("{value} ({} interval {} to {})", wording::confidence(estimate.confidence), signed(low), signed(high))
        }
        _ => say!("{value} (no interval)"),
    }
}

fn signed(ratio: f64) -> Text {
    // Adding 0 turns a rounded -0 into 0.
    say!("{:+.2} %", (1e4 * (ratio - 1.0)).round() / 100.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_answers_and_better() {
        let bounds = ConfidenceInterval { low: -0.01, high: 0.01 };
        for (low, high, rate, time) in [
            (0.02, 0.05, Answer::Better, Answer::Worse),
            (-0.005, 0.05, Answer::NotWorse, Answer::CannotTell),
            (-0.005, 0.005, Answer::NotWorse, Answer::NotWorse),
            (-0.05, 0.005, Answer::CannotTell, Answer::NotWorse),
            (-0.05, -0.02, Answer::Worse, Answer::Better),
            (-0.05, 0.05, Answer::CannotTell, Answer::CannotTell),
        ] {
            let interval = Some(ConfidenceInterval { low, high });
            assert_eq!((judge(interval, bounds, true), judge(interval, bounds, false)), (rate, time), "{low} {high}");
        }
        assert_eq!(judge(None, bounds, true), Answer::CannotTell);
    }
}

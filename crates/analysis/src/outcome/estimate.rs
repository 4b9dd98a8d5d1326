//! The headline number with its interval.

use model::{Estimate, Stopping, Verdict};

use super::Headline;
use crate::stats::{ConfidenceInterval, Sequential, SeriesEstimate, mean, samples_interval};

/// The estimate of a cell from its trials' values; `None` without any. Fewer than three values get the interval of the `samples` in their
/// series, or none if these are few.
#[must_use]
pub fn estimate(headline: Headline, values: &[f64], samples: &[f64], rule: &Stopping) -> Option<Estimate> {
    let (value, of_trials) = mean_of_trials(values, &Sequential::new(rule))?;
    let (series, method) = match of_trials {
        Some(series) => {
            (Some(series), format!("{}, alpha spending at interim analyses", of_means("trials", series.batch)))
        }
        None => match of_samples(value, samples, rule.confidence) {
            Some(series) => (Some(series), of_means("samples within the trial", series.batch)),
            None => (None, "none: fewer than 3 trials, and fewer than 40 samples within them".to_owned()),
        },
    };
    let n = series.map_or(values.len() as f64, |series| series.effective_n);
    Some(Estimate {
        statistic: headline.statistic().to_owned(),
        unit: headline.unit().to_owned(),
        value,
        low: series.map(|series| series.interval.low),
        high: series.map(|series| series.interval.high),
        confidence: rule.confidence,
        method,
        n: n.round() as u32,
    })
}

/// The method of an interval from single values, or from batches of them.
fn of_means(what: &str, batch: usize) -> String {
    let over = if batch > 1 { format!("batches of {batch} {what}") } else { what.to_owned() };
    format!("Student's t over {over}, widened for lag-1 correlation")
}

/// The interval of the samples, around the `value` that weighs all bytes alike.
fn of_samples(value: f64, samples: &[f64], confidence: f64) -> Option<SeriesEstimate> {
    let mut series = samples_interval(samples, confidence)?;
    let half = series.interval.half_width();
    series.interval = ConfidenceInterval { low: (value - half).max(0.0), high: value + half };
    Some(series)
}

/// The mean of trials' values, with its interval if there are enough of them.
pub(crate) fn mean_of_trials(values: &[f64], rule: &Sequential) -> Option<(f64, Option<SeriesEstimate>)> {
    let series = rule.final_estimate(values).map(|mut series| {
        // Rates and times are never negative, however wide the interval of a few scattered trials is.
        series.interval.low = series.interval.low.max(0.0);
        series
    });
    Some((mean(values)?, series))
}

/// A budget this many times as large is still a sensible one to ask for.
const LARGER_BUDGET: f64 = 4.0;

/// Distance of an interval's farther end from the value, relative to the value; `None` without an interval.
pub(crate) fn reach(of: &Estimate) -> Option<f64> {
    Some(ConfidenceInterval { low: of.low?, high: of.high? }.reach_from(of.value))
}

/// Why an estimate has no interval or one wider than the target; `None` if neither is so. `within` is that of a point relative to the
/// other sizes of its curve. Where no target was `asked` for, an interval is as narrow as its trials made it, and missed none.
pub(crate) fn shortfall(
    estimate: Option<&Estimate>,
    within: Option<&Estimate>,
    target: f64,
    asked: bool,
) -> Option<Verdict> {
    let Some(total) = estimate.and_then(reach) else {
        return Some(Verdict::FewTrials);
    };
    if total <= target {
        return None;
    }
    match within.and_then(reach) {
        Some(own) if own <= target => Some(Verdict::Drifting),
        Some(own) if asked && own > target * LARGER_BUDGET.sqrt() => Some(Verdict::Noisy),
        _ => asked.then_some(Verdict::TargetMissed),
    }
}

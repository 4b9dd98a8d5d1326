//! The headline number with its interval.

use model::{Estimate, Stopping, Verdict};

use super::Headline;
use crate::stats::{Interval, Sequential, SeriesEstimate, mean};

/// The estimate of a cell from its trials' values; `None` without any. Fewer than three values get no interval.
pub(crate) fn estimate(headline: Headline, values: &[f64], rule: &Stopping) -> Option<Estimate> {
    let (value, series) = mean_of_trials(values, &Sequential::new(rule))?;
    let method = match &series {
        None => "none: fewer than 3 trials".to_owned(),
        Some(series) if series.batch > 1 => {
            format!(
                "Student's t over batches of {} trials, widened for lag-1 correlation, alpha spending at interim analyses",
                series.batch
            )
        }
        Some(_) => {
            "Student's t over trials, widened for lag-1 correlation, alpha spending at interim analyses".to_owned()
        }
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

/// Why an estimate is not as narrow as requested; `None` if it is. `within` is that of a point relative to the other sizes of its
/// curve.
pub(crate) fn shortfall(estimate: Option<&Estimate>, within: Option<&Estimate>, target: f64) -> Option<Verdict> {
    let reach = |of: &Estimate| Some(Interval { low: of.low?, high: of.high? }.reach_from(of.value));
    let Some(total) = estimate.and_then(reach) else {
        return Some(Verdict::FewTrials);
    };
    if total <= target {
        return None;
    }
    match within.and_then(reach) {
        Some(own) if own <= target => Some(Verdict::Drifting),
        Some(own) if own > target * LARGER_BUDGET.sqrt() => Some(Verdict::Noisy),
        _ => Some(Verdict::TargetMissed),
    }
}

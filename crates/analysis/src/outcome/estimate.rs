//! The headline number with its interval.

use model::{Estimate, Stopping};

use super::Headline;
use crate::stats::{Interval, Sequential, mean};

/// The estimate of a cell from its trials' values; `None` without any. Fewer than three values get no interval.
pub(crate) fn estimate(headline: Headline, values: &[f64], rule: &Stopping) -> Option<Estimate> {
    let value = mean(values)?;
    let series = Sequential::new(rule).final_estimate(values);
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
        // Rates and times are never negative, however wide the interval of a few scattered trials is.
        low: series.map(|series| series.interval.low.max(0.0)),
        high: series.map(|series| series.interval.high),
        confidence: rule.confidence,
        method,
        n: n.round() as u32,
    })
}

/// Whether an interval extends farther from the value than requested, relative to it, or is missing. A point of a curve must also
/// agree with its values without pass effects (`within`): a point measured in slow passes does not.
pub(crate) fn wide(estimate: Option<&Estimate>, within: Option<&Estimate>, target: f64) -> bool {
    let Some(estimate) = estimate else { return true };
    let reach = |part: &Estimate| Some(Interval { low: part.low?, high: part.high? }.reach_from(estimate.value));
    [Some(estimate), within].into_iter().flatten().any(|part| reach(part).is_none_or(|reach| reach > target))
}

/// The estimate of a point of a curve from its `own` values, those without the effects of their passes.
pub(crate) fn within(headline: Headline, own: &[f64], rule: &Stopping) -> Option<Estimate> {
    let estimate = estimate(headline, own, rule)?;
    Some(Estimate { statistic: format!("{}, pass effects removed", headline.statistic()), ..estimate })
}

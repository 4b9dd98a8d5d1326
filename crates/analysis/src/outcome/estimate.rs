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
                "Student t over batches of {} trials, widened for lag-1 correlation, error held back at early looks",
                series.batch
            )
        }
        Some(_) => "Student t over trials, widened for lag-1 correlation, error held back at early looks".to_owned(),
    };
    let n = series.map_or(values.len() as f64, |series| series.effective_n);
    Some(Estimate {
        statistic: headline.statistic().to_owned(),
        unit: headline.unit().to_owned(),
        value,
        // No rate and no time is below zero, however wide a few scattered trials make the interval.
        low: series.map(|series| series.interval.low.max(0.0)),
        high: series.map(|series| series.interval.high),
        confidence: rule.confidence,
        method,
        n: n.round() as u32,
    })
}

/// Whether an interval reaches farther from the value than asked, relative to it, or there is none; of a point of a curve also the
/// one of its place (`within`), which a value that its neighbours speak against lies outside of.
pub(crate) fn wide(estimate: Option<&Estimate>, within: Option<&Estimate>, target: f64) -> bool {
    let Some(estimate) = estimate else { return true };
    let reach = |part: &Estimate| Some(Interval { low: part.low?, high: part.high? }.reach_from(estimate.value));
    [Some(estimate), within].into_iter().flatten().any(|part| reach(part).is_none_or(|reach| reach > target))
}

/// The estimate of a point of a curve from its `own` values, those without the effects of their passes.
pub(crate) fn within(headline: Headline, own: &[f64], rule: &Stopping) -> Option<Estimate> {
    let estimate = estimate(headline, own, rule)?;
    Some(Estimate { statistic: format!("{}, the passes' effects taken out", headline.statistic()), ..estimate })
}

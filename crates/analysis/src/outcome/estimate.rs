//! The headline number with its interval.

use model::{Estimate, Stopping};

use super::Headline;
use crate::stats::{Sequential, mean};

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

/// The estimate of a point of a curve from its `own` values, those without the effects of their passes.
pub(crate) fn within(headline: Headline, own: &[f64], rule: &Stopping) -> Option<Estimate> {
    let estimate = estimate(headline, own, rule)?;
    Some(Estimate { statistic: format!("{}, the passes' effects taken out", headline.statistic()), ..estimate })
}

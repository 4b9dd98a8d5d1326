//! A point of a curve: the median over its legs, with the part of the interval that is its own and the part that all sizes share.

use model::{Estimate, Stopping, median};

use super::Headline;
use crate::stats::median::MIN_VALUES;
use crate::stats::{ConfidenceInterval, MedianEstimate, Sequential, SizeParts, median_estimate, median_with};

/// The value of a point and its two intervals, in the unit of the legs' values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    value: f64,
    /// With the level that all sizes of the curve share.
    total: ConfidenceInterval,
    /// Relative to the other sizes of the curve; `None` if the curve has too few sizes to tell.
    own: Option<ConfidenceInterval>,
    /// Number of independent legs with the same precision.
    effective_n: f64,
}

impl Point {
    /// `None` for fewer than [`MIN_VALUES`] legs.
    fn of(values: &[f64], parts: Option<&SizeParts>, confidence: f64) -> Option<Self> {
        let Some(parts) = parts else {
            let MedianEstimate { median, interval, effective_n, .. } = median_estimate(values, confidence)?;
            return Some(Self { value: median, total: interval, own: None, effective_n });
        };
        let own = median_with(&parts.own, confidence, parts.correlation)?;
        let level = median_estimate(&parts.level, confidence)?;
        // The level is a logarithm.
        let factor = level.median.exp();
        let adjusted = own.median * factor;
        // The two parts are independent, so their relative distances add up as squares.
        let reach = |own_end: f64, level_end: f64| (own_end / own.median - 1.0).hypot(level_end.exp() / factor - 1.0);
        let total = ConfidenceInterval {
            low: adjusted * (1.0 - reach(own.interval.low, level.interval.low)),
            high: adjusted * (1.0 + reach(own.interval.high, level.interval.high)),
        };
        let (value, total) = within_legs(adjusted, total, values)?;
        Some(Self {
            value,
            total,
            own: Some(ConfidenceInterval {
                low: (own.interval.low * factor).min(value),
                high: (own.interval.high * factor).max(value),
            }),
            effective_n: own.effective_n,
        })
    }

    /// Distance of the farther end of the whole interval, relative to the value; it decides whether the point has converged.
    fn reach(&self) -> f64 {
        self.total.reach_from(self.value)
    }
}

/// Keeps an adjusted value within the range of its legs. If all passes of a size were slower (or faster) than most passes of the run,
/// the adjustment extrapolates to a level at which the size was never measured, and sizes near it may have slowed down more than it
/// did. The value is then the leg nearest to the adjusted value, and the interval reaches from the adjusted value to the median of the
/// legs, so that the size counts as uncertain until other passes measure it. `None` without legs.
fn within_legs(adjusted: f64, total: ConfidenceInterval, legs: &[f64]) -> Option<(f64, ConfidenceInterval)> {
    let least = legs.iter().copied().reduce(f64::min)?;
    let most = legs.iter().copied().reduce(f64::max)?;
    if (least..=most).contains(&adjusted) {
        return Some((adjusted, total));
    }
    let centre = median(legs)?;
    Some((adjusted.clamp(least, most), ConfidenceInterval { low: total.low.min(centre), high: total.high.max(centre) }))
}

/// The stop rule of points: a curve analyses all of them after these numbers of passes, which are those of other trials but not
/// fewer than [`MIN_VALUES`].
#[must_use]
pub fn analyses(rule: &Stopping) -> Sequential {
    Sequential::new(&Stopping { min_trials: rule.min_trials.max(MIN_VALUES as u32), ..rule.clone() })
}

/// Whether the interval of a point is as narrow as requested at an analysis.
#[must_use]
pub fn is_converged(values: &[f64], parts: Option<&SizeParts>, analyses: &Sequential) -> bool {
    Point::of(values, parts, analyses.confidence_at(values.len()))
        .is_some_and(|point| point.reach() <= analyses.target())
}

/// Estimated number of legs that a point still needs; `None` for fewer than [`MIN_VALUES`].
#[must_use]
pub fn legs_needed(values: &[f64], parts: Option<&SizeParts>, analyses: &Sequential) -> Option<u32> {
    let now = Point::of(values, parts, analyses.confidence_at(values.len()))?;
    let wanted = values.len() as f64 * (now.reach() / analyses.target()).powi(2);
    let end = analyses.analyses().iter().find(|legs| **legs as f64 >= wanted).or(analyses.analyses().last())?;
    u32::try_from(end.saturating_sub(values.len())).ok()
}

/// The estimate of a point and the one relative to the other sizes; both `None` without a value. Fewer than [`MIN_VALUES`] legs get no
/// interval.
pub(crate) fn estimates(
    headline: Headline,
    values: &[f64],
    parts: Option<&SizeParts>,
    rule: &Stopping,
) -> [Option<Estimate>; 2] {
    let Some(centre) = median(values) else { return [None, None] };
    let analyses = analyses(rule);
    let at = |confidence| Point::of(values, parts, confidence);
    // An analysis that ended the measurement was made at its own confidence.
    let stopped = at(analyses.confidence_at(values.len())).filter(|point| point.reach() <= analyses.target());
    let point = stopped.or_else(|| at(rule.confidence));
    let made = |statistic: &str, method: &str, interval: Option<ConfidenceInterval>| Estimate {
        statistic: statistic.to_owned(),
        unit: headline.unit().to_owned(),
        value: point.map_or(centre, |point| point.value),
        // Rates and times are never negative.
        low: interval.map(|interval| interval.low.max(0.0)),
        high: interval.map(|interval| interval.high),
        confidence: rule.confidence,
        method: method.to_owned(),
        n: point.map_or(values.len() as f64, |point| point.effective_n).round() as u32,
    };
    let method = match (&point, parts) {
        (None, _) => "none: fewer than 10 legs",
        (Some(_), None) => "order statistics of the legs, widened for lag-1 correlation",
        (Some(_), Some(_)) => {
            "order statistics of the legs without the effects of their passes, and of the passes' level, widened for lag-1 \
             correlation"
        }
    };
    let total = made(headline.statistic_of_point(), method, point.map(|point| point.total));
    let own = point.and_then(|point| point.own).map(|own| {
        let statistic = format!("{}, relative to the other sizes", headline.statistic_of_point());
        made(&statistic, "order statistics of the legs without the effects of their passes", Some(own))
    });
    [Some(total), own]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;

    fn noisy(n: usize, own: f64, level: f64, seed: u64) -> (Vec<f64>, SizeParts) {
        let mut random = SplitMix64::new(seed);
        let levels: Vec<f64> = (0..n).map(|_| level * random.normal()).collect();
        let own: Vec<f64> = (0..n).map(|_| 1000.0 * (own * random.normal()).exp()).collect();
        let values = own.iter().zip(&levels).map(|(own, level)| own * level.exp()).collect();
        (values, SizeParts { own, level: levels, correlation: 0.0 })
    }

    fn of(values: &[f64], parts: Option<&SizeParts>) -> [Option<Estimate>; 2] {
        estimates(Headline::RoundTrip, values, parts, &Stopping::default())
    }

    fn half_width(estimate: Option<&Estimate>) -> f64 {
        estimate.and_then(Estimate::relative_half_width).unwrap()
    }

    #[test]
    fn the_total_has_both_parts_and_the_own_one_only_its_own() {
        let (values, parts) = noisy(64, 0.01, 0.05, 1);
        let [total, own] = of(&values, Some(&parts));
        assert!(half_width(own.as_ref()) < 0.006, "{own:?}");
        assert!((0.01..0.03).contains(&half_width(total.as_ref())), "{total:?}");
        assert_eq!(total.unwrap().value, own.unwrap().value);
    }

    #[test]
    fn nine_legs_have_a_value_and_no_interval() {
        let (values, parts) = noisy(9, 0.01, 0.01, 2);
        let [total, own] = of(&values, Some(&parts));
        let total = total.unwrap();
        assert_eq!((total.low, own), (None, None));
        assert!(total.method.contains("fewer than 10"), "{}", total.method);
        assert_eq!(of(&[], None), [None, None]);
    }

    #[test]
    fn one_disturbed_leg_in_ten_moves_nothing() {
        let (mut values, _) = noisy(40, 0.02, 0.0, 3);
        let clean = of(&values, None)[0].clone().unwrap();
        values.iter_mut().step_by(10).for_each(|value| *value *= 8.0);
        let disturbed = of(&values, None)[0].clone().unwrap();
        assert!((disturbed.value / clean.value - 1.0).abs() < 0.01, "{disturbed:?}");
        assert!(half_width(Some(&disturbed)) < 2.0 * half_width(Some(&clean)), "{disturbed:?}");
    }

    #[test]
    fn it_converges_with_ten_legs_at_the_earliest() {
        let rule = analyses(&Stopping::default());
        let (values, parts) = noisy(11, 0.001, 0.001, 4);
        assert_eq!(rule.analyses()[0], 10);
        assert!(!is_converged(&values[..9], None, &rule) && is_converged(&values, Some(&parts), &rule));
        assert_eq!(legs_needed(&values[..9], None, &rule), None);
        let (wild, _) = noisy(10, 0.3, 0.0, 5);
        assert_eq!(legs_needed(&wild, None, &rule), Some(54));
    }

    #[test]
    fn a_size_of_slow_passes_only_is_not_stated_faster_than_it_was_measured() {
        // Its legs are of the slow passes, which took its neighbours five times as long and itself twice as long.
        let (noise, _) = noisy(12, 0.01, 0.0, 7);
        let legs: Vec<f64> = noise.iter().map(|value| 2.0 * value).collect();
        let own = legs.iter().map(|value| value / 5.0).collect();
        let level = (0..24).map(|pass| if pass % 3 == 0 { 5f64.ln() } else { 0.0 }).collect();
        let parts = SizeParts { own, level, correlation: 0.0 };
        let [total, _] = of(&legs, Some(&parts));
        let total = total.unwrap();
        let (least, centre) = (legs.iter().copied().fold(f64::MAX, f64::min), median(&legs).unwrap());
        assert_eq!(total.value, least, "the nearest leg: {total:?}");
        assert!(total.low.unwrap() < 500.0 && total.high.unwrap() >= centre, "{total:?}");
        assert!(!is_converged(&legs, Some(&parts), &analyses(&Stopping::default())), "it is measured again");
    }

    #[test]
    fn a_level_that_drifts_all_the_time_is_bounded_by_its_range() {
        let (_, mut parts) = noisy(12, 0.001, 0.0, 6);
        parts.level = (0..12).map(|pass| 0.01 * f64::from(pass)).collect();
        let values: Vec<f64> = parts.own.iter().zip(&parts.level).map(|(own, level)| own * level.exp()).collect();
        let [total, _] = of(&values, Some(&parts));
        assert!((0.05..0.06).contains(&half_width(total.as_ref())), "{total:?}");
    }
}

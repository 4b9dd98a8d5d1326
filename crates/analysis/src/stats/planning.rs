//! How many trials a cell still needs.

use model::Stopping;

use super::batch::series_interval;
use super::interval::t_critical;
use super::sequential::{Decision, MIN_TRIALS, Sequential};

/// Estimated number of trials that a cell with these values still needs by the stop rule: those up to the first analysis at which
/// the interval would be narrow enough, or to the largest number of trials. 0 if the rule says stop; `None` for fewer than three
/// values, which do not allow an estimate.
#[must_use]
pub fn passes_needed(values: &[f64], rule: &Stopping) -> Option<u32> {
    if values.len() < MIN_TRIALS {
        return None;
    }
    let sequential = Sequential::new(rule);
    if sequential.decide(values) != Decision::Continue {
        return Some(0);
    }
    let now = series_interval(values, rule.confidence)?;
    let wanted = sequential.target() * now.mean.abs();
    let worth = now.effective_n / values.len() as f64;
    let enough = |trials: usize| {
        let growth = trials as f64 / values.len() as f64;
        let df = (trials as f64 * worth - 1.0).max(1.0);
        t_critical(sequential.confidence_at(trials), df)
            .is_some_and(|critical| critical * now.standard_error / growth.sqrt() <= wanted)
    };
    let mut later = sequential.analyses().iter().copied().filter(|trials| *trials > values.len());
    let end = later.clone().find(|trials| enough(*trials)).or_else(|| later.next_back())?;
    u32::try_from(end - values.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    fn noisy(noise: f64, length: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        (0..length).map(|_| 100.0 * (1.0 + noise * random.normal())).collect()
    }

    #[test]
    fn quiet_cells_need_the_first_analysis_and_noisy_ones_all() {
        let rule = Stopping::default();
        assert_eq!(passes_needed(&noisy(0.001, 4, 1), &rule), Some(1));
        assert_eq!(passes_needed(&noisy(0.001, 5, 1), &rule), Some(0));
        assert_eq!(passes_needed(&noisy(0.5, 10, 1), &rule), Some(54));
        assert_eq!(passes_needed(&noisy(0.5, 64, 1), &rule), Some(0));
        assert_eq!(passes_needed(&[1.0, 2.0], &rule), None);
    }

    #[test]
    fn the_forecast_is_close_to_what_the_rule_takes() {
        let rule = Stopping::default();
        let sequential = Sequential::new(&rule);
        let (mut forecast, mut taken) = (0.0, 0.0);
        for seed in 0..300 {
            let values = noisy(0.04, 64, seed);
            let stop = (10..=64).find(|n| sequential.decide(&values[..*n]) != Decision::Continue).unwrap();
            taken += stop as f64;
            forecast += 10.0 + f64::from(passes_needed(&values[..10], &rule).unwrap());
        }
        assert!((forecast / taken - 1.0).abs() < 0.25, "forecast {forecast}, taken {taken}");
    }

    proptest! {
        #[test]
        fn never_past_the_largest_number(values in prop::collection::vec(0.0f64..100.0, 3..64), max in 1u32..100) {
            let rule = Stopping { max_trials: max, ..Stopping::default() };
            let needed = passes_needed(&values, &rule).unwrap();
            prop_assert!(needed == 0 || values.len() as u32 + needed <= max);
        }
    }
}

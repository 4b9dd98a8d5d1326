//! The figures of a probe during a stream.

use model::{Histogram, Responsiveness, RttTally, Spec, Trial};

use super::working::conditions;

/// Share of the round trips, fastest first, over which the mean is taken (draft-ietf-ippm-responsiveness trims its means so).
const TRIMMED: f64 = 0.95;

/// The responsiveness under load by the trials' probes, with `idle` measured before them; `None` without a probe.
pub(crate) fn responsiveness(spec: &Spec, trials: &[Trial], idle: Option<&RttTally>) -> Option<Responsiveness> {
    let (mut all, mut count) = (Histogram::new(), 0);
    for probe in trials.iter().flat_map(|trial| [&trial.near.probe, &trial.far.probe]).flatten() {
        probe.histogram.iter().for_each(|histogram| all.merge(histogram));
        count += probe.count;
    }
    let trimmed = trimmed_mean(&all)?;
    let loaded = RttTally::weighted(all, count)?;
    let working: Vec<_> = trials.iter().filter_map(|trial| conditions(spec, trial)).collect();
    let rpm = crate::stats::mean(&working.iter().map(|conditions| conditions.rpm).collect::<Vec<_>>());
    let enough = |tally: &RttTally| tally.count >= Responsiveness::MIN_SAMPLES;
    Some(Responsiveness {
        idle: idle.cloned(),
        bufferbloat_ns: idle
            .filter(|idle| enough(idle) && enough(&loaded))
            .map(|idle| (loaded.p50_ns as f64 - idle.p50_ns as f64).max(0.0)),
        loaded,
        rpm: rpm.unwrap_or(60e9 / trimmed),
        working,
    })
}

/// The mean of the fastest 95 % in ns, `None` without samples.
fn trimmed_mean(all: &Histogram) -> Option<f64> {
    let mut left = (all.count() as f64 * TRIMMED).ceil() as u64;
    let taken = left;
    let mut sum = 0.0;
    for (ns, count) in all.buckets() {
        let count = count.min(left);
        sum += ns as f64 * count as f64;
        left -= count;
    }
    (taken > 0 && sum > 0.0).then(|| sum / taken as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EndTally, Pattern};

    fn probe(rtts_ns: &[u64]) -> RttTally {
        let mut histogram = Histogram::new();
        rtts_ns.iter().for_each(|ns| histogram.record(*ns));
        RttTally::from_histogram(histogram, 1).unwrap()
    }

    fn trial(rtts_ns: &[u64]) -> Trial {
        let near = EndTally { probe: Some(probe(rtts_ns)), ..EndTally::default() };
        let spec = model::Spec::new("tcp", Pattern::Stream);
        Trial { near: near.into(), ..crate::outcome::testing::stream_trial(&spec, 80) }
    }

    fn plain() -> Spec {
        Spec::new("tcp", Pattern::Stream)
    }

    #[test]
    fn loaded_and_idle_round_trips_are_compared() {
        // 19 round trips of 1 µs and one of 1 s: the slowest 5 % are not in the mean.
        let mut rtts = vec![1_000; 19];
        rtts.push(1_000_000_000);
        let found =
            responsiveness(&plain(), &[trial(&rtts[..10]), trial(&rtts[10..])], Some(&probe(&[400; 10]))).unwrap();
        assert_eq!((found.loaded.count, found.bufferbloat_ns, found.rpm), (20, Some(600.0), 60e6));
        assert!(found.loaded.max_ns >= 1_000_000_000);
    }

    #[test]
    fn a_load_that_does_not_slow_adds_nothing() {
        let found = responsiveness(&plain(), &[trial(&[300; 10])], Some(&probe(&[400; 10]))).unwrap();
        assert_eq!(found.bufferbloat_ns, Some(0.0));
        for (loaded, idle) in [(10, 9), (9, 10)] {
            let found = responsiveness(&plain(), &[trial(&vec![300; loaded])], Some(&probe(&vec![400; idle]))).unwrap();
            assert_eq!(found.bufferbloat_ns, None, "{loaded} and {idle} are too few");
        }
        assert_eq!(responsiveness(&plain(), &[], None), None);
    }
}

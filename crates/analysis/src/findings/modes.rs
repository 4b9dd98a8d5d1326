//! Round trips that take either of two times, as where a thread is sometimes woken up and sometimes still awake.

use model::{Finding, FindingKind, Histogram, Outcome};
use text::{Time, say};

/// Width of a bin in natural logarithms.
const BIN: f64 = 0.08;
/// Fewest round trips.
const LEAST: u64 = 500;
/// Smallest share of a mode.
const SHARE: f64 = 0.1;
/// Smallest ratio of the two modes' times.
const RATIO: f64 = 1.4;
/// Largest height of the valley between two modes, relative to the lower of them.
const VALLEY: f64 = 0.5;

/// One of two modes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mode {
    /// Median of its round trips, ns.
    ns: u64,
    /// Its share of all round trips.
    share: f64,
}

/// What the round trips of an outcome say about two modes; `None` if they have one.
pub(super) fn of_outcome(outcome: &Outcome) -> Option<Finding> {
    finding(outcome.histogram.as_ref()?, "Round trips", vec![outcome.cell])
}

/// The same of a curve's sizes up to `largest`, whose round trips differ little.
pub(super) fn of_small_sizes(outcomes: &[Outcome], largest: u64) -> Option<Finding> {
    let mut all = Histogram::new();
    let small = || outcomes.iter().filter(|outcome| outcome.spec.block <= largest);
    small().filter_map(|outcome| outcome.histogram.as_ref()).for_each(|one| all.merge(one));
    finding(&all, "Round trips of small blocks", small().map(|outcome| outcome.cell).collect())
}

fn finding(histogram: &Histogram, of: &str, cells: Vec<u32>) -> Option<Finding> {
    let [fast, slow] = modes(histogram)?;
    let share = |mode: &Mode| say!("{:.0} % take about {}", 100.0 * mode.share, Time(mode.ns as f64));
    let statement = say!("{of} have two modes, so a mean lies between them: {}, {}.", share(&fast), share(&slow));
    Some(Finding { kind: FindingKind::Note, statement, estimate: None, comparison: None, block: None, cells })
}

/// The faster and the slower mode. The deepest valley divides them.
fn modes(histogram: &Histogram) -> Option<[Mode; 2]> {
    if histogram.count() < LEAST {
        return None;
    }
    let bins = bins(histogram);
    let valley = (1..bins.len().saturating_sub(1))
        .filter_map(|at| Some((depth(&bins, at)?, at)))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))?
        .1;
    let limit = (bins[valley].0 as f64 + 0.5) * BIN;
    let below = |ns: u64| (ns.max(1) as f64).ln() < limit;
    let part = |low: bool| {
        let of = Histogram::from_buckets(histogram.buckets().filter(|(ns, _)| below(*ns) == low), 0);
        Some(Mode { ns: of.quantile(0.5)?, share: of.count() as f64 / histogram.count() as f64 })
    };
    let modes = [part(true)?, part(false)?];
    let apart = modes[1].ns as f64 / modes[0].ns.max(1) as f64 >= RATIO;
    (apart && modes.iter().all(|mode| mode.share >= SHARE)).then_some(modes)
}

/// Counts by the logarithm of the time: the number of a bin and its round trips, without gaps.
fn bins(histogram: &Histogram) -> Vec<(i64, u64)> {
    let number = |ns: u64| ((ns.max(1) as f64).ln() / BIN).round() as i64;
    let mut bins: Vec<(i64, u64)> = Vec::new();
    for (ns, count) in histogram.buckets() {
        let at = number(ns);
        while bins.last().is_some_and(|(last, _)| *last < at) {
            bins.push((bins[bins.len() - 1].0 + 1, 0));
        }
        match bins.last_mut() {
            Some((_, sum)) => *sum += count,
            None => bins.push((at, count)),
        }
    }
    bins
}

/// How far the bin is below the lower one of the peaks on its two sides; `None` where it is no valley beyond chance.
fn depth(bins: &[(i64, u64)], at: usize) -> Option<f64> {
    let peak = |side: &[(i64, u64)]| side.iter().map(|(_, count)| *count).max();
    let lower = peak(&bins[..at])?.min(peak(&bins[at + 1..])?) as f64;
    let here = bins[at].1 as f64;
    // Counts vary by their square root.
    (here <= VALLEY * lower && lower - here > 4.0 * lower.sqrt()).then_some(lower - here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    /// Round trips around these times, ns, by so many times their share.
    fn trips(modes: &[(f64, u64)], spread: f64, seed: u64) -> Histogram {
        let mut random = SplitMix64::new(seed);
        let mut histogram = Histogram::new();
        for (ns, count) in modes {
            for _ in 0..*count {
                let sum: f64 = (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum();
                histogram.record((ns * (1.0 + spread * (sum - 6.0)).max(0.1)) as u64);
            }
        }
        histogram
    }

    #[test]
    fn two_times_are_two_modes_with_their_shares() {
        let [fast, slow] = modes(&trips(&[(12_000.0, 6_300), (52_000.0, 3_700)], 0.08, 1)).unwrap();
        assert!((fast.share - 0.63).abs() < 0.01 && (slow.share - 0.37).abs() < 0.01, "{fast:?} {slow:?}");
        assert!(fast.ns.abs_diff(12_000) < 300 && slow.ns.abs_diff(52_000) < 1_200, "{fast:?} {slow:?}");
        let said = finding(&trips(&[(12_000.0, 6_300), (52_000.0, 3_700)], 0.08, 1), "Round trips", vec![0]).unwrap();
        assert!(
            said.statement.plain().contains("63 % take about 12.") && said.statement.plain().contains("37 %"),
            "{said:?}"
        );
    }

    #[test]
    fn a_tail_is_no_mode() {
        assert_eq!(modes(&trips(&[(12_000.0, 9_500), (60_000.0, 500)], 0.08, 2)), None, "one in twenty");
        assert_eq!(modes(&trips(&[(12_000.0, 5_000), (14_000.0, 5_000)], 0.08, 3)), None, "times that differ little");
        assert_eq!(modes(&trips(&[(12_000.0, 200), (52_000.0, 200)], 0.05, 4)), None, "few round trips");
        assert_eq!(modes(&Histogram::new()), None);
    }

    proptest! {
        #[test]
        fn one_time_is_one_mode(ns in 1_000.0..1e8f64, spread in 0.001..0.3f64, count in 500u64..20_000, seed in any::<u64>()) {
            prop_assert_eq!(modes(&trips(&[(ns, count)], spread, seed)), None);
        }
    }
}

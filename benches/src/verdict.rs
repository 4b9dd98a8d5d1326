//! The result of paired rounds: ahead, level or behind, and whether a goal is met.

use analysis::stats::{Interval, median, median_interval};
use serde::Serialize;

use crate::work::Better;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// A row misses its goal if the interval's worse end is further from it than this. Otherwise two equal tools
/// would miss a goal of 1.00 in half of all runs.
const CLOSE: f64 = 0.97;

/// Fewest rounds for a conclusion. The bootstrap interval of the median is then the whole range, which contains
/// the true median with probability 1 - 2^(1-n): 94 % with five rounds, 75 % with three.
const LEAST_ROUNDS: usize = 5;

/// Ours divided by a peer's, round by round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The peer.
    pub peer: &'static str,
    /// Median over the rounds in which both gave a number.
    pub median: f64,
    /// Low end of the bootstrap interval of the median; null for fewer than five rounds.
    pub low: Option<f64>,
    /// High end.
    pub high: Option<f64>,
    /// Rounds.
    pub rounds: usize,
    /// The conclusion.
    pub standing: Standing,
}

/// Our result compared with a peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The whole interval is on the good side of 1.
    Ahead,
    /// The interval holds 1.
    Level,
    /// The whole interval is on the bad side of 1.
    Behind,
    /// Too few rounds for an interval, or neither direction is better.
    Unknown,
}

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// The interval's worse end is within 3 % of the goal or better.
    Met,
    /// It is further away.
    Short,
    /// Too few rounds for an interval.
    Unknown,
}

/// Pairs our numbers with a peer's of the same rounds; `None` without a common round.
pub fn ratio(
    peer: &'static str,
    ours: &[Option<f64>],
    theirs: &[Option<f64>],
    better: Better,
    seed: u64,
) -> Option<Ratio> {
    let pairs: Vec<f64> = ours.iter().zip(theirs).filter_map(|(ours, theirs)| Some((*ours)? / (*theirs)?)).collect();
    let centre = median(&pairs)?;
    let interval = sound_interval(&pairs, seed);
    Some(Ratio {
        peer,
        median: centre,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        rounds: pairs.len(),
        standing: interval.map_or(Standing::Unknown, |interval| standing(&interval, better)),
    })
}

/// Bootstrap interval of the median of the rounds; `None` for fewer than [`LEAST_ROUNDS`].
pub fn sound_interval(rounds: &[f64], seed: u64) -> Option<Interval> {
    if rounds.len() < LEAST_ROUNDS { None } else { median_interval(rounds, CONFIDENCE, seed) }
}

fn standing(interval: &Interval, better: Better) -> Standing {
    let (above, below) = match better {
        Better::Higher => (Standing::Ahead, Standing::Behind),
        Better::Lower => (Standing::Behind, Standing::Ahead),
        Better::Near => return Standing::Unknown,
    };
    if interval.low > 1.0 {
        above
    } else if interval.high < 1.0 {
        below
    } else {
        Standing::Level
    }
}

/// Judges an interval by a lower bound (or, if lower is better, an upper bound). If near is better, use
/// [`within`].
pub fn reached(interval: Option<[f64; 2]>, bound: f64, better: Better) -> Reached {
    let Some([low, high]) = interval else { return Reached::Unknown };
    let close = match better {
        Better::Higher => low >= CLOSE * bound,
        Better::Lower => high <= bound / CLOSE,
        Better::Near => return Reached::Unknown,
    };
    if close { Reached::Met } else { Reached::Short }
}

/// Judges an interval that should lie within `share` of `value`.
pub fn within(interval: Option<[f64; 2]>, value: f64, share: f64) -> Reached {
    let Some([low, high]) = interval else { return Reached::Unknown };
    if low >= value * (1.0 - share) && high <= value * (1.0 + share) { Reached::Met } else { Reached::Short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn drift_that_hits_both_tools_does_not_blur_the_ratio() {
        let theirs = all(&[10.0, 20.0, 40.0, 30.0, 15.0]);
        let ours = all(&[11.0, 22.0, 44.0, 33.0, 16.5]);
        let higher = ratio("other", &ours, &theirs, Better::Higher, 1).unwrap();
        assert!((higher.median - 1.1).abs() < 1e-9 && higher.low.unwrap() > 1.09);
        assert_eq!(higher.standing, Standing::Ahead);
        assert_eq!(ratio("other", &ours, &theirs, Better::Lower, 1).unwrap().standing, Standing::Behind);
    }

    #[test]
    fn rounds_that_one_tool_failed_in_are_left_out() {
        let ours = [Some(1.0), None, Some(3.0)];
        let theirs = [Some(2.0), Some(2.0), None];
        let one = ratio("other", &ours, &theirs, Better::Higher, 1).unwrap();
        assert_eq!((one.rounds, one.median, one.standing), (1, 0.5, Standing::Unknown));
        assert_eq!(ratio("other", &[None], &[Some(1.0)], Better::Higher, 1), None);
        let four = ratio("other", &all(&[2.0; 4]), &all(&[1.0; 4]), Better::Higher, 1).unwrap();
        assert_eq!((four.low, four.standing), (None, Standing::Unknown));
    }

    #[test]
    fn scattered_ratios_are_level() {
        let ours = all(&[0.8, 1.2, 1.0, 0.9, 1.1]);
        assert_eq!(ratio("other", &ours, &all(&[1.0; 5]), Better::Higher, 1).unwrap().standing, Standing::Level);
    }

    #[test]
    fn a_row_falls_short_when_the_worse_end_is_more_than_3_percent_off() {
        for (interval, higher, lower) in [
            (Some([1.1, 1.2]), Reached::Met, Reached::Short),
            (Some([0.98, 1.02]), Reached::Met, Reached::Met),
            (Some([0.96, 1.5]), Reached::Short, Reached::Short),
            (Some([0.8, 0.9]), Reached::Short, Reached::Met),
            (Some([0.5, 1.04]), Reached::Short, Reached::Short),
            (None, Reached::Unknown, Reached::Unknown),
        ] {
            assert_eq!(reached(interval, 1.0, Better::Higher), higher, "{interval:?}");
            assert_eq!(reached(interval, 1.0, Better::Lower), lower, "{interval:?}");
        }
    }

    #[test]
    fn a_rate_is_within_its_share_on_both_sides_or_falls_short() {
        assert_eq!(within(Some([99.6, 100.4]), 100.0, 0.005), Reached::Met);
        assert_eq!(within(Some([99.4, 100.0]), 100.0, 0.005), Reached::Short);
        assert_eq!(within(Some([100.0, 100.6]), 100.0, 0.005), Reached::Short);
        assert_eq!(within(None, 100.0, 0.005), Reached::Unknown);
        let near = ratio("other", &all(&[1.1; 5]), &all(&[1.0; 5]), Better::Near, 1).unwrap();
        assert_eq!(near.standing, Standing::Unknown);
    }
}

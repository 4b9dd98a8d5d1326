//! The result of paired rounds: ahead, level or behind, and whether a goal is met.

use analysis::stats::{ConfidenceInterval, order_interval};
use serde::{Deserialize, Serialize};

use crate::work::Better;

/// Ours divided by a peer's, round by round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The peer.
    pub peer: String,
    /// Median over the rounds in which both gave a number.
    pub median: f64,
    /// Low end of the exact interval of the median, one of the ratios; null for too few rounds.
    pub low: Option<f64>,
    /// High end.
    pub high: Option<f64>,
    /// Rounds in which both gave a number.
    pub rounds: usize,
    /// The conclusion.
    pub standing: Standing,
}

/// Our result compared with a peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// The whole interval is at the goal or better.
    Met,
    /// The interval holds the goal.
    Level,
    /// The whole interval is worse than the goal.
    Short,
    /// Too few rounds for an interval.
    Unknown,
}

/// Pairs our numbers with a peer's of the same rounds; `None` without a common round.
pub fn ratio(
    peer: &str,
    ours: &[Option<f64>],
    theirs: &[Option<f64>],
    better: Better,
    confidence: f64,
) -> Option<Ratio> {
    let pairs = paired(ours, theirs, |ours, theirs| ours / theirs);
    let interval = order_interval(&pairs, confidence);
    Some(Ratio {
        peer: peer.to_owned(),
        median: model::median(&pairs)?,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        rounds: pairs.len(),
        standing: interval.map_or(Standing::Unknown, |interval| standing(&interval, better)),
    })
}

/// One number for each round in which both have one.
pub fn paired(ours: &[Option<f64>], theirs: &[Option<f64>], of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    ours.iter().zip(theirs).filter_map(|(ours, theirs)| Some(of((*ours)?, (*theirs)?))).collect()
}

fn standing(interval: &ConfidenceInterval, better: Better) -> Standing {
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
    let (met, short) = match better {
        Better::Higher => (low >= bound, high < bound),
        Better::Lower => (high <= bound, low > bound),
        Better::Near => return Reached::Unknown,
    };
    judged(met, short)
}

/// Judges an interval that should lie within `share` of `value`.
pub fn within(interval: Option<[f64; 2]>, value: f64, share: f64) -> Reached {
    let Some([low, high]) = interval else { return Reached::Unknown };
    let [least, most] = [value * (1.0 - share), value * (1.0 + share)];
    judged(low >= least && high <= most, high < least || low > most)
}

fn judged(met: bool, short: bool) -> Reached {
    match (met, short) {
        (true, _) => Reached::Met,
        (_, true) => Reached::Short,
        _ => Reached::Level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn drift_that_hits_both_tools_does_not_blur_the_ratio() {
        let theirs = all(&[10.0, 20.0, 40.0, 30.0, 15.0, 12.0]);
        let ours = all(&[11.0, 22.0, 44.0, 33.0, 16.5, 13.2]);
        let higher = ratio("other", &ours, &theirs, Better::Higher, 0.95).unwrap();
        assert!((higher.median - 1.1).abs() < 1e-9 && higher.low.unwrap() > 1.09);
        assert_eq!(higher.standing, Standing::Ahead);
        assert_eq!(ratio("other", &ours, &theirs, Better::Lower, 0.95).unwrap().standing, Standing::Behind);
    }

    #[test]
    fn rounds_that_one_tool_failed_in_are_left_out() {
        let ours = [Some(1.0), None, Some(3.0)];
        let theirs = [Some(2.0), Some(2.0), None];
        let one = ratio("other", &ours, &theirs, Better::Higher, 0.95).unwrap();
        assert_eq!((one.rounds, one.median, one.standing), (1, 0.5, Standing::Unknown));
        assert_eq!(ratio("other", &[None], &[Some(1.0)], Better::Higher, 0.95), None);
    }

    #[test]
    fn a_row_has_an_interval_from_the_needed_rounds_on() {
        let of = |rounds: usize, confidence| {
            ratio("other", &all(&vec![2.0; rounds]), &all(&vec![1.0; rounds]), Better::Higher, confidence).unwrap()
        };
        assert_eq!((of(5, 0.95).low, of(5, 0.95).standing), (None, Standing::Unknown));
        assert_eq!((of(6, 0.95).low, of(6, 0.95).standing), (Some(2.0), Standing::Ahead));
        assert_eq!(of(11, 0.9995).standing, Standing::Unknown);
        assert_eq!(of(12, 0.9995).standing, Standing::Ahead);
    }

    #[test]
    fn scattered_ratios_are_level() {
        let ours = all(&[0.8, 1.2, 1.0, 0.9, 1.1, 1.05]);
        assert_eq!(ratio("other", &ours, &all(&[1.0; 6]), Better::Higher, 0.95).unwrap().standing, Standing::Level);
        // One round of six on the other side is not enough for 95 %.
        let ours = all(&[1.3, 1.2, 1.3, 1.2, 1.1, 0.99]);
        assert_eq!(ratio("other", &ours, &all(&[1.0; 6]), Better::Higher, 0.95).unwrap().standing, Standing::Level);
    }

    #[test]
    fn a_goal_that_noise_cannot_decide_is_level() {
        for (interval, higher, lower) in [
            (Some([1.1, 1.2]), Reached::Met, Reached::Short),
            (Some([1.0, 1.2]), Reached::Met, Reached::Level),
            (Some([0.98, 1.02]), Reached::Level, Reached::Level),
            (Some([0.8, 1.0]), Reached::Level, Reached::Met),
            (Some([0.8, 0.9]), Reached::Short, Reached::Met),
            (None, Reached::Unknown, Reached::Unknown),
        ] {
            assert_eq!(reached(interval, 1.0, Better::Higher), higher, "{interval:?}");
            assert_eq!(reached(interval, 1.0, Better::Lower), lower, "{interval:?}");
        }
    }

    #[test]
    fn a_rate_is_within_its_share_on_both_sides_or_falls_short() {
        assert_eq!(within(Some([99.6, 100.4]), 100.0, 0.005), Reached::Met);
        assert_eq!(within(Some([99.4, 100.0]), 100.0, 0.005), Reached::Level);
        assert_eq!(within(Some([99.0, 99.4]), 100.0, 0.005), Reached::Short);
        assert_eq!(within(Some([100.6, 101.0]), 100.0, 0.005), Reached::Short);
        assert_eq!(within(None, 100.0, 0.005), Reached::Unknown);
        let near = ratio("other", &all(&[1.1; 6]), &all(&[1.0; 6]), Better::Near, 0.95).unwrap();
        assert_eq!(near.standing, Standing::Unknown);
    }
}

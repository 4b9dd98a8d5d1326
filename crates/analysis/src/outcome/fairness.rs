//! How evenly flows share a path.

use std::collections::BTreeMap;

use model::{FlowTally, Shares, Stop, Trial, median};

use super::ends::requester;

/// Jain's index of the flows of one trial: (sum of shares) squared over (n times the sum of their squares), from R. Jain,
/// D. Chiu and W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984. `None` with fewer than two flows, or when
/// no payload arrived. With flows in both directions the received bytes of both ends count together.
pub(crate) fn fairness(trial: &Trial) -> Option<f64> {
    jain(&shares(trial))
}

/// Smallest, median and largest share over all trials, relative to an equal share; `None` with fewer than two flows, or if no
/// payload arrived.
pub(crate) fn spread(trials: &[Trial]) -> Option<Shares> {
    let each: Vec<Shares> = trials.iter().filter_map(|trial| spread_of(&shares(trial))).collect();
    let pick = |pick: fn(&Shares) -> f64, choose: fn(f64, f64) -> f64| each.iter().map(pick).reduce(choose);
    Some(Shares {
        min: pick(|shares| shares.min, f64::min)?,
        median: median(&each.iter().map(|shares| shares.median).collect::<Vec<_>>())?,
        max: pick(|shares| shares.max, f64::max)?,
        empty: each.iter().map(|shares| shares.empty).max()?,
    })
}

/// Whether a flow received nothing in a timed trial. In a trial of a fixed count a flow may get nothing legitimately.
pub(crate) fn starved(stop: Stop, trial: (&model::EndTally, &model::EndTally)) -> bool {
    matches!(stop, Stop::TimeNs(_)) && spread_of(&shares_of(trial.0, trial.1)).is_some_and(|shares| shares.empty > 0)
}

fn spread_of(shares: &[f64]) -> Option<Shares> {
    let equal = shares.iter().sum::<f64>() / shares.len() as f64;
    if shares.len() < 2 || equal <= 0.0 {
        return None;
    }
    Some(Shares {
        min: shares.iter().copied().fold(f64::MAX, f64::min) / equal,
        median: median(shares)? / equal,
        max: shares.iter().copied().fold(0.0, f64::max) / equal,
        empty: shares.iter().filter(|share| **share == 0.0).count() as u32,
    })
}

/// What each flow of a trial got, see [`fairness`].
pub(crate) fn shares(trial: &Trial) -> Vec<f64> {
    shares_of(&trial.near, &trial.far)
}

/// What each flow got: round trips if there are any, else bytes received.
fn shares_of(near: &model::EndTally, far: &model::EndTally) -> Vec<f64> {
    // With flows in both directions a flow has two connections, and each end receives on one of them.
    let shares = |share: fn(&FlowTally) -> u64, flows: &[FlowTally]| {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        flows.iter().for_each(|flow| *sums.entry(flow.flow).or_default() += share(flow));
        sums.into_values().map(|sum| sum as f64).collect::<Vec<f64>>()
    };
    let requester = requester(near, far);
    if requester.transactions > 0 {
        return shares(|flow| flow.transactions, &requester.flows);
    }
    let received = [near, far].into_iter().filter(|end| end.bytes_received > 0);
    received.flat_map(|end| shares(|flow| flow.bytes_received, &end.flows)).collect()
}

/// Jain's index of these shares, see [`fairness`].
pub(crate) fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_shares_are_one_and_a_single_taker_is_one_nth() {
        assert_eq!(jain(&[3.0; 7]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[]), jain(&[1.0]), jain(&[0.0, 0.0])), (None, None, None));
    }

    fn received(shares: &[(u32, u64)]) -> model::EndTally {
        let flow = |(flow, bytes_received): &(u32, u64)| FlowTally {
            flow: *flow,
            bytes_received: *bytes_received,
            ..FlowTally::default()
        };
        let bytes_received = shares.iter().map(|(_, bytes)| bytes).sum();
        model::EndTally { bytes_received, flows: shares.iter().map(flow).collect(), ..model::EndTally::default() }
    }

    #[test]
    fn a_connection_that_only_sends_has_no_share() {
        let (near, far) = (received(&[(0, 0), (0, 5), (1, 0), (1, 5)]), received(&[(0, 5), (0, 0), (1, 5), (1, 0)]));
        assert_eq!(jain(&shares_of(&near, &far)), Some(1.0));
        assert!(!starved(Stop::TimeNs(1), (&near, &far)));
    }

    #[test]
    fn shares_are_relative_to_an_equal_one_and_empty_ones_are_counted() {
        let far = received(&[(0, 0), (1, 10), (2, 30), (3, 40)]);
        let shares = spread_of(&shares_of(&model::EndTally::default(), &far)).unwrap();
        assert_eq!((shares.min, shares.median, shares.max, shares.empty), (0.0, 1.0, 2.0, 1));
        assert!(starved(Stop::TimeNs(1), (&model::EndTally::default(), &far)));
        assert!(!starved(Stop::Blocks(3), (&model::EndTally::default(), &far)), "three blocks for four flows");
        assert_eq!(spread_of(&[7.0]), None);
    }

    proptest! {
        #[test]
        fn the_index_lies_between_one_nth_and_one(shares in prop::collection::vec(0.0f64..1e12, 2..40)) {
            if let Some(index) = jain(&shares) {
                prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / shares.len() as f64 - 1e-9, "{}", index);
            }
        }
    }
}

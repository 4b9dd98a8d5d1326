//! How evenly flows share a path.

use model::{FlowTally, Trial};

use super::trial::asker;

/// Jain's index of the flows of one trial: (sum of shares) squared over (n times the sum of their squares), from R. Jain,
/// D. Chiu and W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984. `None` with fewer than two flows, or when
/// nothing moved. With flows in both directions each end's receiving counts, all of them together.
pub(crate) fn fairness(trial: &Trial) -> Option<f64> {
    let shares = |share: fn(&FlowTally) -> u64, flows: &[FlowTally]| -> Vec<f64> {
        flows.iter().map(|flow| share(flow) as f64).collect()
    };
    let asked = asker(&trial.near, &trial.far);
    let all = if asked.transactions > 0 {
        shares(|flow| flow.transactions, &asked.flows)
    } else {
        let received = [&trial.near, &trial.far].into_iter().filter(|end| end.bytes_received > 0);
        received.flat_map(|end| shares(|flow| flow.bytes_received, &end.flows)).collect()
    };
    jain(&all)
}

fn jain(shares: &[f64]) -> Option<f64> {
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

    proptest! {
        #[test]
        fn the_index_lies_between_one_nth_and_one(shares in prop::collection::vec(0.0f64..1e12, 2..40)) {
            if let Some(index) = jain(&shares) {
                prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / shares.len() as f64 - 1e-9, "{}", index);
            }
        }
    }
}

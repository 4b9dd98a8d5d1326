//! How much the passes of a curve vary.

use model::{Estimate, Finding, FindingKind, Outcome};
use text::say;

use crate::outcome::legs;
use crate::stats::{LegValue, level_spread};

/// The finding; `None` for too few passes or sizes.
pub(super) fn connections(outcomes: &[Outcome]) -> Option<Finding> {
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| outcome.spec.block);
    let values: Vec<Vec<LegValue>> = sorted.iter().map(|outcome| legs(&outcome.trials)).collect();
    let spread = level_spread(&values)?;
    let passes = sorted.iter().map(|outcome| outcome.trials.len()).max().unwrap_or(0);
    let statement = say!(
        "All sizes vary together by {:.1} % (standard deviation) from pass to pass, because each opens new connections: expect this \
         much run-to-run variation.",
        spread * 100.0,
    );
    Some(Finding {
        kind: FindingKind::Connections,
        statement,
        estimate: Some(Estimate {
            statistic: "standard deviation of the pass effects, relative to the value".to_owned(),
            unit: "ratio".to_owned(),
            value: spread,
            low: None,
            high: None,
            confidence: 0.95,
            method: "none: a standard deviation".to_owned(),
            n: passes as u32,
        }),
        block: None,
        cells: sorted.iter().map(|outcome| outcome.cell).collect(),
        comparison: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::curve::testing::*;
    use super::*;
    use model::Pattern;

    /// Outcomes whose trials of one pass share a factor.
    fn moved(blocks: &[u64], factors: &[f64]) -> Vec<Outcome> {
        let of = |(cell, block): (usize, &u64)| {
            let values: Vec<f64> = factors.iter().map(|factor| 1e4 * factor * (1.0 + *block as f64 / 1e4)).collect();
            let mut outcome = made(Pattern::Pingpong, cell as u32, *block, &values);
            outcome.trials.iter_mut().zip(0..).for_each(|(trial, pass)| trial.pass = pass);
            outcome
        };
        blocks.iter().enumerate().map(of).collect()
    }

    #[test]
    fn variation_from_pass_to_pass_is_found() {
        let found = connections(&moved(&[1, 2, 3, 4, 6, 8, 12], &[0.9, 1.0, 1.1, 1.0])).unwrap();
        assert!(found.statement.plain().contains("8.2 %"), "{}", found.statement.plain());
        assert_eq!(found.cells.len(), 7);
    }

    #[test]
    fn few_sizes_or_passes_give_nothing() {
        assert_eq!(connections(&moved(&[1, 2, 3], &[0.9, 1.0, 1.1])), None);
        assert_eq!(connections(&moved(&[1, 2, 3, 4, 6, 8], &[0.9, 1.1])), None);
    }
}

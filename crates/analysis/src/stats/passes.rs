//! Pass effects of a curve, separated from the variation of each size.
//!
//! A curve is a randomised block design: every pass takes all open sizes once, over new connections. A pass's connections, and the
//! state of the hosts during it, change all its sizes together; that is the variation *between* connections. The rest of a trial's
//! variation is *within*. Removing the pass effect before sizes are compared is part of the design (Fisher, 1935, "The Design of
//! Experiments"). The effect may differ between a byte and a megabyte, so it is estimated for each trial from the neighbouring
//! sizes, by a median, which a few disturbed trials do not move.

use super::summary::{median, sample_sd};

/// One trial of a cell: the number of its pass, and its value, in any unit.
pub type PassValue = (u32, f64);

/// Neighbouring sizes from which a pass effect is estimated.
const NEIGHBOURS: usize = 16;
/// Fewest of them; with fewer there is no estimate.
const MIN_NEIGHBOURS: usize = 5;

/// For each cell (ascending by block, its trials in their order) its values divided by the effects of their passes. A trial whose
/// pass has too few other cells keeps its value. Empty if there are too few cells for an estimate.
#[must_use]
pub fn without_pass_effects(cells: &[Vec<PassValue>]) -> Vec<Vec<f64>> {
    if cells.len() <= MIN_NEIGHBOURS {
        return Vec::new();
    }
    let deviations = deviations(cells);
    cells
        .iter()
        .enumerate()
        .map(|(cell, trials)| {
            let own = |(pass, value): &PassValue| value / effect(&deviations, cell, *pass).exp();
            trials.iter().map(own).collect()
        })
        .collect()
}

/// Standard deviation of the pass effects, each the median over the cells of a pass, as a fraction; `None` for fewer than three
/// passes with [`MIN_NEIGHBOURS`] cells.
#[must_use]
pub fn pass_spread(cells: &[Vec<PassValue>]) -> Option<f64> {
    let mut passes: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for (pass, deviation) in deviations(cells).into_iter().flatten() {
        passes.entry(pass).or_default().push(deviation);
    }
    let effects: Vec<f64> =
        passes.values().filter(|pass| pass.len() >= MIN_NEIGHBOURS).filter_map(|pass| median(pass)).collect();
    if effects.len() < 3 { None } else { sample_sd(&effects) }
}

/// The deviation of each trial's logarithm from the median of its cell's; values of 0 are skipped.
fn deviations(cells: &[Vec<PassValue>]) -> Vec<Vec<PassValue>> {
    let logs = |trials: &Vec<PassValue>| -> Vec<PassValue> {
        let logs: Vec<PassValue> =
            trials.iter().filter(|(_, value)| *value > 0.0).map(|(pass, value)| (*pass, value.ln())).collect();
        let centre = median(&logs.iter().map(|(_, log)| *log).collect::<Vec<f64>>()).unwrap_or(0.0);
        logs.into_iter().map(|(pass, log)| (pass, log - centre)).collect()
    };
    cells.iter().map(logs).collect()
}

/// The effect of `pass` on the neighbours of the cell at index `cell`, as a logarithm; 0 with too few neighbours.
fn effect(deviations: &[Vec<PassValue>], cell: usize, pass: u32) -> f64 {
    let in_pass = |at: usize| deviations[at].iter().find(|(of, _)| *of == pass).map(|(_, deviation)| *deviation);
    let mut beside = Vec::with_capacity(NEIGHBOURS);
    // Outwards, so the nearest cells of the pass come first, the same number on both sides as far as possible.
    for distance in 1..deviations.len() {
        let below = cell.checked_sub(distance);
        let above = Some(cell + distance).filter(|at| *at < deviations.len());
        beside.extend([below, above].into_iter().flatten().filter_map(in_pass));
        if beside.len() >= NEIGHBOURS {
            break;
        }
    }
    if beside.len() < MIN_NEIGHBOURS { 0.0 } else { median(&beside).unwrap_or(0.0) }
}

#[cfg(test)]
mod tests {
    use super::super::t_interval;
    use super::*;
    use model::SplitMix64;

    /// A curve of `cells` sizes and `passes` passes: passes differ by `between` and drift, trials by `within`.
    fn curve(seed: u64, cells: usize, passes: u32, between: f64, within: f64) -> Vec<Vec<PassValue>> {
        let mut random = SplitMix64::new(seed);
        let mut drift = 0.0;
        let effects: Vec<f64> = (0..passes)
            .map(|_| {
                drift = 0.7 * drift + 0.7 * between * random.normal();
                drift
            })
            .collect();
        (0..cells)
            .map(|cell| {
                let base = 1000.0 * 1.05f64.powi(cell as i32);
                let trial = |pass: u32| (pass, base * (effects[pass as usize] + within * random.normal()).exp());
                (0..passes).map(trial).collect()
            })
            .collect()
    }

    #[test]
    fn passes_that_differ_leave_the_sizes_as_they_are() {
        let cells = curve(3, 40, 12, 0.2, 0.0);
        for (cell, own) in without_pass_effects(&cells).iter().enumerate() {
            let centre = median(own).unwrap();
            assert!(own.iter().all(|value| (value / centre - 1.0).abs() < 1e-9), "{cell}: {own:?}");
        }
    }

    #[test]
    fn the_remaining_variation_is_the_noise_within() {
        let cells = curve(5, 60, 30, 0.15, 0.03);
        let spread = |values: &[f64]| sample_sd(values).unwrap() / median(values).unwrap();
        let raw: Vec<f64> = cells.iter().map(|of| spread(&of.iter().map(|(_, v)| *v).collect::<Vec<_>>())).collect();
        let own: Vec<f64> = without_pass_effects(&cells).iter().map(|own| spread(own)).collect();
        assert!(median(&raw).unwrap() > 0.1, "{:?}", median(&raw));
        let left = median(&own).unwrap();
        assert!((0.027..0.037).contains(&left), "{left}");
        let between = pass_spread(&cells).unwrap();
        assert!((0.08..0.25).contains(&between), "{between}");
    }

    #[test]
    fn few_sizes_give_no_pass_effect_and_a_trial_alone_in_its_pass_keeps_its_value() {
        let few = curve(1, 5, 6, 0.1, 0.01);
        assert!(without_pass_effects(&few).is_empty());
        assert_eq!(pass_spread(&curve(1, 4, 6, 0.1, 0.01)), None);
        let mut cells = curve(1, 12, 6, 0.1, 0.01);
        cells[3].push((6, 77.0));
        assert_eq!(without_pass_effects(&cells)[3][6], 77.0);
    }

    #[test]
    fn a_trial_without_a_rate_does_not_spoil_the_others() {
        let mut cells = curve(2, 12, 6, 0.1, 0.01);
        cells[4].iter_mut().for_each(|(_, value)| *value = 0.0);
        let own = without_pass_effects(&cells);
        assert!(own.iter().flatten().all(|value| value.is_finite()));
        assert_eq!(own[4], [0.0; 6]);
    }

    #[test]
    fn intervals_cover_the_true_value_of_a_size() {
        // The true value of a size is known up to a common factor, which is the median over the curve.
        let (cells, passes, curves) = (40, 12, 60);
        let mut covered = 0;
        for seed in 0..curves {
            let own = without_pass_effects(&curve(1000 + seed, cells, passes, 0.1, 0.04));
            let truth = |cell: usize| 1000.0 * 1.05f64.powi(cell as i32);
            let level: Vec<f64> = own.iter().enumerate().map(|(cell, of)| median(of).unwrap() / truth(cell)).collect();
            let level = median(&level).unwrap();
            covered += own
                .iter()
                .enumerate()
                .filter(|(cell, of)| t_interval(of, 0.95).unwrap().contains(truth(*cell) * level))
                .count();
        }
        let share = covered as f64 / (cells * curves as usize) as f64;
        assert!((0.93..=0.97).contains(&share), "{share}");
    }
}

//! What the passes of a curve have in common, told apart from what is each size's own.
//!
//! A curve is a randomised block design: every pass takes all open sizes once, over fresh connections. A pass's connections, and
//! the pace at which the machine happens to run while it lasts, move all its sizes together; that is the part *between*
//! connections. What is left of a trial is the part *within*. Taking the pass's effect out before the sizes are compared is as old
//! as the design (Fisher, 1935, "The Design of Experiments"). The effect need not be the same for a byte and for a megabyte, so it
//! is estimated for each trial from the sizes beside it, by a median, which a few disturbed trials do not move.

use super::summary::{median, sample_sd};

/// One trial of a cell: the number of its pass, and its value, in any unit.
pub type PassValue = (u32, f64);

/// Sizes whose trials tell what a pass did to the one between them.
const NEIGHBOURS: usize = 16;
/// Fewest of them; a pass with fewer says nothing of itself.
const LEAST_NEIGHBOURS: usize = 5;

/// For each cell (ascending by block, its trials in their order) its values with what their passes did to the cells beside it divided
/// out. A trial whose pass held too few other cells keeps its value. Empty for so few cells that no pass can tell.
#[must_use]
pub fn without_pass_effects(cells: &[Vec<PassValue>]) -> Vec<Vec<f64>> {
    if cells.len() <= LEAST_NEIGHBOURS {
        return Vec::new();
    }
    let departures = departures(cells);
    cells
        .iter()
        .enumerate()
        .map(|(place, trials)| {
            let own = |(pass, value): &PassValue| value / effect(&departures, place, *pass).exp();
            trials.iter().map(own).collect()
        })
        .collect()
}

/// Standard deviation of the passes' effects, each the median over the cells of a pass, as a fraction; `None` for fewer than
/// three passes that held [`LEAST_NEIGHBOURS`] cells.
#[must_use]
pub fn pass_spread(cells: &[Vec<PassValue>]) -> Option<f64> {
    let mut passes: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for (pass, departure) in departures(cells).into_iter().flatten() {
        passes.entry(pass).or_default().push(departure);
    }
    let effects: Vec<f64> =
        passes.values().filter(|pass| pass.len() >= LEAST_NEIGHBOURS).filter_map(|pass| median(pass)).collect();
    if effects.len() < 3 { None } else { sample_sd(&effects) }
}

/// Each trial's logarithm less the median of its cell's; a value of 0 has none, and tells nothing of its pass.
fn departures(cells: &[Vec<PassValue>]) -> Vec<Vec<PassValue>> {
    let logs = |trials: &Vec<PassValue>| -> Vec<PassValue> {
        let logs: Vec<PassValue> =
            trials.iter().filter(|(_, value)| *value > 0.0).map(|(pass, value)| (*pass, value.ln())).collect();
        let centre = median(&logs.iter().map(|(_, log)| *log).collect::<Vec<f64>>()).unwrap_or(0.0);
        logs.into_iter().map(|(pass, log)| (pass, log - centre)).collect()
    };
    cells.iter().map(logs).collect()
}

/// What `pass` did to the cells beside the one at `place`, as a logarithm; 0 where too few can tell.
fn effect(departures: &[Vec<PassValue>], place: usize, pass: u32) -> f64 {
    let in_pass = |at: usize| departures[at].iter().find(|(of, _)| *of == pass).map(|(_, departure)| *departure);
    let mut beside = Vec::with_capacity(NEIGHBOURS);
    // Outwards, so that the nearest cells of the pass are found first, alike on both sides while there are two.
    for distance in 1..departures.len() {
        let below = place.checked_sub(distance);
        let above = Some(place + distance).filter(|at| *at < departures.len());
        beside.extend([below, above].into_iter().flatten().filter_map(in_pass));
        if beside.len() >= NEIGHBOURS {
            break;
        }
    }
    if beside.len() < LEAST_NEIGHBOURS { 0.0 } else { median(&beside).unwrap_or(0.0) }
}

#[cfg(test)]
mod tests {
    use super::super::{SplitMix64, t_interval};
    use super::*;

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
    fn what_is_left_is_as_wide_as_the_noise_within() {
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
    fn few_sizes_tell_nothing_of_a_pass_and_a_lonely_trial_keeps_its_value() {
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
    fn intervals_cover_a_sizes_place_in_the_curve() {
        // The truth of a size is known up to what all sizes have in common, which the median over the curve tells.
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

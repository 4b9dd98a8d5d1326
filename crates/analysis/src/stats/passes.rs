//! What moves all sizes of a curve together, separated from the variation of each size.
//!
//! A curve is a randomised block design: a pass takes its sizes in random order over new connections. The connections and the state of
//! the hosts during a pass change all its sizes together (the *level*), and a disturbance of some milliseconds changes the legs that
//! follow each other (the *moment*). The rest of a leg's variation is its *own*. Removing what blocks share before treatments are
//! compared is part of the design (Fisher, 1935, "The Design of Experiments").
//!
//! Both effects are medians over neighbours, which a few disturbed legs do not move, and are fitted in turns with the sizes' own medians
//! (as in Tukey's median polish, 1977, "Exploratory Data Analysis"). The level may differ between a byte and a megabyte, so it comes
//! from the nearest sizes of the pass; the moment comes from the legs before and after, whatever their size. Where the moment explains
//! nothing, as between spinning ends, it would only add noise and is left out.

use std::collections::BTreeMap;

use super::batch::lag1;
use super::median::{MIN_VALUES, normal_scores};
use super::summary::sample_sd;
use model::median;

/// One leg of a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LegValue {
    /// Its pass.
    pub pass: u32,
    /// Its position within the pass.
    pub position: u32,
    /// Its value, in any one unit.
    pub value: f64,
}

/// A size's legs, separated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SizeParts {
    /// The values without the effects, in the order of the legs and in their unit.
    pub own: Vec<f64>,
    /// Natural logarithm of the level of each pass of the curve at this size, in the order of the passes; also of passes without this
    /// size, so that a size of few passes is stated at the level of the whole run.
    pub level: Vec<f64>,
    /// Lag-1 correlation between successive own values, pooled over the sizes of the curve; 0 if negative.
    pub correlation: f64,
}

/// Neighbouring sizes from which a level is estimated, and the fewest.
const SIZES: (usize, usize) = (16, 5);
/// Legs before and after from which a moment is estimated, and the fewest.
const MOMENTS: (usize, usize) = (6, 4);
/// Rounds of the fit: medians of medians change little after the second.
const ROUNDS: usize = 2;
/// Largest spread with the moment, relative to that without it, at which the moment is used.
const WORTH: f64 = 0.9;
/// Median absolute deviation times this is the standard deviation of normal values.
const MAD_TO_SD: f64 = 1.482_6;

/// Separates the legs of each size (cells ascending by block). Legs whose value is not positive keep it. Empty if there are too few
/// sizes.
#[must_use]
pub fn separate(cells: &[Vec<LegValue>]) -> Vec<SizeParts> {
    if cells.len() <= SIZES.1 {
        return Vec::new();
    }
    let plain = Fit::new(cells, false);
    let with_moments = Fit::new(cells, true);
    let fit = if with_moments.spread() < WORTH * plain.spread() { with_moments } else { plain };
    let correlation = fit.correlation();
    let mut parts: Vec<SizeParts> = cells
        .iter()
        .map(|legs| SizeParts {
            own: legs.iter().map(|leg| leg.value).collect(),
            level: Vec::with_capacity(fit.rows.len()),
            correlation,
        })
        .collect();
    for leg in fit.rows.iter().flatten() {
        parts[leg.cell].own[leg.leg] = (leg.log - leg.level - leg.moment).exp();
    }
    for row in &fit.rows {
        let rest = level_residuals(row, &fit.centres);
        for (cell, of) in parts.iter_mut().enumerate() {
            of.level.extend(level_at(row, &rest, cell));
        }
    }
    parts
}

/// The level of a pass at a size: that of its leg, or for a size without one that of the sizes around it. `None` if the pass has none
/// near it, as the first passes of a curve, which go up in steps.
fn level_at(row: &[Fitted], rest: &[f64], cell: usize) -> Option<f64> {
    match row.binary_search_by_key(&cell, |leg| leg.cell) {
        Ok(at) => Some(row[at].level),
        Err(at) => {
            let nearest = [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|at| row.get(at));
            let near = nearest.map(|leg| leg.cell.abs_diff(cell)).min().is_some_and(|distance| distance <= SIZES.0);
            let around = around(rest, at, SIZES.0);
            (near && around.len() >= SIZES.1).then(|| median(around)).flatten()
        }
    }
}

/// The `most` values around the gap before index `at`.
fn around(values: &[f64], at: usize, most: usize) -> &[f64] {
    let width = most.min(values.len());
    let first = at.saturating_sub(width / 2).min(values.len() - width);
    &values[first..first + width]
}

/// Standard deviation of the levels, each the median over the sizes of a pass, as a fraction; `None` for fewer than three passes with
/// enough sizes.
#[must_use]
pub fn level_spread(cells: &[Vec<LegValue>]) -> Option<f64> {
    let fit = Fit::new(cells, false);
    let wide = fit.rows.iter().filter(|row| row.len() >= SIZES.1);
    let levels: Vec<f64> = wide
        .filter_map(|row| median(&row.iter().map(|leg| leg.log - fit.centres[leg.cell]).collect::<Vec<f64>>()))
        .collect();
    if levels.len() < 3 { None } else { sample_sd(&levels) }
}

/// A leg in the fit.
#[derive(Debug, Clone, Copy)]
struct Fitted {
    cell: usize,
    /// Its index among the cell's legs.
    leg: usize,
    position: u32,
    log: f64,
    level: f64,
    moment: f64,
}

/// The fitted model: log = centre of the size + level + moment + own.
struct Fit {
    /// The legs of each pass, ascending by size.
    rows: Vec<Vec<Fitted>>,
    /// Median of each size without the effects.
    centres: Vec<f64>,
}

impl Fit {
    fn new(cells: &[Vec<LegValue>], moments: bool) -> Self {
        let mut rows: BTreeMap<u32, Vec<Fitted>> = BTreeMap::new();
        for (cell, legs) in cells.iter().enumerate() {
            for (index, leg) in legs.iter().enumerate().filter(|(_, leg)| leg.value > 0.0) {
                let fitted =
                    Fitted { cell, leg: index, position: leg.position, log: leg.value.ln(), level: 0.0, moment: 0.0 };
                rows.entry(leg.pass).or_default().push(fitted);
            }
        }
        let mut fit = Self { rows: rows.into_values().collect(), centres: vec![0.0; cells.len()] };
        for _ in 0..ROUNDS {
            fit.centre();
            fit.rows.iter_mut().for_each(|row| set_levels(row, &fit.centres));
            if moments {
                fit.rows.iter_mut().for_each(|row| set_moments(row, &fit.centres));
            }
        }
        fit.centre();
        fit
    }

    /// The own part of each leg of each size, as a logarithm.
    fn own(&self) -> Vec<Vec<f64>> {
        let mut own = vec![Vec::new(); self.centres.len()];
        for leg in self.rows.iter().flatten() {
            own[leg.cell].push(leg.log - leg.level - leg.moment);
        }
        own
    }

    fn centre(&mut self) {
        self.centres = self.own().iter().map(|own| median(own).unwrap_or(0.0)).collect();
    }

    /// Median over the sizes of the spread of their own parts.
    fn spread(&self) -> f64 {
        let of = |own: &Vec<f64>| spread(own).filter(|_| own.len() > 1);
        median(&self.own().iter().filter_map(of).collect::<Vec<f64>>()).unwrap_or(0.0)
    }

    fn correlation(&self) -> f64 {
        let long = self.own().into_iter().filter(|own| own.len() >= MIN_VALUES);
        let found: Vec<f64> = long.filter_map(|own| lag1(&normal_scores(&own))).collect();
        super::summary::mean(&found).unwrap_or(0.0).max(0.0)
    }
}

/// Standard deviation by the median absolute deviation, which one value in ten does not move by much; `None` for an empty list.
#[must_use]
pub fn spread(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    Some(MAD_TO_SD * median(&deviations)?)
}

/// Sets the level of each leg of a pass: the median over the nearest sizes of it, the same number on both sides as far as possible.
fn set_levels(row: &mut [Fitted], centres: &[f64]) {
    let rest = level_residuals(row, centres);
    for (at, leg) in row.iter_mut().enumerate() {
        leg.level = neighbours(&rest, at, SIZES);
    }
}

/// What is left of each leg of a pass without its size and its moment.
fn level_residuals(row: &[Fitted], centres: &[f64]) -> Vec<f64> {
    row.iter().map(|leg| leg.log - leg.moment - centres[leg.cell]).collect()
}

/// Sets the moment of each leg of a pass: the median over the legs before and after it.
fn set_moments(row: &mut [Fitted], centres: &[f64]) {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by_key(|at| row[*at].position);
    let rest: Vec<f64> = order.iter().map(|at| row[*at].log - row[*at].level - centres[row[*at].cell]).collect();
    for (place, at) in order.into_iter().enumerate() {
        row[at].moment = neighbours(&rest, place, MOMENTS);
    }
}

/// The median of the `most` values nearest to index `at`, without that one; 0 for fewer than `least`.
fn neighbours(values: &[f64], at: usize, (most, least): (usize, usize)) -> f64 {
    let width = (most + 1).min(values.len());
    let first = at.saturating_sub(most / 2).min(values.len() - width);
    let beside: Vec<f64> = (first..first + width).filter(|other| *other != at).map(|other| values[other]).collect();
    if beside.len() < least { 0.0 } else { median(&beside).unwrap_or(0.0) }
}

#[cfg(test)]
mod tests {
    use super::super::median::median_with;
    use super::*;
    use model::SplitMix64;

    /// A curve of `cells` sizes and `passes` passes: passes differ by `between` and drift, legs by `within`.
    fn curve(seed: u64, cells: usize, passes: u32, between: f64, within: f64) -> Vec<Vec<LegValue>> {
        let mut random = SplitMix64::new(seed);
        let mut drift = 0.0;
        let levels: Vec<f64> = (0..passes)
            .map(|_| {
                drift = 0.7 * drift + 0.7 * between * random.normal();
                drift
            })
            .collect();
        let mut orders: Vec<Vec<u32>> = Vec::new();
        for _ in 0..passes {
            let mut order: Vec<u32> = (0..cells as u32).collect();
            random.shuffle(&mut order);
            orders.push(order);
        }
        (0..cells)
            .map(|cell| {
                let leg = |pass: u32| LegValue {
                    pass,
                    position: orders[pass as usize][cell],
                    value: truth(cell) * (levels[pass as usize] + within * random.normal()).exp(),
                };
                (0..passes).map(leg).collect()
            })
            .collect()
    }

    fn truth(cell: usize) -> f64 {
        1000.0 * 1.05f64.powi(cell as i32)
    }

    fn values(legs: &[LegValue]) -> Vec<f64> {
        legs.iter().map(|leg| leg.value).collect()
    }

    /// Median over the sizes of the relative spread.
    fn typical<'a>(cells: impl Iterator<Item = &'a [f64]>) -> f64 {
        let spreads: Vec<f64> = cells.map(|own| spread(own).unwrap() / median(own).unwrap()).collect();
        median(&spreads).unwrap()
    }

    #[test]
    fn passes_that_differ_leave_the_sizes_as_they_are() {
        for (cell, parts) in separate(&curve(3, 40, 12, 0.2, 0.0)).iter().enumerate() {
            let centre = median(&parts.own).unwrap();
            assert!(parts.own.iter().all(|value| (value / centre - 1.0).abs() < 1e-9), "{cell}: {parts:?}");
        }
    }

    #[test]
    fn the_remaining_variation_is_the_noise_within() {
        let cells = curve(5, 60, 30, 0.15, 0.03);
        let raw: Vec<Vec<f64>> = cells.iter().map(|legs| values(legs)).collect();
        assert!(typical(raw.iter().map(Vec::as_slice)) > 0.1);
        let parts = separate(&cells);
        let left = typical(parts.iter().map(|parts| parts.own.as_slice()));
        assert!((0.027..0.037).contains(&left), "{left}");
        let between = level_spread(&cells).unwrap();
        assert!((0.08..0.25).contains(&between), "{between}");
        assert!(parts[0].correlation < 0.1, "{}", parts[0].correlation);
    }

    #[test]
    fn a_disturbance_of_a_moment_is_removed_and_none_is_invented() {
        let mut cells = curve(7, 60, 30, 0.1, 0.02);
        let quiet = typical(separate(&cells).iter().map(|parts| parts.own.as_slice()));
        // Two thirds of the time every leg is slower by a third, in stretches of 15 legs.
        for leg in cells.iter_mut().flatten() {
            let slow = ((leg.position + 7 * leg.pass) / 15) % 3 > 0;
            leg.value *= if slow { 1.3 } else { 1.0 };
        }
        let left = typical(separate(&cells).iter().map(|parts| parts.own.as_slice()));
        assert!(left < 2.0 * quiet, "{left} beside {quiet}");
    }

    #[test]
    fn few_sizes_are_not_separated_and_a_leg_alone_in_its_pass_keeps_its_value() {
        assert!(separate(&curve(1, 5, 6, 0.1, 0.01)).is_empty());
        assert_eq!(level_spread(&curve(1, 4, 6, 0.1, 0.01)), None);
        let mut cells = curve(1, 12, 6, 0.1, 0.01);
        cells[3].push(LegValue { pass: 6, position: 0, value: 77.0 });
        assert!((separate(&cells)[3].own[6] - 77.0).abs() < 1e-9);
    }

    #[test]
    fn a_leg_without_a_rate_does_not_spoil_the_others() {
        let mut cells = curve(2, 12, 6, 0.1, 0.01);
        cells[4].iter_mut().for_each(|leg| leg.value = 0.0);
        let parts = separate(&cells);
        assert!(parts.iter().flat_map(|parts| &parts.own).all(|value| value.is_finite()));
        assert_eq!(parts[4].own, [0.0; 6]);
    }

    #[test]
    fn sizes_of_few_passes_are_compared_with_the_others_in_those_passes() {
        // Every fourth size took part in slow passes only.
        let mut cells = curve(4, 40, 24, 0.0, 0.01);
        for legs in &mut cells {
            legs.iter_mut().filter(|leg| leg.pass < 12).for_each(|leg| leg.value *= 1.5);
        }
        cells.iter_mut().step_by(4).for_each(|legs| legs.retain(|leg| leg.pass < 12));
        let parts = separate(&cells);
        let level: Vec<f64> = parts.iter().zip(0..).map(|(of, cell)| median(&of.own).unwrap() / truth(cell)).collect();
        let centre = median(&level).unwrap();
        assert!(level.iter().all(|of| (of / centre - 1.0).abs() < 0.03), "{level:?}");
    }

    #[test]
    fn intervals_cover_the_true_value_of_a_size() {
        // The true value of a size is known up to a common factor, which is the median over the curve.
        let (cells, passes, curves) = (40, 20, 40);
        let mut covered = 0;
        for seed in 0..curves {
            let parts = separate(&curve(1000 + seed, cells, passes, 0.1, 0.04));
            let level: Vec<f64> =
                parts.iter().zip(0..).map(|(of, cell)| median(&of.own).unwrap() / truth(cell)).collect();
            let level = median(&level).unwrap();
            let covers = |(of, cell): &(&SizeParts, usize)| {
                median_with(&of.own, 0.95, of.correlation).unwrap().interval.contains(truth(*cell) * level)
            };
            covered += parts.iter().zip(0..).filter(covers).count();
        }
        let share = covered as f64 / (cells * curves as usize) as f64;
        assert!((0.93..=0.98).contains(&share), "{share}");
    }
}

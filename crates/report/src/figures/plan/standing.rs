//! How the pairs of a matrix stand among each other: what is no more than noise looks the same.

use model::{Matrix, MatrixCell, median};

/// The fewest pairs of a matrix that has usual values.
const FEWEST: usize = 6;
/// So many deviations from the median are usual, with the factor that makes the median deviation of normal noise its standard deviation.
const USUAL: f64 = 3.0 * 1.4826;
/// A smaller difference than this is never of interest, and from this one on beyond the usual a value is as bad as a colour says;
/// logarithms of ratios.
const LEAST: f64 = 0.05;
const FAR: f64 = std::f64::consts::LN_2;
/// The standing of a value just beyond the usual ones, so that it can be told from them.
const SEEN: f64 = 0.3;

/// Finds the usual values of each panel by their median and the median deviation from it, on a logarithmic scale, and how each value stands
/// to them. Nothing changes if a panel has too few values.
pub(super) fn compare(matrix: &mut Matrix) {
    let panels = matrix.cells.iter().map(|cell| cell.panel + 1).max().unwrap_or(0);
    let usual: Option<Vec<Usual>> = (0..panels).map(|panel| Usual::of(&matrix.cells, panel)).collect();
    let Some(usual) = usual else { return };
    let low_is_good = matrix.unit == "ns";
    for cell in &mut matrix.cells {
        cell.standing = usual[cell.panel].standing(cell.value, low_is_good);
    }
    matrix.usual = usual.iter().map(Usual::range).collect();
}

/// The usual values of a panel, as logarithms.
struct Usual {
    middle: f64,
    /// How far usual values are from the middle, and how far one is at the most.
    arm: f64,
    most: f64,
}

impl Usual {
    fn of(cells: &[MatrixCell], panel: usize) -> Option<Self> {
        let values = cells.iter().filter(|cell| cell.panel == panel).map(|cell| cell.value);
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::ln).filter(|log| log.is_finite()).collect();
        let middle = median(&logs).filter(|_| logs.len() >= FEWEST)?;
        let deviations: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
        let arm = (USUAL * median(&deviations)?).max(LEAST);
        Some(Self { middle, arm, most: deviations.iter().copied().fold(arm + FAR, f64::max) })
    }

    fn range(&self) -> [f64; 2] {
        [self.middle - self.arm, self.middle + self.arm].map(f64::exp)
    }

    fn standing(&self, value: f64, low_is_good: bool) -> f64 {
        // Where nothing arrived, a value is as far off as can be.
        let log = if value > 0.0 { value.ln() } else { f64::NEG_INFINITY };
        let beyond = ((log - self.middle).abs() - self.arm) / (self.most - self.arm);
        let is_better = (log < self.middle) == low_is_good;
        let size = if beyond > 0.0 { SEEN + (1.0 - SEEN) * beyond.min(1.0) } else { 0.0 };
        if is_better { size } else { -size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standings(unit: &str, values: &[f64]) -> (Vec<[f64; 2]>, Vec<f64>) {
        let cell = |(column, value): (usize, &f64)| MatrixCell { column, value: *value, ..MatrixCell::default() };
        let cells = values.iter().enumerate().map(cell).collect();
        let mut matrix = Matrix { unit: unit.into(), cells, ..Matrix::default() };
        compare(&mut matrix);
        (matrix.usual, matrix.cells.iter().map(|cell| cell.standing).collect())
    }

    #[test]
    fn noise_is_usual_and_a_slow_pair_stands_out() {
        let (usual, standing) = standings("bit/s", &[96.0, 97.0, 95.0, 96.5, 95.5, 96.2, 29.0]);
        assert_eq!(standing, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
        let [low, high] = usual[0];
        assert!((88.0..95.0).contains(&low) && (97.0..105.0).contains(&high), "{low} {high}");
        // Round trips that vary by half are no structure.
        let (_, standing) = standings("ns", &[20e3, 30e3, 25e3, 40e3, 28e3, 22e3, 33e3, 36e3]);
        assert!(standing.iter().all(|standing| *standing == 0.0), "{standing:?}");
    }

    #[test]
    fn a_long_time_is_worse_and_a_high_rate_is_better() {
        let values = [100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 150.0];
        let last = |unit: &str| *standings(unit, &values).1.last().unwrap();
        assert!(last("ns") < -0.3 && last("bit/s") > 0.3 && last("bit/s") < 1.0, "{} {}", last("ns"), last("bit/s"));
        assert_eq!(standings("bit/s", &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]).1[6], -1.0, "nothing arrived");
    }

    #[test]
    fn few_pairs_have_no_usual_value() {
        assert_eq!(standings("bit/s", &[1.0, 2.0, 9.0]), (vec![], vec![0.0; 3]));
    }
}

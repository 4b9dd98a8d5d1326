//! Values over time, of the soak: medians of thirds, and whether they rise.

use std::time::Duration;

/// The share of the time that is left out: caches and pools fill.
const WARM_UP: f64 = 0.2;
/// The bound of Kendall's test: one in a hundred series without a trend exceeds it.
const KENDALL: f64 = 2.326;
/// What a median may rise: this share of it, and this many KiB.
const SHARE: f64 = 0.05;
const KIB: f64 = 4_096.0;

/// Values at times.
#[derive(Debug, Clone)]
pub struct Series {
    /// When they were read, s.
    pub at: Vec<f64>,
    /// What was read.
    pub values: Vec<f64>,
    /// The period of the load: a trend is that of the medians of whole periods.
    pub cycle: Duration,
}

fn median(values: &[f64]) -> f64 {
    model::median(values).unwrap_or(f64::NAN)
}

impl Series {
    /// Prints a row of a table: the value at the start, least, median and greatest value, and the medians of the thirds.
    pub fn print(&self, name: &str, start: f64) {
        let (least, most) =
            self.values.iter().fold((f64::NAN, f64::NAN), |(low, high), one| (one.min(low), one.max(high)));
        let [first, second, last] = self.thirds();
        let middle = median(&self.values);
        println!("| {name} | {start} | {least} | {middle} | {most} | {first} | {second} | {last} |");
    }

    /// The samples after the warm-up.
    fn warm(&self) -> Self {
        let from = self.at.last().copied().unwrap_or(0.0) * WARM_UP;
        let (at, values) = self.at.iter().zip(&self.values).filter(|(at, _)| **at > from).unzip();
        Self { at, values, ..*self }
    }

    /// The medians of the thirds after the warm-up.
    fn thirds(&self) -> [f64; 3] {
        let warm = self.warm();
        let count = warm.values.len();
        [0, 1, 2].map(|third| median(&warm.values[count * third / 3..count * (third + 1) / 3]))
    }

    /// The medians of the cycles after the warm-up, and the times of these.
    fn cycles(&self) -> Self {
        let (mut at, mut values) = (Vec::new(), Vec::new());
        let warm = self.warm();
        let step = self.cycle.as_secs_f64();
        let number = |at: f64| (at / step) as u64;
        for cycle in warm.at.first().map_or(0, |at| number(*at) + 1)..warm.at.last().map_or(0, |at| number(*at)) {
            let of_it = warm.at.iter().zip(&warm.values).filter(|(at, _)| number(**at) == cycle);
            at.push((cycle as f64 + 0.5) * step);
            values.push(median(&of_it.map(|(_, value)| *value).collect::<Vec<_>>()));
        }
        Self { at, values, ..*self }
    }

    /// Why it is not flat; `None` if it is. Memory in KiB.
    #[must_use]
    pub fn rises(&self) -> Option<String> {
        let [first, _, last] = self.thirds();
        let margin = SHARE * first + KIB;
        if last > first + margin {
            return Some(format!(
                "the last third's median is {last:.0}, the first third's {first:.0} (margin {margin:.0})"
            ));
        }
        let cycles = self.cycles();
        let (trend, slope) = (cycles.kendall(), cycles.slope());
        let rise = slope * (cycles.at.last()? - cycles.at.first()?);
        // A trend can be certain and not matter.
        (trend > KENDALL && rise > margin / 2.0).then(|| {
            format!("a trend of {rise:.0} over the cycles (Kendall's z is {trend:.1}, margin {:.0})", margin / 2.0)
        })
    }

    /// Number of cycles that the trend is judged by.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.cycles().values.len()
    }

    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        let number = self.values.len();
        (0..number).flat_map(move |one| {
            (one + 1..number).map(move |other| (self.at[other] - self.at[one], self.values[other] - self.values[one]))
        })
    }

    /// The normal deviate of the Mann-Kendall test for a monotonic trend (H. B. Mann, 1945; M. G. Kendall, 1975).
    fn kendall(&self) -> f64 {
        let score: f64 = self.pairs().map(|(_, rise)| if rise == 0.0 { 0.0 } else { rise.signum() }).sum();
        let number = self.values.len() as f64;
        let variance = number * (number - 1.0) * (2.0 * number + 5.0) / 18.0;
        if score == 0.0 { 0.0 } else { (score - score.signum()) / variance.sqrt() }
    }

    /// The median slope of all pairs (H. Theil, 1950; P. K. Sen, 1968), per second.
    fn slope(&self) -> f64 {
        median(&self.pairs().map(|(time, rise)| rise / time).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use model::SplitMix64;

    use super::*;

    /// Memory of a process under a load that comes and goes, 600 s, that grows by so much in a second.
    fn memory(growth: f64) -> Series {
        let mut random = SplitMix64::new(1);
        let at: Vec<f64> = (1..=120).map(|step| 5.0 * f64::from(step)).collect();
        let load = |at: f64| if at % 40.0 < 30.0 { 20_000.0 } else { 0.0 };
        let values = at.iter().map(|at| 50_000.0 + load(*at) + 500.0 * random.normal() + growth * at).collect();
        Series { at, values, cycle: Duration::from_secs(40) }
    }

    #[test]
    fn memory_that_only_varies_is_flat_and_a_leak_is_found() {
        assert_eq!((memory(0.0).rises(), memory(0.0).judged()), (None, 11));
        assert!(memory(40.0).rises().is_some_and(|why| why.starts_with("the last third's median")));
        // Too little for the medians of the thirds.
        assert!(memory(12.0).rises().is_some_and(|why| why.starts_with("a trend of")));
    }

    #[test]
    fn memory_that_grows_once_is_found_and_that_of_the_start_is_not() {
        let mut early = memory(0.0);
        early.values.iter_mut().take(20).for_each(|value| *value -= 30_000.0);
        assert_eq!(early.rises(), None);
        let mut late = memory(0.0);
        late.values.iter_mut().skip(70).for_each(|value| *value += 30_000.0);
        assert!(late.rises().is_some());
    }
}

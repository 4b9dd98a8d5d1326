//! Which of several curves is best at which block sizes, for example which MTU or buffer to choose.

use std::ops::Range;

use model::{BestRegion, Outcome};
use text::{Text, say};

use crate::curve::{CurvePoint, points};
use crate::findings::wording;
use crate::stats::{MeanDifference, mean, t_quantile};

/// Confidence of the best label of a size, over all others together.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Largest number of sizes without a significant winner inside a region.
const GAP: usize = 3;

/// Labels that were measured at the same block sizes.
pub(crate) trait LabelledRates {
    /// What is compared.
    fn labels(&self) -> &[String];
    /// The sizes, ascending, bytes.
    fn sizes(&self) -> &[u64];
    /// Natural logarithm of the rate of a label at a size, both by index; only differences matter.
    fn ln_rate(&self, size: usize, label: usize) -> f64;
    /// Difference of two labels' logarithms of the rate, as a mean over sizes; `None` without a standard error.
    fn ahead(&self, sizes: Range<usize>, one: usize, other: usize) -> Option<MeanDifference>;
}

/// The regions of block sizes with one best curve, over the blocks that all curves have. A region's ratio is the mean over its
/// sizes; pass effects are common to neighbouring sizes, so more sizes do not make its interval narrower. Empty for fewer than two
/// labels or no common block.
#[must_use]
pub fn regions(curves: &[(String, &[Outcome])]) -> Vec<BestRegion> {
    if curves.len() < 2 {
        return Vec::new();
    }
    let points: Vec<Vec<CurvePoint>> = curves.iter().map(|(_, outcomes)| points(*outcomes)).collect();
    let at = |block: u64, curve: &'_ [CurvePoint]| curve.iter().position(|point| point.block == block);
    let (mut sizes, mut of) = (Vec::new(), Vec::new());
    for block in points[0].iter().map(|point| point.block) {
        let all: Option<Vec<&CurvePoint>> = points.iter().map(|curve| Some(&curve[at(block, curve)?])).collect();
        if let Some(all) = all {
            sizes.push(block);
            of.push(all);
        }
    }
    let labels = curves.iter().map(|(label, _)| label.clone()).collect();
    best_regions(&Curves { labels, sizes, points: of }).into_iter().map(|(region, _)| region).collect()
}

/// Regions with one best label, and the indices of their sizes. A label is best at a size if it is significantly better than all
/// others (Student's t on the logarithm of the rate, Bonferroni correction). A few sizes without a significant winner inside a
/// region belong to it.
pub(crate) fn best_regions(rates: &impl LabelledRates) -> Vec<(BestRegion, Range<usize>)> {
    let mut bests: Vec<Option<usize>> = (0..rates.sizes().len()).map(|size| best(rates, size)).collect();
    let mut at = 0;
    while at < bests.len() {
        let end = bests[at..].iter().position(Option::is_some).map_or(bests.len(), |ahead| at + ahead);
        let (before, after) = (at.checked_sub(1).and_then(|at| bests[at]), bests.get(end).copied().flatten());
        if end > at && end - at <= GAP && before.is_some() && before == after {
            bests[at..end].fill(before);
        }
        at = end + 1;
    }
    let mut regions = Vec::new();
    let mut from = 0;
    for to in 1..=bests.len() {
        if to == bests.len() || bests[to] != bests[from] {
            regions.push((region(rates, bests[from], from..to), from..to));
            from = to;
        }
    }
    regions
}

/// Curves of separate runs, with one estimate per size.
struct Curves<'a> {
    labels: Vec<String>,
    sizes: Vec<u64>,
    /// The points of each size, one for each label.
    points: Vec<Vec<&'a CurvePoint>>,
}

impl LabelledRates for Curves<'_> {
    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    fn ln_rate(&self, size: usize, label: usize) -> f64 {
        self.points[size][label].ln_block() - self.points[size][label].ln_time
    }

    fn ahead(&self, sizes: Range<usize>, one: usize, other: usize) -> Option<MeanDifference> {
        let difference = |size| self.ln_rate(size, one) - self.ln_rate(size, other);
        let differences: Vec<f64> = sizes.clone().map(difference).collect();
        let error = |points: &Vec<&CurvePoint>| {
            let (one, other) = (points[one], points[other]);
            Some((one.se?.hypot(other.se?), one.df.min(other.df)))
        };
        let errors: Vec<(f64, f64)> = self.points[sizes].iter().filter_map(error).collect();
        let standard_error = mean(&errors.iter().map(|(error, _)| *error).collect::<Vec<_>>())?;
        let df = errors.iter().map(|(_, df)| *df).fold(f64::INFINITY, f64::min);
        Some(MeanDifference { value: mean(&differences)?, standard_error, df })
    }
}

fn best(rates: &impl LabelledRates, size: usize) -> Option<usize> {
    let labels = 0..rates.labels().len();
    let best = labels.clone().max_by(|a, b| rates.ln_rate(size, *a).total_cmp(&rates.ln_rate(size, *b)))?;
    let others = labels.len() as f64 - 1.0;
    let is_significant = |other: usize| {
        let ahead = rates.ahead(size..size + 1, best, other)?;
        let critical = t_quantile(1.0 - (1.0 - CONFIDENCE) / (2.0 * others), ahead.df)?;
        Some(ahead.value > critical * ahead.standard_error)
    };
    labels.filter(|other| *other != best).all(|other| is_significant(other) == Some(true)).then_some(best)
}

fn region(rates: &impl LabelledRates, best: Option<usize>, sizes: Range<usize>) -> BestRegion {
    let (labels, blocks) = (rates.labels(), &rates.sizes()[sizes.clone()]);
    let (from, to) = (blocks.first().copied().unwrap_or(0), blocks.last().copied().unwrap_or(0));
    let range = if from == to { wording::size(from) } else { say!("{} to {}", wording::size(from), wording::size(to)) };
    let mean =
        |label: usize| sizes.clone().map(|size| rates.ln_rate(size, label)).sum::<f64>() / sizes.len().max(1) as f64;
    let Some(best) = best else {
        let none = if labels.len() > 2 { "no significant winner" } else { "no significant difference" };
        let statement = say!("{range}: {none}");
        return BestRegion { from, to, best: None, over: None, ratio: None, low: None, high: None, statement };
    };
    let others = (0..labels.len()).filter(|label| *label != best);
    let next = others.max_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(best);
    let difference = rates.ahead(sizes.clone(), best, next);
    let ahead = difference.map_or_else(|| mean(best) - mean(next), |difference| difference.value);
    let interval = difference.and_then(|difference| difference.interval(CONFIDENCE));
    let (low, high) = (interval.map(|interval| interval.low.exp()), interval.map(|interval| interval.high.exp()));
    let interval = match (low, high) {
        (Some(low), Some(high)) => {
            say!(" ({} interval {} to {})", wording::confidence(CONFIDENCE), gain(low), gain(high))
        }
        _ => Text::default(),
    };
    let statement = say!("{range}: {} is best, {} over {}{interval}", labels[best], gain(ahead.exp()), labels[next]);
    let qualifier = if low.is_some_and(|low| low > 1.0) { "" } else { ", significant at single sizes only" };
    let statement = statement + qualifier;
    let (best, over) = (Some(labels[best].clone()), Some(labels[next].clone()));
    BestRegion { from, to, best, over, ratio: Some(ahead.exp()), low, high, statement }
}

/// `+12 %`.
fn gain(ratio: f64) -> Text {
    say!("{:+.1} %", 100.0 * (ratio - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::*;

    fn sizes() -> Vec<u64> {
        (0..24).map(|i| 1 << i).collect()
    }

    #[test]
    fn the_best_of_each_region_is_named_with_its_interval() {
        // Small frames have a lower latency, large ones a higher rate.
        let small = curve(&sizes(), hockney(9_000.0, 1.0), 0.01, 1);
        let large = curve(&sizes(), hockney(10_000.0, 1.25), 0.01, 2);
        let found = regions(&[("mtu 1500".into(), &small), ("mtu 9000".into(), &large)]);
        let bests: Vec<Option<&str>> = found.iter().map(|region| region.best.as_deref()).collect();
        assert_eq!((bests.first(), bests.last()), (Some(&Some("mtu 1500")), Some(&Some("mtu 9000"))), "{found:#?}");
        let last = found.last().unwrap();
        assert!(
            (1.15..1.25).contains(&last.ratio.unwrap()) && last.low > Some(1.0) && last.high > last.ratio,
            "{last:?}"
        );
        assert!(
            last.statement.plain().contains("to 8 MiB: mtu 9000 is best, +1")
                && last.statement.plain().contains("95 % interval"),
            "{last:?}"
        );
        assert!((2..=4).contains(&found.len()), "{found:#?}");
        assert!(found.windows(2).all(|pair| pair[0].to < pair[1].from));
    }

    #[test]
    fn equal_curves_have_no_best() {
        let curves = [1, 2].map(|seed| curve(&sizes(), hockney(9_000.0, 1.0), 0.02, seed));
        let found = regions(&[("one".into(), &curves[0]), ("other".into(), &curves[1])]);
        let winners = found.iter().filter(|region| region.best.is_some()).count();
        assert!(winners <= 2, "{found:#?}");
        assert_eq!(regions(&[("one".into(), &curves[0])]), []);
        assert_eq!(regions(&[]), []);
    }
}

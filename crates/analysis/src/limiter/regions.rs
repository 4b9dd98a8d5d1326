//! Which of several curves is best for which block sizes: the MTU or the buffer to choose.

use model::{BestRegion, Outcome};

use crate::curve::{CurvePoint, points};
use crate::findings::words;
use crate::stats::t_quantile;

/// Confidence that the best of a size is the best, over its rivals together.
const CONFIDENCE: f64 = 0.95;
/// Sizes without a sure best that do not part a region.
const GAP: usize = 3;

/// The curves of each label over the blocks that all of them have, cut into regions of one best. At a size a label is best where it
/// surely is (Welch's t on the logarithm of the rate, corrected for its rivals by Bonferroni). A region's ratio is the mean over
/// its sizes; the passes of a curve move neighbouring sizes together, so that more sizes make its interval no narrower. Empty for
/// fewer than two labels or no block in common.
#[must_use]
pub fn regions(curves: &[(String, &[Outcome])]) -> Vec<BestRegion> {
    let curves: Vec<(&str, Vec<CurvePoint>)> =
        curves.iter().map(|(label, outcomes)| (label.as_str(), points(outcomes))).collect();
    let Some(((_, first), others)) = curves.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let sizes: Vec<Size<'_>> = first
        .iter()
        .filter_map(|point| {
            let of = |curve: &'_ [CurvePoint]| curve.iter().position(|other| other.block == point.block);
            let rest: Option<Vec<&CurvePoint>> =
                others.iter().map(|(_, curve)| of(curve).map(|at| &curve[at])).collect();
            Some(Size { block: point.block, of: std::iter::once(point).chain(rest?).collect() })
        })
        .collect();
    let labels: Vec<&str> = curves.iter().map(|(label, _)| *label).collect();
    runs(&sizes).into_iter().map(|(best, sizes)| region(&labels, best, sizes)).collect()
}

/// One block with its point on each curve.
struct Size<'a> {
    block: u64,
    of: Vec<&'a CurvePoint>,
}

impl Size<'_> {
    fn ln_rate(&self, label: usize) -> f64 {
        self.of[label].ln_block() - self.of[label].ln_time
    }

    /// Standard error and degrees of freedom of a difference of two labels.
    fn error(&self, a: usize, b: usize) -> Option<(f64, f64)> {
        let (a, b) = (self.of[a], self.of[b]);
        Some((a.se?.hypot(b.se?), a.df.min(b.df)))
    }

    fn best(&self) -> Option<usize> {
        let best = (0..self.of.len()).max_by(|a, b| self.ln_rate(*a).total_cmp(&self.ln_rate(*b)))?;
        let rivals = self.of.len() as f64 - 1.0;
        let surely = |rival: usize| {
            let (se, df) = self.error(best, rival)?;
            let critical = t_quantile(1.0 - (1.0 - CONFIDENCE) / (2.0 * rivals), df)?;
            Some(self.ln_rate(best) - self.ln_rate(rival) > critical * se)
        };
        (0..self.of.len()).filter(|rival| *rival != best).all(|rival| surely(rival) == Some(true)).then_some(best)
    }
}

/// Neighbouring sizes with one best; a short stretch without a sure one joins a region that goes on behind it.
fn runs<'s, 'a>(sizes: &'s [Size<'a>]) -> Vec<(Option<usize>, &'s [Size<'a>])> {
    let mut bests: Vec<Option<usize>> = sizes.iter().map(Size::best).collect();
    let mut at = 0;
    while at < bests.len() {
        let end = bests[at..].iter().position(Option::is_some).map_or(bests.len(), |ahead| at + ahead);
        let (before, after) = (at.checked_sub(1).and_then(|at| bests[at]), bests.get(end).copied().flatten());
        if end > at && end - at <= GAP && before.is_some() && before == after {
            bests[at..end].fill(before);
        }
        at = end + 1;
    }
    let mut runs = Vec::new();
    let mut from = 0;
    for to in 1..=sizes.len() {
        if to == sizes.len() || bests[to] != bests[from] {
            runs.push((bests[from], &sizes[from..to]));
            from = to;
        }
    }
    runs
}

fn region(labels: &[&str], best: Option<usize>, sizes: &[Size<'_>]) -> BestRegion {
    let (from, to) = (sizes.first().map_or(0, |size| size.block), sizes.last().map_or(0, |size| size.block));
    let stretch = if from == to { words::size(from) } else { format!("{} to {}", words::size(from), words::size(to)) };
    let mean = |label: usize| sizes.iter().map(|size| size.ln_rate(label)).sum::<f64>() / sizes.len() as f64;
    let Some(best) = best else {
        let statement = format!("{stretch}: no difference is sure");
        return BestRegion { from, to, best: None, over: None, ratio: None, low: None, high: None, statement };
    };
    let rivals = (0..labels.len()).filter(|label| *label != best);
    let next = rivals.max_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(best);
    let ahead = mean(best) - mean(next);
    let errors: Vec<(f64, f64)> = sizes.iter().filter_map(|size| size.error(best, next)).collect();
    let se = errors.iter().map(|(se, _)| se).sum::<f64>() / errors.len().max(1) as f64;
    let df = errors.iter().map(|(_, df)| *df).fold(f64::INFINITY, f64::min);
    let arm = t_quantile(1.0 - (1.0 - CONFIDENCE) / 2.0, df).map(|critical| critical * se);
    let [low, high] = [-1.0, 1.0].map(|sign| arm.map(|arm| (ahead + sign * arm).exp()));
    let interval = match (low, high) {
        (Some(low), Some(high)) => {
            format!(" ({} interval {} to {})", words::confidence(CONFIDENCE), gain(low), gain(high))
        }
        _ => String::new(),
    };
    let statement =
        format!("{stretch}: {} is best, {} over {}{interval}", labels[best], gain(ahead.exp()), labels[next]);
    let doubt = if low.is_some_and(|low| low > 1.0) { "" } else { ", surely so at single sizes only" };
    let statement = statement + doubt;
    let (best, over) = (Some(labels[best].to_owned()), Some(labels[next].to_owned()));
    BestRegion { from, to, best, over, ratio: Some(ahead.exp()), low, high, statement }
}

/// `+12 %`.
fn gain(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
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
        // Small frames start sooner, large ones carry more.
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
            last.statement.contains("to 8 MiB: mtu 9000 is best, +1") && last.statement.contains("95 % interval"),
            "{last:?}"
        );
        assert!((2..=4).contains(&found.len()), "{found:#?}");
        assert!(found.windows(2).all(|pair| pair[0].to < pair[1].from));
    }

    #[test]
    fn equal_curves_have_no_best() {
        let curves = [1, 2].map(|seed| curve(&sizes(), hockney(9_000.0, 1.0), 0.02, seed));
        let found = regions(&[("one".into(), &curves[0]), ("other".into(), &curves[1])]);
        let sure: u32 = found.iter().filter(|region| region.best.is_some()).count() as u32;
        assert!(sure <= 2, "{found:#?}");
        assert_eq!(regions(&[("one".into(), &curves[0])]), []);
        assert_eq!(regions(&[]), []);
    }
}

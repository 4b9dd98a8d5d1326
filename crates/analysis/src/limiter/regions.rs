//! Which of several curves is best at which block sizes, for example which MTU or buffer to choose.

use std::ops::Range;

use model::units::three_digits;
use model::{BestRegion, Outcome};
use text::{Aside, Text, say};

use crate::curve::{CurvePoint, points};
use crate::findings::wording;
use crate::stats::{MeanDifference, mean};

/// Confidence of the best labels of all regions together.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Smallest difference that matters, as a logarithm of a ratio: 1 %.
pub(crate) const MATTERS: f64 = 0.009_95;
/// Evidence that one size can contribute to a region: with many sizes, more than one is needed.
const MOST_EVIDENCE: f64 = 6.0;
/// Evidence that a further region needs, for each unit of the logarithm of the number of sizes.
const SWITCH: f64 = 1.5;
/// Sizes on each side whose variances are averaged with a size's own, which has few rounds.
const NEIGHBOURS: usize = 2;

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
    /// Whether the rates are inverse times, and a difference is told as one of times.
    fn are_times(&self) -> bool {
        false
    }
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
    let named = |(region, _): (BestRegion, Range<usize>)| BestRegion {
        statement: say!("{}: {}", range_of(&region), region.statement),
        ..region
    };
    best_regions(&Curves { labels, sizes, points: of }).into_iter().map(named).collect()
}

/// `4 KiB to 8 MiB`.
pub(crate) fn range_of(region: &BestRegion) -> Text {
    if region.from == region.to {
        return wording::size(region.from);
    }
    say!("{} to {}", wording::size(region.from), wording::size(region.to))
}

/// Regions with one best label, or none, and the indices of their sizes. First the sizes are divided where the evidence over
/// neighbouring sizes outweighs the cost of a further region ([`divided`]). Then the best label of each region is tested against all
/// others (Student's t on the logarithm of the rate, Bonferroni correction for labels and regions); a region without a significant
/// winner that is ahead by what matters has none.
pub(crate) fn best_regions(rates: &impl LabelledRates) -> Vec<(BestRegion, Range<usize>)> {
    let joined = |parts: Vec<(Option<usize>, Range<usize>)>| {
        let mut joined: Vec<(Option<usize>, Range<usize>)> = Vec::new();
        for (best, sizes) in parts {
            match joined.last_mut() {
                Some((other, range)) if *other == best => range.end = sizes.end,
                _ => joined.push((best, sizes)),
            }
        }
        joined
    };
    let parts = joined(divided(rates).into_iter().enumerate().map(|(size, best)| (best, size..size + 1)).collect());
    let tests = parts.iter().filter(|(best, _)| best.is_some()).count().max(1) * (rates.labels().len() - 1).max(1);
    let error = (1.0 - CONFIDENCE) / tests as f64;
    let tested = |(best, sizes): (Option<usize>, Range<usize>)| {
        (best.filter(|best| is_ahead(rates, *best, sizes.clone(), error)), sizes)
    };
    let parts = joined(parts.into_iter().map(tested).collect());
    parts.into_iter().map(|(best, sizes)| (region(rates, best, sizes.clone(), error), sizes)).collect()
}

/// Whether a label is significantly ahead of each other one, by what matters.
pub(crate) fn is_ahead(rates: &impl LabelledRates, best: usize, sizes: Range<usize>, error: f64) -> bool {
    others(rates, best).all(|other| {
        let interval = rates.ahead(sizes.clone(), best, other).and_then(|ahead| ahead.interval(1.0 - error));
        interval.is_some_and(|interval| interval.low > 0.0 && interval.high > MATTERS)
    })
}

fn others(rates: &impl LabelledRates, label: usize) -> impl Iterator<Item = usize> {
    (0..rates.labels().len()).filter(move |other| *other != label)
}

/// For each size the label that is best around it, or none: the sequence with the most evidence, less a cost for each change of the
/// label (Viterbi's algorithm). The evidence of a size for a label is the likelihood of a lead by two standard errors, and at least
/// by what matters, against none, bounded, so that no lone size is a region among many.
fn divided(rates: &impl LabelledRates) -> Vec<Option<usize>> {
    let (sizes, labels) = (rates.sizes().len(), rates.labels().len());
    let cost = SWITCH * (sizes.max(1) as f64).ln();
    // State 0 is none, state n the label n - 1.
    let mut totals: Vec<f64> = vec![0.0; labels + 1];
    let mut came_from: Vec<Vec<usize>> = Vec::new();
    for own in evidence(rates) {
        let best = (0..=labels).max_by(|a, b| totals[*a].total_cmp(&totals[*b])).unwrap_or(0);
        let from: Vec<usize> =
            (0..=labels).map(|state| if totals[state] >= totals[best] - cost { state } else { best }).collect();
        let total = |state: usize| {
            let before = if from[state] == state { totals[state] } else { totals[best] - cost };
            before + if state == 0 { 0.0 } else { own[state - 1] }
        };
        totals = (0..=labels).map(total).collect();
        came_from.push(from);
    }
    let mut state = (0..=labels).max_by(|a, b| totals[*a].total_cmp(&totals[*b]).then(b.cmp(a))).unwrap_or(0);
    let mut states = vec![None; sizes];
    for (at, from) in came_from.iter().enumerate().rev() {
        states[at] = state.checked_sub(1);
        state = from[state];
    }
    states
}

/// The evidence that a label is ahead of all others, by size and label.
fn evidence(rates: &impl LabelledRates) -> Vec<Vec<f64>> {
    let (sizes, labels) = (rates.sizes().len(), rates.labels().len());
    let leads: Vec<Vec<Vec<Option<MeanDifference>>>> = (0..sizes)
        .map(|size| {
            let of = |one: usize| (0..labels).map(move |other| rates.ahead(size..size + 1, one, other)).collect();
            (0..labels).map(of).collect()
        })
        .collect();
    let error = |size: usize, one: usize, other: usize| {
        let near = size.saturating_sub(NEIGHBOURS)..(size + NEIGHBOURS + 1).min(sizes);
        let squares: Vec<f64> = near.filter_map(|at| Some(leads[at][one][other]?.standard_error.powi(2))).collect();
        mean(&squares).map(f64::sqrt)
    };
    let of = |size: usize, one: usize| {
        let against = |other: usize| {
            let (lead, error) = (leads[size][one][other]?.value, error(size, one, other)?.max(f64::EPSILON));
            let expected = (2.0 * error).max(2.0 * MATTERS);
            Some(((lead * expected - expected * expected / 2.0) / error.powi(2)).clamp(-MOST_EVIDENCE, MOST_EVIDENCE))
        };
        others(rates, one).map(|other| against(other).unwrap_or(-MOST_EVIDENCE)).fold(MOST_EVIDENCE, f64::min)
    };
    (0..sizes).map(|size| (0..labels).map(|label| of(size, label)).collect()).collect()
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

fn region(rates: &impl LabelledRates, best: Option<usize>, sizes: Range<usize>, error: f64) -> BestRegion {
    let (labels, blocks) = (rates.labels(), &rates.sizes()[sizes.clone()]);
    let (from, to) = (blocks.first().copied().unwrap_or(0), blocks.last().copied().unwrap_or(0));
    let mean =
        |label: usize| sizes.clone().map(|size| rates.ln_rate(size, label)).sum::<f64>() / sizes.len().max(1) as f64;
    let by_mean = |a: &usize, b: &usize| mean(*a).total_cmp(&mean(*b));
    let Some(best) = best else {
        let top = (0..labels.len()).max_by(by_mean).unwrap_or(0);
        let (ratio, statement) = undecided(rates, top, sizes, error);
        return BestRegion { from, to, best: None, over: None, ratio, low: None, high: None, statement };
    };
    let next = others(rates, best).max_by(by_mean).unwrap_or(best);
    let difference = rates.ahead(sizes.clone(), best, next);
    let ahead = difference.map_or_else(|| mean(best) - mean(next), |difference| difference.value);
    let interval = difference.and_then(|difference| difference.interval(1.0 - error));
    let (low, high) = (interval.map(|interval| interval.low.exp()), interval.map(|interval| interval.high.exp()));
    let shown = |ratio: f64| gain(if rates.are_times() { 1.0 / ratio } else { ratio });
    let interval = low.zip(high).map_or(Text::default(), |(low, high)| {
        let [first, last] = if rates.are_times() { [high, low] } else { [low, high] };
        let method = say!("{} interval {} to {}", wording::confidence(CONFIDENCE), shown(first), shown(last));
        say!("{}", Aside(method))
    });
    let statement = say!("{} is best, {} over {}{interval}", labels[best], shown(ahead.exp()), labels[next]);
    let (best, over) = (Some(labels[best].clone()), Some(labels[next].clone()));
    BestRegion { from, to, best, over, ratio: Some(ahead.exp()), low, high, statement }
}

/// What is known where no label is best: how large a difference can be at most; of several labels, which are behind those that lead,
/// with the least ratio.
fn undecided(rates: &impl LabelledRates, top: usize, sizes: Range<usize>, error: f64) -> (Option<f64>, Text) {
    let labels = rates.labels();
    let lead = |other: usize| rates.ahead(sizes.clone(), top, other);
    if others(rates, top).any(|other| lead(other).is_none()) {
        return (None, say!("fewer than three rounds, so no interval; the mean of {} is best", labels[top]));
    }
    let is_behind = |other: &usize| {
        let interval = lead(*other).and_then(|lead| lead.interval(1.0 - error));
        interval.is_some_and(|interval| interval.low > MATTERS)
    };
    let (behind, close): (Vec<usize>, Vec<usize>) = others(rates, top).partition(is_behind);
    let bounds = close.iter().filter_map(|other| lead(*other)?.interval(1.0 - error));
    let most = bounds.map(|interval| interval.high.max(-interval.low)).fold(0.0, f64::max);
    let limit = if most <= MATTERS { "at most 1 %".to_owned() } else { format!("at most {}", rounded_up(most)) };
    let named = |which: &[usize]| which.iter().map(|at| labels[*at].as_str()).collect::<Vec<_>>().join(", ");
    if behind.is_empty() || close.is_empty() {
        if most > std::f64::consts::LN_2 {
            return (None, say!("undecided: the rounds leave a difference of up to {} possible", rounded_up(most)));
        }
        return (None, say!("no significant difference ({limit})"));
    }
    let least = behind.iter().filter_map(|other| Some(lead(*other)?.value)).fold(f64::INFINITY, f64::min);
    let mut leading: Vec<usize> = close.iter().copied().chain([top]).collect();
    leading.sort_unstable();
    let most = if rates.are_times() { gain((-least).exp()) } else { gain(least.exp()) };
    let statement = say!(
        "{} are best, without a significant difference between them ({limit}); {most} or more over {}",
        named(&leading),
        named(&behind)
    );
    (Some(least.exp()), statement)
}

/// A difference of logarithms in percent, rounded up to two digits; a large one as a factor.
fn rounded_up(ln: f64) -> String {
    if ln > std::f64::consts::LN_2 {
        return format!("{:.1} times", (10.0 * ln.exp()).ceil() / 10.0);
    }
    let percent = 100.0 * ln.exp_m1();
    if percent < 10.0 { format!("{:.1} %", (10.0 * percent).ceil() / 10.0) } else { format!("{:.0} %", percent.ceil()) }
}

/// `+12.0 %`; a multiple of two and more as a factor, `3.81 times`.
fn gain(ratio: f64) -> Text {
    if ratio > 2.0 { say!("{} times", three_digits(ratio)) } else { say!("{:+.1} %", 100.0 * (ratio - 1.0)) }
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

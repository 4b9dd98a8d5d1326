//! The curve that peak, half peak and saturation are read from: smoothed over neighbouring sizes, and no higher than what streams carry
//! where a token bucket lets blocks through for a moment.
//!
//! A token bucket passes bytes at the speed of the line until it is empty (RFC 2697). A block that fits into it, or that waits for its
//! return while the bucket fills again, takes less time than the path needs for it in the long run. A stream empties the bucket and
//! then shows what the path carries. It shows less for other reasons too: two ends that are busy at the same time share caches and
//! cores. So it bounds the curve only if the threads of both ends mostly slept and the streams were equally fast, as the path and not a
//! host limited them then.

use model::{Estimate, Outcome, PeakCheck, median};

use crate::curve::{CurvePoint, Group, groups, points};

/// A rate above this multiple of what streams carry is one of a moment.
const ABOVE: f64 = 1.1;
/// Largest share of its time in which the busier thread ran, if the path limited a stream.
const SLEEPING: f64 = 0.5;
/// Largest half width of the streams' mean rate, relative to it, if the path limited them: a bucket fills at one rate, and what a busy
/// host lets through varies.
const EVEN: f64 = 0.2;
/// The neighbours of a size are farther apart than this factor: they do not show that its rate is a stroke of luck.
const FAR: f64 = 3.0;
/// Standard errors below a rate that decide which rate is the highest: an uncertain one may be so by luck.
const LUCK_ERRORS: f64 = 2.0;

/// A smoothed curve.
#[derive(Debug)]
pub(crate) struct Fit {
    pub(crate) groups: Vec<Group>,
    /// Natural logarithm of the rate of each group, bit/s.
    pub(crate) rates: Vec<f64>,
    /// The check of the peak, and the cell of the size that was checked.
    pub(crate) check: Option<(u32, PeakCheck)>,
    /// What the path carries, if it lets sizes through faster for a moment.
    pub(crate) carried: Option<Estimate>,
    /// Those sizes.
    pub(crate) moment: Option<Moment>,
}

/// Sizes that pass faster than the path carries them for long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// The largest of them, bytes.
    pub largest: u64,
    /// The highest of their rates, bit/s.
    pub fastest_bps: f64,
}

impl Fit {
    pub(crate) fn new<'a>(points: &[CurvePoint], outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let groups = groups(points);
        let check =
            outcomes.into_iter().find_map(|outcome| Some((outcome.cell, outcome.summary.check.as_deref().cloned()?)));
        let mut fit = Self { rates: smooth(&groups), groups, check, carried: None, moment: None };
        fit.bound();
        fit
    }

    /// Bounds the rates by what streams carry, if the path limited these.
    fn bound(&mut self) {
        let Some((_, PeakCheck { sustained: Some(sustained), busy: Some(busy), .. })) = &self.check else { return };
        let limit = (ABOVE * sustained.high.unwrap_or(sustained.value).max(sustained.value)).ln();
        let above: Vec<usize> = (0..self.rates.len()).filter(|at| self.rates[*at] > limit).collect();
        let even =
            sustained.low.zip(sustained.high).is_some_and(|(low, high)| high - low < 2.0 * EVEN * sustained.value);
        let Some(last) = above.last().filter(|_| *busy < SLEEPING && even) else { return };
        let fastest = above.iter().map(|at| self.rates[*at]).fold(f64::NEG_INFINITY, f64::max);
        self.moment = Some(Moment { largest: self.groups[*last].block, fastest_bps: fastest.exp() });
        let carried = sustained.value.ln();
        self.rates.iter_mut().for_each(|rate| *rate = rate.min(carried));
        self.carried = Some(sustained.clone());
    }

    /// The group that was checked, or else the one whose rate is surely the highest; `None` without groups.
    pub(crate) fn top(&self) -> Option<usize> {
        let checked = self.check.as_ref().map(|(cell, _)| cell);
        let of_check = checked.and_then(|cell| self.groups.iter().position(|group| group.cells().contains(cell)));
        of_check.or_else(|| {
            let surely = |at: &usize| {
                let se = self.groups[*at].se;
                (se.is_some(), self.rates[*at] - LUCK_ERRORS * se.unwrap_or(0.0), self.rates[*at])
            };
            let by_rate = |a: &usize, b: &usize| {
                let (a, b) = (surely(a), surely(b));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
            };
            (0..self.groups.len()).max_by(by_rate)
        })
    }
}

/// The cell of the fastest size of a curve, which is to be checked; `None` without a size that has a value. The curve's memory ceiling
/// is none of its sizes.
#[must_use]
pub fn fastest(outcomes: &[Outcome]) -> Option<u32> {
    let fit = Fit::new(&points(of_path(outcomes)), []);
    let group = &fit.groups[fit.top()?];
    group.points.get(group.points.len() / 2).map(|point| point.cell)
}

/// The sizes of a curve that pass faster than the path carries them for long; `None` if there are none, or the curve was not checked.
#[must_use]
pub fn of_a_moment(outcomes: &[Outcome]) -> Option<Moment> {
    Fit::new(&points(of_path(outcomes)), of_path(outcomes)).moment
}

/// The outcomes over the transport of the first cell.
fn of_path(outcomes: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    let first = outcomes.iter().min_by_key(|outcome| outcome.cell).map(|outcome| &outcome.spec.transport);
    outcomes.iter().filter(move |outcome| Some(&outcome.spec.transport) == first)
}

/// Running median of three of the logarithms of the rates, so that one bad group moves nothing. Groups whose neighbours are far, and
/// those at the ends, keep their own.
fn smooth(groups: &[Group]) -> Vec<f64> {
    let around = |at: usize| -> Option<f64> {
        let (before, after) = (groups.get(at.checked_sub(1)?)?, groups.get(at + 1)?);
        let near = after.block as f64 <= FAR * before.block as f64;
        near.then(|| median(&[before.ln_rate(), groups[at].ln_rate(), after.ln_rate()])).flatten()
    };
    groups.iter().enumerate().map(|(at, group)| around(at).unwrap_or_else(|| group.ln_rate())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::*;

    /// A path of 300 Mbit/s behind a line of 10 Gbit/s and a bucket of 64 KiB: half a round trip of a block, ns.
    pub(crate) fn shaped(block: u64) -> f64 {
        let (line, carried, bucket) = (1.25, 0.0375, 65_536.0);
        let bytes = block as f64;
        4_000.0 + bytes / line + (bytes / (2.0 * carried)).max((bytes - bucket) / carried) * f64::from(block > 2_048)
    }

    fn checked(mut outcomes: Vec<Outcome>, sustained: f64, busy: f64) -> Vec<Outcome> {
        let at = fastest(&outcomes).unwrap() as usize;
        let estimate = Estimate { unit: "bit/s".into(), ..outcomes[at].estimate.clone().unwrap() };
        let around =
            |value: f64| Estimate { value, low: Some(0.99 * value), high: Some(1.01 * value), ..estimate.clone() };
        outcomes[at].summary.check =
            Some(PeakCheck { fresh: None, sustained: Some(around(sustained)), busy: Some(busy) }.into());
        outcomes
    }

    #[test]
    fn sizes_that_a_bucket_lets_through_are_bounded_by_what_streams_carry() {
        let outcomes = checked(curve(&netpipe(), shaped, 0.02, 1), 300e6, 0.1);
        let fit = Fit::new(&points(&outcomes), &outcomes);
        assert!(fit.rates.iter().all(|rate| rate.exp() < 301e6), "{:?}", fit.rates);
        let moment = of_a_moment(&outcomes).unwrap();
        assert!(moment.largest >= 128 << 10 && moment.fastest_bps > 500e6, "{moment:?}");
        assert_eq!(fit.carried.unwrap().value, 300e6);
    }

    #[test]
    fn a_stream_that_hosts_limit_or_that_carries_as_much_bounds_nothing() {
        let hosts = checked(curve(&netpipe(), shaped, 0.02, 1), 300e6, 0.9);
        assert_eq!(of_a_moment(&hosts), None);
        let plain = hockney(10_000.0, 1.0);
        let path = checked(curve(&netpipe(), plain, 0.02, 1), 7.9e9, 0.1);
        assert_eq!(of_a_moment(&path), None);
        assert_eq!(of_a_moment(&curve(&netpipe(), shaped, 0.02, 1)), None, "not checked");
    }

    #[test]
    fn one_lucky_size_is_not_the_fastest() {
        let lucky = |block: u64| hockney(10_000.0, 1.0)(block) * if block == 8_192 { 0.05 } else { 1.0 };
        let outcomes = curve(&netpipe(), lucky, 0.01, 2);
        let block = outcomes[fastest(&outcomes).unwrap() as usize].spec.block;
        assert!(block >= 1 << 20, "{block}");
    }
}

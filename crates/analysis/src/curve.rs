//! A curve over block sizes, as findings and refinement use it.

use model::{Estimate, Outcome, median};

use crate::outcome::Headline;
use crate::stats::interval::t_critical;

/// Largest distance of a triple's outer members from its centre, relative to the centre.
const TRIPLE_REACH: f64 = 0.2;
/// Efficiency loss of a median against a mean, as a factor on the standard error (the square root of pi / 2).
const MEDIAN_LOSS: f64 = 1.25;

/// One block size that gave a value.
#[derive(Debug, Clone)]
pub(crate) struct CurvePoint {
    /// The cell.
    pub(crate) cell: u32,
    /// The block, bytes.
    pub(crate) block: u64,
    /// Natural logarithm of the time of a block in ns: half the round trip (NetPIPE's convention), or block over goodput.
    pub(crate) ln_time: f64,
    /// Standard error of `ln_time`; `None` if the estimate has no interval.
    pub(crate) se: Option<f64>,
    /// Degrees of freedom of `se`.
    pub(crate) df: f64,
    /// Whether the time is half an RTT.
    pub(crate) round_trip: bool,
    /// The rate and its interval: NetPIPE's for round trips, the goodput for streams.
    pub(crate) rate: Estimate,
}

impl CurvePoint {
    /// The point of an outcome; `None` for patterns without curves and for outcomes without a value.
    fn of(outcome: &Outcome) -> Option<Self> {
        let estimate = outcome.estimate.as_ref().filter(|estimate| estimate.value > 0.0)?;
        let bits = outcome.spec.block as f64 * 8e9;
        let headline = Headline::of(&outcome.spec);
        let (time, rate) = match headline {
            Headline::RoundTrip => (estimate.value / 2.0, netpipe_rate(estimate, 2.0 * bits)),
            Headline::Goodput => (bits / estimate.value, estimate.clone()),
            Headline::Transactions => return None,
        };
        Some(Self {
            cell: outcome.cell,
            block: outcome.spec.block,
            ln_time: time.ln(),
            se: relative_se(estimate),
            df: df_of(estimate),
            round_trip: headline == Headline::RoundTrip,
            rate,
        })
    }

    /// Natural logarithm of the block.
    pub(crate) fn ln_block(&self) -> f64 {
        (self.block as f64).ln()
    }
}

fn df_of(estimate: &Estimate) -> f64 {
    f64::from(estimate.n.max(2) - 1)
}

/// The standard error of an estimate as a fraction of its value, from its interval; `None` if it has none.
pub(crate) fn relative_se(estimate: &Estimate) -> Option<f64> {
    Some(estimate.relative_half_width()? / t_critical(estimate.confidence, df_of(estimate))?)
}

/// NetPIPE's rate from an RTT in ns: `bits` over it. A longer time is a lower rate, so the ends of the interval are swapped.
fn netpipe_rate(round_trip: &Estimate, bits: f64) -> Estimate {
    let end = |ns: Option<f64>| ns.filter(|ns| *ns > 0.0).map(|ns| bits / ns);
    Estimate {
        statistic: "block size over half the RTT (NetPIPE's rate)".to_owned(),
        unit: "bit/s".to_owned(),
        value: bits / round_trip.value,
        low: end(round_trip.high),
        high: end(round_trip.low),
        ..round_trip.clone()
    }
}

/// The points of a curve, ascending by block, one per block.
pub(crate) fn points<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = outcomes.into_iter().filter_map(CurvePoint::of).collect();
    points.sort_by_key(|point| point.block);
    points.dedup_by_key(|point| point.block);
    points
}

/// A block with its perturbed neighbours (NetPIPE's size - 3, size, size + 3), or a block alone.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The centre block, bytes.
    pub(crate) block: u64,
    /// Its members, ascending.
    pub(crate) points: Vec<CurvePoint>,
    /// Median of the members' `ln_time`.
    pub(crate) ln_time: f64,
    /// Standard error of `ln_time`; `None` if a member has none.
    pub(crate) se: Option<f64>,
    /// Degrees of freedom of `se`: the fewest of any member.
    pub(crate) df: f64,
}

impl Group {
    fn of(points: &[CurvePoint]) -> Option<Self> {
        let centre = points.get(points.len() / 2)?;
        let times: Vec<f64> = points.iter().map(|point| point.ln_time).collect();
        let squares: Option<f64> = points.iter().map(|point| point.se.map(|se| se * se)).sum();
        let loss = if points.len() > 1 { MEDIAN_LOSS } else { 1.0 };
        Some(Self {
            block: centre.block,
            ln_time: median(&times)?,
            se: squares.map(|squares| loss * squares.sqrt() / points.len() as f64),
            df: points.iter().map(|point| point.df).fold(f64::INFINITY, f64::min),
            points: points.to_vec(),
        })
    }

    /// Natural logarithm of the centre block.
    pub(crate) fn ln_block(&self) -> f64 {
        (self.block as f64).ln()
    }

    /// Natural logarithm of the rate in bit/s.
    pub(crate) fn ln_rate(&self) -> f64 {
        self.ln_block() + 8e9f64.ln() - self.ln_time
    }

    /// The members' cells.
    pub(crate) fn cells(&self) -> Vec<u32> {
        self.points.iter().map(|point| point.cell).collect()
    }
}

/// Groups the points of a curve: three neighbours at equal distances of at most 20 % of the middle one are a triple.
pub(crate) fn groups(points: &[CurvePoint]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut rest = points;
    while !rest.is_empty() {
        let taken = if rest.len() >= 3 && is_triple(rest[0].block, rest[1].block, rest[2].block) { 3 } else { 1 };
        groups.extend(Group::of(&rest[..taken]));
        rest = &rest[taken..];
    }
    groups
}

/// The block sizes, among these ascending ones, that only accompany another: the outer members of NetPIPE's triples (size - 3, size,
/// size + 3).
#[must_use]
pub fn neighbours(sizes: &[u64]) -> Vec<u64> {
    sizes.iter().zip(centres(sizes)).filter(|(size, centre)| *size != centre).map(|(size, _)| *size).collect()
}

/// For each of these ascending sizes the middle of its triple; a size alone is its own.
pub(crate) fn centres(sizes: &[u64]) -> Vec<u64> {
    debug_assert!(sizes.is_sorted(), "the sizes ascend");
    let mut centres = Vec::with_capacity(sizes.len());
    while let [size, rest @ ..] = &sizes[centres.len()..] {
        match *rest {
            [middle, high, ..] if is_triple(*size, middle, high) => centres.extend([middle; 3]),
            _ => centres.push(*size),
        }
    }
    centres
}

fn is_triple(low: u64, middle: u64, high: u64) -> bool {
    let reach = middle - low;
    high - middle == reach && reach as f64 <= TRIPLE_REACH * middle as f64
}

#[cfg(test)]
pub(crate) mod testing {
    //! Curves for tests.

    use model::{Cell, NetpipeSizes, Outcome, Pattern, Spec, Stopping, Trial};

    use crate::outcome::{Context, outcome};
    use crate::stats::{Decision, Sequential};
    use model::SplitMix64;

    /// NetPIPE's default sizes.
    pub(crate) fn netpipe() -> Vec<u64> {
        NetpipeSizes::DEFAULT.list()
    }

    /// Hockney's model: half a round trip in ns of a start-up time and a rate in bytes per ns.
    pub(crate) fn hockney(startup_ns: f64, bytes_per_ns: f64) -> impl Fn(u64) -> f64 {
        move |block| startup_ns + block as f64 / bytes_per_ns
    }

    /// A pingpong curve whose half round trip is `time_ns(block)`, with relative `noise` from trial to trial, each point
    /// measured until the default rule stops.
    pub(crate) fn curve(sizes: &[u64], time_ns: impl Fn(u64) -> f64, noise: f64, seed: u64) -> Vec<Outcome> {
        let mut random = SplitMix64::new(seed);
        let point = |(cell, block): (usize, &u64)| {
            let rule = Stopping { min_trials: 6, ..Stopping::default() };
            let sequential = Sequential::new(&rule);
            let mut values = Vec::new();
            while sequential.decide(&values) == Decision::Continue {
                values.push(2.0 * time_ns(*block) * (1.0 + noise * random.normal()));
            }
            made(Pattern::Pingpong, cell as u32, *block, &values)
        };
        sizes.iter().enumerate().map(point).collect()
    }

    /// An outcome of these values.
    pub(crate) fn made(pattern: Pattern, cell: u32, block: u64, values: &[f64]) -> Outcome {
        let spec = Spec { block, ..Spec::new("tcp", pattern) };
        let trial = |value: &f64| Trial {
            cell,
            pass: 0,
            position: 0,
            near: model::EndTally::default().into(),
            far: model::EndTally::default().into(),
            ledger: model::Ledger::default(),
            value: Some(*value),
            verdicts: Vec::new(),
        };
        let trials = values.iter().map(trial).collect();
        outcome(&Cell::new(cell, spec), trials, &Stopping::default(), Context { curve: true, ..Context::default() })
    }
}

#[cfg(test)]
mod tests {
    use model::Pattern;

    use super::testing::*;
    use super::*;

    #[test]
    fn netpipes_triples_become_one_group_each() {
        let outcomes = curve(&netpipe(), hockney(10_000.0, 1.0), 0.0, 1);
        let groups = groups(&points(&outcomes));
        // 1 2 3 4 6 8 12 alone, then 39 triples.
        assert_eq!(groups.len(), 46);
        assert_eq!(groups[7].block, 16);
        assert_eq!(groups.last().unwrap().block, 8 << 20);
        assert!(groups[7..].iter().all(|group| group.points.len() == 3));
    }

    #[test]
    fn round_trips_and_streams_give_the_same_curve() {
        let (pingpong, stream) =
            (made(Pattern::Pingpong, 0, 1000, &[4000.0; 6]), made(Pattern::Stream, 1, 1000, &[4e9; 6]));
        let both = [points(&[pingpong]), points(&[stream])];
        assert!((both[0][0].ln_time - 2000f64.ln()).abs() < 1e-9);
        assert!((both[1][0].ln_time - 2000f64.ln()).abs() < 1e-9);
        assert!((both[0][0].rate.value - 4e9).abs() < 1.0);
        assert!(points(&[made(Pattern::Rr, 0, 1, &[1.0; 6])]).is_empty());
    }

    #[test]
    fn the_rates_interval_is_the_times_inverted() {
        let point = &points(&[made(Pattern::Pingpong, 0, 1000, &[3990.0, 4010.0, 4000.0, 3995.0, 4005.0, 4000.0])])[0];
        assert!(point.rate.low.unwrap() < point.rate.value && point.rate.value < point.rate.high.unwrap());
        // The standard error of the six values over their mean.
        assert!((point.se.unwrap() - 7.0711 / 6f64.sqrt() / 4000.0).abs() < 1e-4, "{:?}", point.se);
    }
}

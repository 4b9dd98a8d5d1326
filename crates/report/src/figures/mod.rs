//! Which pictures a set of runs has, as data.
//!
//! Runs of the same kind share a picture, one series each; a run with several kinds of outcomes gives to several pictures.

mod curve;
mod goodput;
mod latency;
mod line;
mod marks;

use model::{Figure, Point, Run};

pub(crate) use curve::{Measure, curve_points};
pub use latency::TAIL_UNIT;
pub(crate) use line::{Line, curve_lines, direction};

/// The pictures of `runs`, in the order in which they are worth looking at.
///
/// Block-size curves give `throughput` (bit/s over bytes), `saturation` (ns over bytes) and `signature` (bit/s over ns);
/// where some runs are round trips and others streams, the streams' pictures have ids that end in `-stream`. Streams and
/// transfers give `goodput` (bit/s over ns since the trial's start), request/response gives `latency` (ns over
/// [`TAIL_UNIT`]). Outcomes without a value are left out, and so are pictures without a point.
#[must_use]
pub fn figures(runs: &[Run]) -> Vec<Figure> {
    drawn(runs).into_iter().map(|drawn| drawn.figure).collect()
}

/// A figure, and the place in `runs` of the run behind each of its series.
pub(crate) struct Drawn {
    pub(crate) figure: Figure,
    pub(crate) owners: Vec<usize>,
}

pub(crate) fn drawn(runs: &[Run]) -> Vec<Drawn> {
    let mut all = curve::figures(runs);
    all.extend(goodput::figure(runs));
    all.extend(latency::figure(runs));
    all
}

/// A value with its interval, in one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranged {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Ranged {
    fn over(self, x: f64) -> Point {
        Point { x, y: self.value, low: self.low, high: self.high }
    }
}

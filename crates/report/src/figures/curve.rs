//! The pictures of a block-size curve: throughput, saturation and signature.
//!
//! Source of the three: NetPIPE's graphs (Snell, Mikler and Gustafson, "NetPIPE: A Network Protocol Independent Performance
//! Evaluator", 1996).

use model::{Axis, Estimate, Figure, Outcome, Point, Run, Scale, Series};

use super::line::{Line, curve_lines};
use super::marks::{Position, marks};
use super::{Drawn, Ranged};
use crate::labels;

/// What stands for "the rate" of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Block bits over half the round trip.
    Netpipe,
    /// What receivers counted over their time.
    Goodput,
}

impl Measure {
    /// The measure of an outcome: a pingpong has no goodput.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        if outcome.summary.goodput_bps.is_some() { Self::Goodput } else { Self::Netpipe }
    }

    /// The rate's name on an axis or over a column.
    pub(crate) fn rate_label(self) -> &'static str {
        match self {
            Self::Netpipe => "NetPIPE rate",
            Self::Goodput => "goodput",
        }
    }

    fn time_label(self) -> &'static str {
        match self {
            Self::Netpipe => "half a round trip",
            Self::Goodput => "time per block",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Netpipe => "rate = block / half the round trip, as NetPIPE has it",
            Self::Goodput => "goodput as the receiver counted it",
        }
    }
}

/// One block size of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvePoint {
    /// Bytes.
    pub(crate) block: u64,
    /// Bit/s.
    pub(crate) rate: Ranged,
    /// Nanoseconds that a block takes: its bits over the rate, so half a round trip for a pingpong.
    pub(crate) time: Ranged,
}

/// The points of the outcomes that have a rate above zero.
pub(crate) fn curve_points(outcomes: &[&Outcome], measure: Measure) -> Vec<CurvePoint> {
    outcomes.iter().filter_map(|outcome| curve_point(outcome, measure)).collect()
}

fn curve_point(outcome: &Outcome, measure: Measure) -> Option<CurvePoint> {
    let bps = match measure {
        Measure::Netpipe => outcome.summary.netpipe_bps,
        Measure::Goodput => outcome.summary.goodput_bps,
    };
    let bps = bps.filter(|bps| bps.is_finite() && *bps > 0.0)?;
    let ns = outcome.spec.block as f64 * 8.0 / bps * 1e9;
    if !(ns.is_finite() && ns > 0.0) {
        return None;
    }
    let (slow, fast) = outcome.estimate.as_ref().and_then(rate_span).unzip();
    Some(CurvePoint {
        block: outcome.spec.block,
        rate: Ranged { value: bps, low: slow.map(|s| bps * s), high: fast.map(|f| bps * f) },
        time: Ranged { value: ns, low: fast.map(|f| ns / f), high: slow.map(|s| ns / s) },
    })
}

/// The ends of an estimate's interval as factors on the rate, low end first. A time's long end is the rate's low one.
fn rate_span(estimate: &Estimate) -> Option<(f64, f64)> {
    let (value, low, high) = (estimate.value, estimate.low?, estimate.high?);
    let span = if estimate.unit == "ns" { (value / high, value / low) } else { (low / value, high / value) };
    let usable = |factor: f64| factor.is_finite() && factor > 0.0;
    (usable(span.0) && usable(span.1)).then_some(span)
}

/// The three pictures, once for round trips and once for streams, as far as there are any.
pub(crate) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let lines = curve_lines(runs);
    let with = |measure| -> Vec<&Line<'_>> {
        lines.iter().filter(|line| line.outcomes.iter().any(|outcome| Measure::of(outcome) == measure)).collect()
    };
    let (trips, streams) = (with(Measure::Netpipe), with(Measure::Goodput));
    let suffix = if trips.is_empty() { "" } else { "-stream" };
    let mut all = three(runs, &trips, Measure::Netpipe, "");
    all.extend(three(runs, &streams, Measure::Goodput, suffix));
    all
}

fn three(runs: &[Run], lines: &[&Line<'_>], measure: Measure, suffix: &str) -> Vec<Drawn> {
    let size = || axis("block size", "B", Scale::Log);
    let rate = || axis(measure.rate_label(), "bit/s", Scale::Linear);
    let time = || axis(measure.time_label(), "ns", Scale::Log);
    [
        ("throughput", "Throughput by block size", size(), rate(), Position::Throughput),
        ("saturation", "Saturation: time by block size", size(), time(), Position::Saturation),
        ("signature", "Signature: throughput by time", time(), rate(), Position::Signature),
    ]
    .into_iter()
    .filter_map(|(id, title, x, y, place)| {
        let figure = Figure {
            id: format!("{id}{suffix}"),
            title: title.to_owned(),
            subtitle: labels::subtitle(runs, lines, measure.note(), labels::interval_note(lines)),
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
        };
        fill(runs, lines, measure, place, figure)
    })
    .collect()
}

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

/// Draws `lines` into `figure`; `None` when not one has a point.
fn fill(runs: &[Run], lines: &[&Line<'_>], measure: Measure, place: Position, mut figure: Figure) -> Option<Drawn> {
    let mut owners = Vec::new();
    // More than two sets of labels would hide the curves that they explain.
    let marked = lines.iter().filter(|line| !line.reference).count() <= 2;
    for line in lines {
        let outcomes: Vec<&Outcome> =
            line.outcomes.iter().copied().filter(|outcome| Measure::of(outcome) == measure).collect();
        let points = curve_points(&outcomes, measure);
        if points.is_empty() {
            continue;
        }
        if marked && !line.reference {
            figure.marks.extend(marks(&runs[line.run], &outcomes, &points, place));
        }
        let points = points.iter().map(|point| place.point(point)).collect::<Vec<Point>>();
        figure.series.push(Series { name: line.name.clone(), points, reference: line.reference });
        owners.push(line.run);
    }
    if figure.y.scale == Scale::Linear {
        figure.series = clip_ceilings(figure.series);
    }
    (!figure.series.is_empty()).then_some(Drawn { figure, owners })
}

/// How far above the highest measured point a ceiling is still drawn: one ten times higher would press the curve that matters
/// flat.
const CEILING_ROOM: f64 = 1.25;

/// Leaves out the points of reference series that lie far above everything measured, and says in the legend how high they go.
pub(super) fn clip_ceilings(mut all: Vec<Series>) -> Vec<Series> {
    let highest = |series: &Series| series.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let limit = all.iter().filter(|series| !series.reference).map(highest).fold(0.0, f64::max) * CEILING_ROOM;
    for series in all.iter_mut().filter(|series| series.reference) {
        let top = highest(series);
        if top > limit {
            // Up to the first point beyond: the line leaves the picture there, and what comes back later would float.
            let seen = series.points.iter().take_while(|point| point.y <= limit).count();
            series.points.truncate(seen);
            series.name = format!("{} (up to {}, beyond this scale)", series.name, model::units::bits_per_second(top));
        }
    }
    all
}

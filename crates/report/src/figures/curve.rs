//! The figures of a block-size curve: throughput, saturation and signature.
//!
//! Source of the three: NetPIPE's graphs (Snell, Mikler and Gustafson, "NetPIPE: A Network Protocol Independent Performance
//! Evaluator", 1996).

use model::{Axis, Estimate, Figure, Outcome, Point, Run, Scale, Series};

use super::line::{Line, curve_lines};
use super::marks::{CurveFigure, marks};
use super::{Drawn, Ranged};
use crate::labels;

/// Which rate of an outcome a curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Block bits over half the round trip.
    Netpipe,
    /// Bytes that the receivers counted over their time.
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
            Self::Netpipe => "rate = block / half the round trip, as in NetPIPE",
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
    /// Nanoseconds of a block: its bits over the rate, for a pingpong half of a round trip.
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

/// The ends of an estimate's interval as factors of the rate, low end first. The upper end of a time is the lower end of a rate.
fn rate_span(estimate: &Estimate) -> Option<(f64, f64)> {
    let (value, low, high) = (estimate.value, estimate.low?, estimate.high?);
    let span = if estimate.unit == "ns" { (value / high, value / low) } else { (low / value, high / value) };
    let usable = |factor: f64| factor.is_finite() && factor > 0.0;
    (usable(span.0) && usable(span.1)).then_some(span)
}

/// The three figures, for round trips and for streams.
pub(crate) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let lines = curve_lines(runs);
    let with = |measure| -> Vec<&Line<'_>> {
        lines.iter().filter(|line| line.outcomes.iter().any(|outcome| Measure::of(outcome) == measure)).collect()
    };
    let (trips, streams) = (with(Measure::Netpipe), with(Measure::Goodput));
    let suffix = if trips.is_empty() { "" } else { "-stream" };
    let mut all = three_figures(runs, &trips, Measure::Netpipe, "");
    all.extend(three_figures(runs, &streams, Measure::Goodput, suffix));
    all
}

fn three_figures(runs: &[Run], lines: &[&Line<'_>], measure: Measure, suffix: &str) -> Vec<Drawn> {
    let size = || axis("block size", "B", Scale::Log);
    let rate = || axis(measure.rate_label(), "bit/s", Scale::Linear);
    let time = || axis(measure.time_label(), "ns", Scale::Log);
    [
        ("throughput", "Throughput by block size", size(), rate(), CurveFigure::Throughput),
        ("saturation", "Saturation: time by block size", size(), time(), CurveFigure::Saturation),
        ("signature", "Signature: throughput by time", time(), rate(), CurveFigure::Signature),
    ]
    .into_iter()
    .filter_map(|(id, title, x, y, kind)| {
        let figure = Figure {
            id: format!("{id}{suffix}"),
            title: title.to_owned(),
            subtitle: labels::subtitle(runs, lines, measure.note(), labels::interval_note(lines)),
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
        };
        fill(runs, lines, measure, kind, figure)
    })
    .collect()
}

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

/// Draws `lines` into `figure`; `None` if none has a point.
fn fill(runs: &[Run], lines: &[&Line<'_>], measure: Measure, kind: CurveFigure, mut figure: Figure) -> Option<Drawn> {
    let mut owners = Vec::new();
    // More than two sets of labels would hide the curves.
    let marked = lines.iter().filter(|line| !line.reference).count() <= 2;
    for line in lines {
        let outcomes: Vec<&Outcome> =
            line.outcomes.iter().copied().filter(|outcome| Measure::of(outcome) == measure).collect();
        let points = curve_points(&outcomes, measure);
        if points.is_empty() {
            continue;
        }
        if marked && !line.reference {
            figure.marks.extend(marks(&runs[line.run], &outcomes, &points, kind));
        }
        let points = points.iter().map(|point| kind.point(point)).collect::<Vec<Point>>();
        figure.series.push(Series { name: line.name.clone(), points, reference: line.reference });
        owners.push(line.run);
    }
    if figure.y.scale == Scale::Linear {
        figure.series = clip_ceilings(figure.series);
    }
    (!figure.series.is_empty()).then_some(Drawn { figure, owners })
}

/// How far above the highest measured point a ceiling is still drawn. A much higher one would flatten the measured curve.
const CEILING_ROOM: f64 = 1.25;

/// Removes the points of reference series that are far above all measured points, and names their maximum in the legend.
pub(super) fn clip_ceilings(mut all: Vec<Series>) -> Vec<Series> {
    let highest = |series: &Series| series.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let limit = all.iter().filter(|series| !series.reference).map(highest).fold(0.0, f64::max) * CEILING_ROOM;
    for series in all.iter_mut().filter(|series| series.reference) {
        let top = highest(series);
        if top > limit {
            // Ends at the first point out of range: later points would be a detached piece of line.
            let seen = series.points.iter().take_while(|point| point.y <= limit).count();
            series.points.truncate(seen);
            series.name = format!("{} (up to {}, out of range)", series.name, model::units::bits_per_second(top));
        }
    }
    all
}

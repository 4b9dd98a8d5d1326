//! The figures of a block-size curve: throughput, saturation and signature.
//!
//! Source of the three: NetPIPE's graphs (Snell, Mikler and Gustafson, "NetPIPE: A Network Protocol Independent Performance
//! Evaluator", 1996).

use model::{Axis, Figure, Outcome, Point, Run, Scale, Series};

use super::Drawn;
use super::curve_points::{Measure, curve_points};
use super::line::{Line, curve_lines};
use super::marks::{CurveFigure, marks};
use super::subtitle::{interval_note, subtitle};

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
            subtitle: subtitle(runs, lines, measure.note(), interval_note(lines)),
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
        figure.series.push(Series { name: line.name.clone(), points, reference: line.reference, stacked: false });
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

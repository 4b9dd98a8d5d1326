//! The figures of a block-size curve: throughput, saturation and signature.
//!
//! Source of the three: NetPIPE's graphs (Snell, Mikler and Gustafson, "NetPIPE: A Network Protocol Independent Performance
//! Evaluator", 1996).

use model::{Axis, Figure, Outcome, Point, Run, Scale, Series};

use super::Drawn;
use super::arrange::arranged;
use super::curve_points::{Measure, curve_points, neighbours_joined};
use super::line::{Line, curve_lines};
use super::marks::{CurveFigure, marks};
use super::subtitle::{interval_note, subtitle};
use drawing::span::CEILING_ROOM;

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
    let size = || Axis::new("block size", "B", Scale::Log);
    let rate = || Axis::new(measure.rate_label(), "bit/s", Scale::Linear);
    let time = || Axis::new(measure.time_label(), "ns", Scale::Log);
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
            ..Figure::default()
        };
        fill(runs, lines, measure, kind, figure)
    })
    .collect()
}

/// Draws `lines` into `figure`; `None` if none has a point.
fn fill(runs: &[Run], lines: &[&Line<'_>], measure: Measure, kind: CurveFigure, mut figure: Figure) -> Option<Drawn> {
    let (mut owners, mut shown) = (Vec::new(), Vec::new());
    // More than two sets of labels would hide the curves.
    let marked = lines.iter().filter(|line| !line.reference).count() <= 2;
    let mut joined = 0;
    for line in lines {
        let outcomes: Vec<&Outcome> =
            line.outcomes.iter().copied().filter(|outcome| Measure::of(outcome) == measure).collect();
        let every = curve_points(&outcomes, measure);
        let points = neighbours_joined(&every);
        if points.is_empty() {
            continue;
        }
        joined = joined.max(every.len() - points.len());
        if marked && !line.reference {
            figure.marks.extend(marks(&runs[line.run], &outcomes, &points, kind));
        }
        let points = points.iter().map(|point| kind.point(point)).collect::<Vec<Point>>();
        let (name, reference) = (line.name.clone(), line.reference);
        figure.series.push(Series { name, points, reference, ..Series::default() });
        owners.push(line.run);
        shown.push(*line);
    }
    if joined > 0 {
        figure.subtitle += "; sizes a few bytes apart are one point, with the range of all their intervals";
    }
    if figure.y.scale == Scale::Linear {
        figure.series = out_of_range_named(figure.series);
    }
    (!figure.series.is_empty()).then(|| arranged(Drawn { figure, owners }, runs, &shown))
}

/// Names the maximum of reference series that leave the range of all measured points. They do not stretch it: the frame cuts them,
/// with an arrow.
pub(super) fn out_of_range_named(mut all: Vec<Series>) -> Vec<Series> {
    let highest = |series: &Series| series.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let limit = all.iter().filter(|series| !series.reference).map(highest).fold(0.0, f64::max) * CEILING_ROOM;
    for series in all.iter_mut().filter(|series| series.reference) {
        let top = highest(series);
        if top > limit {
            series.name = format!("{} (up to {})", series.name, model::units::bits_per_second(top));
        }
    }
    all
}

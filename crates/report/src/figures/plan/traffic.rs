//! Hosts that sent at the same time: their common goodput and the completion times over the number of senders or receivers.

use analysis::plan::{TrafficCurve, TrafficStep, traffic_curves};
use model::{Axis, Figure, Point, Run, Scale, Series, TrafficKind};

use super::super::Drawn;
use super::super::arrange::one_each;
use super::subtitle;

/// From this number of senders on the axis is logarithmic.
const WIDE: f64 = 8.0;

/// A line: its name, and its values over the steps.
type Line = (&'static str, fn(&TrafficStep) -> Option<Point>);

/// The goodput together, and the completion times of transfers; none for traffic without numbers of senders or receivers.
pub(super) fn figures(run: &Run) -> Vec<Drawn> {
    let curves = traffic_curves(&run.header, &run.outcomes, &run.passes);
    let Some(kind) = curves.first().map(|curve| curve.kind).filter(|kind| kind.has_hub()) else { return Vec::new() };
    let goodput: [Line; 1] = [("", |step| {
        let total = step.shares.total_bps;
        Some(point(total.value, total.interval))
    })];
    let times: [Line; 4] = [
        ("all ended", |step| step.completion.map(|it| point(it.all_ns.value, it.all_ns.interval))),
        ("median", |step| Some(point(step.completion?.p50_ns, None))),
        ("95 %", |step| Some(point(step.completion?.p95_ns?, None))),
        ("longest", |step| Some(point(step.completion?.max_ns, None))),
    ];
    let towards = if kind == TrafficKind::FanOut { "out of" } else { "into" };
    let hub = curves.first().and_then(|curve| curve.hub.as_deref());
    let hub = hub.filter(|hub| curves.iter().all(|curve| curve.hub.as_deref() == Some(hub))).unwrap_or("one host");
    let common = figure(
        run,
        &curves,
        &goodput,
        Figure {
            id: "plan-traffic-goodput".into(),
            title: format!("Goodput {towards} {hub}"),
            subtitle: subtitle(run, "means of the rounds with their intervals"),
            y: Axis { low: Some(0.0), ..Axis::new("goodput", "bit/s", Scale::Linear) },
            ..Figure::default()
        },
    );
    let completion = figure(
        run,
        &curves,
        &times,
        Figure {
            id: "plan-traffic-completion".into(),
            title: format!("Completion time of transfers {towards} {hub}"),
            subtitle: subtitle(run, "until all of a round had ended (mean with its interval), and percentiles of all"),
            y: Axis::new("completion time", "ns", Scale::Log),
            ..Figure::default()
        },
    );
    common.into_iter().chain(completion).collect()
}

fn point(y: f64, interval: Option<[f64; 2]>) -> Point {
    let [low, high] = [0, 1].map(|end| interval.map(|ends| ends[end]));
    Point { x: 0.0, y, low, high }
}

/// A figure of `lines`; `None` if no line has two points.
fn figure(run: &Run, curves: &[TrafficCurve], lines: &[Line], empty: Figure) -> Option<Drawn> {
    let mut series: Vec<Series> = Vec::new();
    for curve in curves {
        for (line, value) in lines {
            let points = curve.steps.iter().filter_map(|step| Some(Point { x: step.number? as f64, ..value(step)? }));
            let points: Vec<Point> = points.collect();
            let levels = curve.levels.iter().map(|(name, level)| format!("{name} {level}"));
            let hub = curve.hub.clone().filter(|_| curves.len() > 1);
            let name: Vec<String> =
                levels.chain(hub).chain(Some((*line).to_owned())).filter(|part| !part.is_empty()).collect();
            let name = if name.is_empty() { crate::labels::title(run) } else { name.join(", ") };
            if points.len() > 1 {
                series.push(Series { name, points, ..Series::default() });
            }
        }
    }
    let mut numbers: Vec<usize> = curves.iter().flat_map(|curve| &curve.steps).filter_map(|step| step.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let factor = curves.first()?.kind.factor()?;
    let (least, most) = (*numbers.first()? as f64, *numbers.last()? as f64);
    let scale = if most / least >= WIDE { Scale::Log } else { Scale::Linear };
    let ticks = numbers.into_iter().map(|number| (number as f64, number.to_string())).collect();
    let x = Axis { ticks, ..Axis::new(factor, "", scale) };
    let owners = vec![0; series.len()];
    (!series.is_empty()).then(|| one_each(Drawn { figure: Figure { series, x, ..empty }, owners }))
}

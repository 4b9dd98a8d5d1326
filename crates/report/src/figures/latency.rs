//! Round-trip times over percentiles, with a stretched tail.

use drawing::TAIL_UNIT;
use model::{Axis, Figure, Histogram, Mark, Point, RttTally, Run, Scale, Series, units};

use super::Drawn;
use super::arrange::arranged;
use super::line::single_lines;
use super::subtitle::subtitle;

/// The smallest ratio of neighbouring points, so that a million samples give a few hundred points.
const STEP: f64 = 1.04;

/// The figure of all outcomes with a histogram; `None` if there are none.
pub(crate) fn figure(runs: &[Run]) -> Option<Drawn> {
    let lines = single_lines(runs, |outcome| outcome.histogram.as_ref().is_some_and(|samples| samples.count() > 0));
    let (mut series, mut owners, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    let mut shown = Vec::new();
    for line in &lines {
        for histogram in line.outcomes.iter().filter_map(|outcome| outcome.histogram.as_ref()) {
            series.push(Series {
                name: line.name.clone(),
                points: points(histogram),
                reference: line.reference,
                ..Series::default()
            });
            owners.push(line.run);
            shown.push(line);
            if lines.len() <= 2 {
                marks.extend(percentile_marks(histogram));
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let all: Vec<_> = lines.iter().collect();
    let figure = Figure {
        id: "latency".to_owned(),
        title: "Round-trip time by percentile".to_owned(),
        subtitle: subtitle(runs, &all, "round trips, samples of all trials", None),
        x: Axis::new("round trips at or below", TAIL_UNIT, Scale::Log),
        y: Axis::new("round-trip time", "ns", Scale::Log),
        series,
        marks,
        ..Figure::default()
    };
    Some(arranged(Drawn { figure, owners }, runs, &shown))
}

fn points(histogram: &Histogram) -> Vec<Point> {
    let total = histogram.count() as f64;
    let longest = histogram.max().unwrap_or(0);
    let mut below = 0;
    let mut points: Vec<Point> = Vec::new();
    for (ns, count) in histogram.buckets() {
        below += count;
        // Half a sample above the last one keeps the longest round trip finite on this axis.
        let x = total / (total - below as f64 + 0.5);
        let last = below == histogram.count();
        if last || points.last().is_none_or(|point| x >= point.x * STEP) {
            points.push(Point { x, y: ns.min(longest) as f64, low: None, high: None });
        }
    }
    points
}

/// The median, and the 99th percentile if at least ten samples are above it.
fn percentile_marks(histogram: &Histogram) -> Vec<Mark> {
    let mut wanted = vec![("median", 0.5)];
    if histogram.count() >= RttTally::P99_SAMPLES {
        wanted.push(("p99", 0.99));
    }
    wanted
        .into_iter()
        .filter_map(|(name, q)| {
            let y = histogram.quantile(q)? as f64;
            Some(Mark { x: 1.0 / (1.0 - q), y, label: format!("{name} {}", units::seconds(y)) })
        })
        .collect()
}

//! Goodput over the time of a trial, from the receivers' interval series.

use model::{Axis, Direction, EndTally, Figure, Interval, Outcome, Point, Run, Scale, Series, Trial};

use super::Drawn;
use super::arrange::{arranged, one_each};
use super::line::single_lines;
use super::subtitle::subtitle;

/// The figure of all streams and transfers; `None` if there are none.
pub(crate) fn figure(runs: &[Run]) -> Option<Drawn> {
    let lines = single_lines(runs, |outcome| outcome.summary.goodput_bps.is_some());
    let (mut series, mut owners, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for line in &lines {
        for outcome in &line.outcomes {
            for (suffix, points) in directions(outcome) {
                if !points.is_empty() {
                    let name = format!("{}{suffix}", line.name);
                    series.push(Series { name, points, reference: line.reference, ..Series::default() });
                    owners.push(line.run);
                    shown.push(line);
                }
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let several = lines.iter().any(|line| line.outcomes.iter().any(|outcome| outcome.trials.len() > 1));
    let band = several.then(|| "range from the lowest to the highest trial".to_owned());
    let all: Vec<_> = lines.iter().collect();
    let figure = Figure {
        id: "goodput".to_owned(),
        title: "Goodput over time".to_owned(),
        subtitle: subtitle(runs, &all, "goodput per interval, mean of the trials", band),
        x: Axis::elapsed("time since the start of the trial"),
        y: Axis::new("goodput", "bit/s", Scale::Linear),
        series,
        ..Figure::default()
    };
    // Of both directions, each has its line.
    let directed = shown.len() > lines.len();
    let drawn = Drawn { figure, owners };
    Some(if directed { one_each(drawn) } else { arranged(drawn, runs, &shown) })
}

/// The points of each direction with payload, with a suffix for the line's name.
fn directions(outcome: &Outcome) -> Vec<(&'static str, Vec<Point>)> {
    let of = |end: fn(&Trial) -> &EndTally| {
        let ends: Vec<&EndTally> = outcome.trials.iter().map(end).collect();
        points(&ends, outcome.spec.interval_ns, outcome.spec.starts_after_ns())
    };
    let far = || of(|trial| &trial.far);
    let near = || of(|trial| &trial.near);
    // A transport within one process has all its counts at the near end.
    let either = |receiver: Vec<Point>, other: &dyn Fn() -> Vec<Point>| {
        vec![("", if receiver.is_empty() { other() } else { receiver })]
    };
    match outcome.spec.direction {
        Direction::Send => either(far(), &near),
        Direction::Reverse => either(near(), &far),
        Direction::Both => vec![(", outbound", far()), (", return", near())],
    }
}

/// A point for each interval over all trials: bytes over time, with the range from the slowest to the fastest trial. The ends started
/// `start_ns` after the common start of simultaneous tests.
fn points(ends: &[&EndTally], nominal_ns: u64, start_ns: u64) -> Vec<Point> {
    if !ends.iter().flat_map(|end| &end.intervals).any(|interval| interval.bytes_received > 0) {
        return Vec::new();
    }
    let longest = ends.iter().map(|end| end.intervals.len()).max().unwrap_or(0);
    (0..longest)
        .filter_map(|index| {
            let slices: Vec<&Interval> = ends
                .iter()
                .filter_map(|end| end.intervals.get(index))
                // A short interval at the end of a trial has too few arrivals for a rate.
                .filter(|interval| length(interval) > 0 && length(interval) >= nominal_ns / 5)
                .collect();
            // An interval that at most a third of the trials have is not a mean of the trials.
            if slices.is_empty() || slices.len() * 3 <= ends.len() {
                return None;
            }
            let point = merge(&slices);
            Some(Point { x: point.x + start_ns as f64, ..point })
        })
        .collect()
}

fn merge(slices: &[&Interval]) -> Point {
    let rate = |bytes: u64, ns: u64| bytes as f64 * 8e9 / ns as f64;
    let bytes = slices.iter().map(|slice| slice.bytes_received).sum();
    let ns = slices.iter().map(|slice| length(slice)).sum();
    let middle = slices.iter().map(|slice| slice.start_ns as f64 + length(slice) as f64 / 2.0).sum::<f64>();
    let rates = || slices.iter().map(|slice| rate(slice.bytes_received, length(slice)));
    let several = slices.len() > 1;
    Point {
        x: middle / slices.len() as f64,
        y: rate(bytes, ns),
        low: several.then(|| rates().fold(f64::INFINITY, f64::min)),
        high: several.then(|| rates().fold(0.0, f64::max)),
    }
}

fn length(interval: &Interval) -> u64 {
    interval.end_ns.saturating_sub(interval.start_ns)
}

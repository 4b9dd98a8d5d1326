//! Goodput over the time of a trial, from the receivers' interval series; of imports with the sender's alone, from that.

use model::{Axis, Direction, EndTally, Figure, Interval, Outcome, Point, Run, Scale, Series, Trial};

use super::Drawn;
use super::arrange::{arranged, one_each};
use super::line::single_lines;
use super::subtitle::subtitle;

/// The figure of all streams and transfers; `None` if there are none.
pub(crate) fn figure(runs: &[Run]) -> Option<Drawn> {
    let lines = single_lines(runs, |outcome| outcome.summary.goodput_bps.is_some());
    let (mut series, mut owners, mut shown, mut some_sent) = (Vec::new(), Vec::new(), Vec::new(), false);
    for line in &lines {
        for outcome in &line.outcomes {
            for Way { suffix, points, is_sent } in directions(outcome) {
                if !points.is_empty() {
                    some_sent |= is_sent;
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
    let note = if some_sent {
        "bytes per interval, mean of the trials; where the receiver has no series, what was sent"
    } else {
        "goodput per interval, mean of the trials"
    };
    let figure = Figure {
        id: "goodput".to_owned(),
        title: "Goodput over time".to_owned(),
        subtitle: subtitle(runs, &all, note, band),
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

/// The points of a direction, a suffix for the line's name, and whether the sender counted them.
struct Way {
    suffix: &'static str,
    points: Vec<Point>,
    is_sent: bool,
}

/// Where a series may be: the end, and the count of its intervals.
type Source = (fn(&Trial) -> &EndTally, Count);

/// What an interval counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Received,
    Sent,
}

/// Each direction with payload, as the receiver counted it. A file of another program may have the sender's series only, and a transport
/// within one process has all its counts at the near end.
fn directions(outcome: &Outcome) -> Vec<Way> {
    let far: [Source; 2] = [(|trial| &trial.far, Count::Received), (|trial| &trial.far, Count::Sent)];
    let near: [Source; 2] = [(|trial| &trial.near, Count::Received), (|trial| &trial.near, Count::Sent)];
    let of = |suffix, sources: &[Source]| {
        let series = |(end, count): &Source| {
            let ends: Vec<&EndTally> = outcome.trials.iter().map(end).collect();
            points(&ends, *count, outcome.spec.interval_ns, outcome.spec.starts_after_ns())
        };
        let mut all = sources.iter().map(|source| (series(source), source.1 == Count::Sent));
        let (points, is_sent) = all.find(|(points, _)| !points.is_empty()).unwrap_or_default();
        Way { suffix, points, is_sent }
    };
    match outcome.spec.direction {
        Direction::Send => vec![of("", &[far[0], near[0], near[1]])],
        Direction::Reverse => vec![of("", &[near[0], far[0], far[1]])],
        Direction::Both => vec![of(", outbound", &[far[0], near[1]]), of(", return", &[near[0], far[1]])],
    }
}

impl Count {
    fn of(self, interval: &Interval) -> u64 {
        match self {
            Self::Received => interval.bytes_received,
            Self::Sent => interval.bytes_sent,
        }
    }
}

/// A point for each interval over all trials: bytes over time, with the range from the slowest to the fastest trial. The ends started
/// `start_ns` after the common start of simultaneous tests.
fn points(ends: &[&EndTally], count: Count, nominal_ns: u64, start_ns: u64) -> Vec<Point> {
    if !ends.iter().flat_map(|end| &end.intervals).any(|interval| count.of(interval) > 0) {
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
            let point = merge(&slices, count);
            Some(Point { x: point.x + start_ns as f64, ..point })
        })
        .collect()
}

fn merge(slices: &[&Interval], count: Count) -> Point {
    let rate = |bytes: u64, ns: u64| bytes as f64 * 8e9 / ns as f64;
    let bytes = slices.iter().map(|slice| count.of(slice)).sum();
    let ns = slices.iter().map(|slice| length(slice)).sum();
    let middle = slices.iter().map(|slice| slice.start_ns as f64 + length(slice) as f64 / 2.0).sum::<f64>();
    let rates = || slices.iter().map(|slice| rate(count.of(slice), length(slice)));
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

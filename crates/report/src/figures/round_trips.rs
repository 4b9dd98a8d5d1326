//! Round-trip times over the time of a trial, from the number of round trips that ended in each interval.

use model::{Axis, Figure, Interval, Outcome, Pattern, Point, Run, Scale, Series};

use super::Drawn;
use super::arrange::arranged;
use super::line::{Line, single_lines};
use super::subtitle::subtitle;

/// The fewest round trips of each trial behind a point. One that began before or ended after it would otherwise count too much.
const LEAST: u64 = 30;
/// The fewest points of a line.
const FEWEST: usize = 3;

/// The figure of all rr and crr tests that send a request when the last one is answered; `None` if there are none.
pub(super) fn figure(runs: &[Run]) -> Option<Drawn> {
    let lines = single_lines(runs, is_closed);
    let of = |points: fn(&Outcome) -> Vec<Point>| -> Vec<(&Line<'_>, Vec<Point>)> {
        let own = lines.iter().filter_map(|line| Some((line, points(line.outcomes.first()?))));
        own.filter(|(_, points)| !points.is_empty()).collect()
    };
    let few = |all: &[(&Line<'_>, Vec<Point>)]| all.iter().any(|(_, points)| points.len() < FEWEST);
    // Trials with few round trips say more one after the other.
    let mut all = of(pooled);
    let in_a_row = few(&all);
    if in_a_row {
        all = of(row);
    }
    if all.is_empty() || few(&all) {
        return None;
    }
    let owners = all.iter().map(|(line, _)| line.run).collect();
    let shown: Vec<&Line<'_>> = all.iter().map(|(line, _)| *line).collect();
    let series: Vec<Series> =
        all.into_iter().map(|(line, points)| Series { name: line.name.clone(), points, ..Series::default() }).collect();
    let (note, time) = if in_a_row {
        (
            "mean of the round trips that ended in each interval; the trials one after the other",
            "measured time of all trials",
        )
    } else {
        ("mean of the round trips that ended in each interval", "time since the start of the trial")
    };
    let several = series.iter().flat_map(|series| &series.points).any(|point| point.low.is_some());
    let band = several.then(|| "range from the lowest to the highest trial".to_owned());
    let figure = Figure {
        id: "rtt".to_owned(),
        title: "Round-trip time over time".to_owned(),
        subtitle: subtitle(runs, &shown, note, band),
        x: Axis::elapsed(time),
        y: Axis::new("round-trip time", "ns", Scale::Linear),
        series,
        ..Figure::default()
    };
    Some(arranged(Drawn { figure, owners }, runs, &shown))
}

/// Whether each flow always has one request under way, so that the time of a flow is that of its round trips.
fn is_closed(outcome: &Outcome) -> bool {
    let spec = &outcome.spec;
    matches!(spec.pattern, Pattern::Rr | Pattern::Crr) && spec.rate_bps.is_none() && spec.outstanding.is_none()
}

/// A point for each interval, or for as many of them as have enough round trips: the mean over all trials, with the range from the lowest
/// to the highest trial.
fn pooled(outcome: &Outcome) -> Vec<Point> {
    let trials: Vec<&[Interval]> = trials(outcome).collect();
    // What few of the trials have is no mean of the trials.
    let lengths: Vec<f64> = trials.iter().map(|all| all.len() as f64).collect();
    let longest = model::median(&lengths).unwrap_or(0.0) as usize;
    points(outcome, &trials, longest, outcome.spec.starts_after_ns())
}

/// The points of each trial, as if they followed one another without a gap.
fn row(outcome: &Outcome) -> Vec<Point> {
    let (mut all, mut start_ns) = (Vec::new(), 0);
    for trial in trials(outcome) {
        all.extend(points(outcome, &[trial], trial.len(), start_ns));
        start_ns += trial.last().map_or(0, |last| last.end_ns);
    }
    all
}

fn trials(outcome: &Outcome) -> impl Iterator<Item = &[Interval]> {
    let all = outcome.trials.iter().map(|trial| trial.near.intervals.as_slice());
    all.filter(|all| all.iter().any(|interval| interval.transactions > 0))
}

/// The points of some trials over the same time, in up to `longest` intervals.
fn points(outcome: &Outcome, trials: &[&[Interval]], longest: usize, start_ns: u64) -> Vec<Point> {
    let flows = f64::from(outcome.spec.flows.max(1));
    let (mut points, mut first) = (Vec::new(), 0);
    for last in 0..longest {
        let parts: Vec<&[Interval]> = trials.iter().filter_map(|all| all.get(first..=last)).collect();
        let enough = |part: &&[Interval]| count(part) >= LEAST;
        if parts.is_empty() || !parts.iter().all(enough) {
            continue;
        }
        let means = || parts.iter().map(|part| flows * time(part) / count(part) as f64);
        let (time, count) = parts.iter().fold((0.0, 0), |(ns, all), part| (ns + time(part), all + count(part)));
        let middle = |part: &&[Interval]| (part[0].start_ns as f64 + part[part.len() - 1].end_ns as f64) / 2.0;
        let several = parts.len() > 1;
        points.push(Point {
            x: start_ns as f64 + parts.iter().map(middle).sum::<f64>() / parts.len() as f64,
            y: flows * time / count as f64,
            low: several.then(|| means().fold(f64::INFINITY, f64::min)),
            high: several.then(|| means().fold(0.0, f64::max)),
        });
        first = last + 1;
    }
    points
}

fn count(part: &[Interval]) -> u64 {
    part.iter().map(|interval| interval.transactions).sum()
}

fn time(part: &[Interval]) -> f64 {
    part.iter().map(|interval| interval.end_ns.saturating_sub(interval.start_ns) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const STEP: u64 = 100_000_000;

    fn run(flows: u32, counts: &[u64]) -> Run {
        let mut run = sample::rr();
        let outcome = &mut run.outcomes[0];
        outcome.spec.flows = flows;
        for trial in &mut outcome.trials {
            let interval = |(at, transactions): (u64, &u64)| Interval {
                start_ns: at * STEP,
                end_ns: (at + 1) * STEP,
                transactions: *transactions,
                ..Interval::default()
            };
            trial.near.intervals = (0..).zip(counts).map(interval).collect();
        }
        run
    }

    fn times(run: &Run) -> Vec<f64> {
        figure(std::slice::from_ref(run))
            .map_or(Vec::new(), |drawn| drawn.figure.series[0].points.iter().map(|point| point.y).collect())
    }

    #[test]
    fn the_time_of_an_interval_over_its_round_trips_is_their_mean() {
        assert_eq!(times(&run(1, &[1_000, 500, 1_000])), [1e5, 2e5, 1e5]);
        assert_eq!(times(&run(4, &[1_000, 500, 1_000])), [4e5, 8e5, 4e5], "each of four flows takes part of them");
    }

    #[test]
    fn few_round_trips_are_joined_until_they_have_a_mean() {
        // 40 ms: two or three of them in an interval say 33 or 50 ms.
        let counts: Vec<u64> = (0..120).map(|at| 2 + at % 2).collect();
        let times = times(&run(1, &counts));
        assert!(times.len() == 10 && times.iter().all(|ns| (38e6..42e6).contains(ns)), "{times:?}");
    }

    #[test]
    fn trials_with_few_round_trips_follow_one_another() {
        let run = run(1, &[40, 40]);
        let points = figure(std::slice::from_ref(&run)).unwrap().figure.series.remove(0).points;
        assert_eq!(points.len(), 2 * run.outcomes[0].trials.len());
        assert_eq!(points[2], Point { x: 2.5 * STEP as f64, y: 2.5e6, ..Point::default() });
    }

    #[test]
    fn a_paced_test_a_stream_and_an_import_without_intervals_have_no_such_figure() {
        let mut paced = run(1, &[1_000; 5]);
        paced.outcomes[0].spec.rate_bps = Some(1_000_000);
        assert!(figure(&[paced, sample::stream(), sample::rr()]).is_none());
    }
}

//! Loss and jitter of datagrams over time, from the readings of the ends at which they arrive.

use model::{Axis, Direction, Figure, Point, Run, Scale, Series};

use super::Drawn;
use super::arrange::{arranged, one_each};
use super::line::{Line, single_lines};
use super::parts::{Part, Trials, directions};
use super::subtitle::subtitle;

/// The figures of all runs whose datagrams were counted, loss first, if there was any.
pub(super) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let lines = single_lines(runs, |outcome| outcome.summary.packets_sent.is_some() && outcome.spec.is_stream());
    let loss = Kind { id: "loss", title: "Loss over time", label: "datagrams lost", unit: "%", value: lost };
    let jitter = Kind { id: "jitter", title: "Jitter over time", label: "jitter", unit: "ns", value: jitter };
    [loss, jitter].into_iter().filter_map(|kind| figure(runs, &lines, &kind)).collect()
}

struct Kind {
    id: &'static str,
    title: &'static str,
    label: &'static str,
    unit: &'static str,
    /// The value of parts at the same time of several trials.
    value: fn(&[&Part]) -> Option<f64>,
}

/// The share of the datagrams that did not arrive, %.
fn lost(parts: &[&Part]) -> Option<f64> {
    let [numbers, received] = parts
        .iter()
        .flat_map(|part| &part.flows)
        .filter_map(|flow| flow.datagrams)
        .fold([0, 0], |sum: [u64; 2], own| [sum[0] + own[0], sum[1] + own[1]]);
    (numbers > 0).then(|| 100.0 * numbers.saturating_sub(received) as f64 / numbers as f64)
}

/// The mean jitter of the flows, ns.
fn jitter(parts: &[&Part]) -> Option<f64> {
    let all: Vec<f64> =
        parts.iter().flat_map(|part| &part.flows).filter_map(|flow| Some(flow.jitter_ns? as f64)).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// A direction, when its trials start after a common start, ns, and their parts.
type Way = (Direction, u64, Trials);

fn figure(runs: &[Run], lines: &[Line<'_>], kind: &Kind) -> Option<Drawn> {
    let of = |line: &Line<'_>| -> Vec<Way> {
        let Some(outcome) = line.outcomes.first() else { return Vec::new() };
        let ways = directions(outcome.spec.direction).into_iter();
        ways.map(|way| (way, outcome.spec.starts_after_ns(), Trials::of(outcome, way))).collect()
    };
    let all: Vec<(&Line<'_>, Vec<Way>)> = lines.iter().map(|line| (line, of(line))).collect();
    let in_a_row = all.iter().flat_map(|(_, ways)| ways).any(|(.., trials)| trials.are_short());
    let (mut series, mut owners, mut shown, mut several) = (Vec::new(), Vec::new(), Vec::new(), false);
    for (line, ways) in &all {
        for (way, start_ns, trials) in ways {
            let points = if in_a_row { row(trials, kind) } else { pooled(trials, *start_ns, kind) };
            if points.is_empty() {
                continue;
            }
            several |= points.iter().any(|point| point.low.is_some());
            let suffix = if ways.len() > 1 { format!(", {}", way.way()) } else { String::new() };
            series.push(Series { name: format!("{}{suffix}", line.name), points, ..Series::default() });
            owners.push(line.run);
            shown.push(*line);
        }
    }
    // Where nothing was lost, there is nothing to see.
    let some = series.iter().flat_map(|series| &series.points).any(|point| point.y > 0.0);
    if !some || series.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    let note = match (in_a_row, kind.unit) {
        (true, "%") => "datagrams that did not arrive, over about a second each; the trials one after the other",
        (false, "%") => "datagrams that did not arrive, over about a second each",
        (true, _) => "of the arrivals (RFC 3550), about once a second; the trials one after the other",
        (false, _) => "of the arrivals (RFC 3550), about once a second",
    };
    let band = several.then(|| "range from the lowest to the highest trial".to_owned());
    let time = if in_a_row { "measured time of all trials" } else { "time since the start of the trial" };
    let figure = Figure {
        id: kind.id.to_owned(),
        title: kind.title.to_owned(),
        subtitle: subtitle(runs, &shown, note, band),
        x: Axis::elapsed(time),
        y: Axis::new(kind.label, kind.unit, Scale::Linear),
        series,
        ..Figure::default()
    };
    let directed = all.iter().any(|(_, ways)| ways.len() > 1);
    let drawn = Drawn { figure, owners };
    Some(if directed { one_each(drawn) } else { arranged(drawn, runs, &shown) })
}

/// A point for each part of each trial.
fn row(trials: &Trials, kind: &Kind) -> Vec<Point> {
    let of = |(start_ns, part): (u64, &Part)| {
        Some(Point { x: part.middle(start_ns), y: (kind.value)(&[part])?, ..Point::default() })
    };
    trials.in_a_row().filter_map(of).collect()
}

/// A point for each part over all trials, with their range. What at most a third of them have is no mean of the trials.
fn pooled(trials: &Trials, start_ns: u64, kind: &Kind) -> Vec<Point> {
    let longest = trials.parts.iter().map(Vec::len).max().unwrap_or(0);
    let of = |number: usize| {
        let parts: Vec<&Part> = trials.parts.iter().filter_map(|all| all.get(number)).collect();
        if parts.len() * 3 <= trials.parts.len() {
            return None;
        }
        let each: Vec<f64> = parts.iter().filter_map(|part| (kind.value)(&[part])).collect();
        let several = each.len() > 1;
        Some(Point {
            x: parts.iter().map(|part| part.middle(start_ns)).sum::<f64>() / parts.len() as f64,
            y: (kind.value)(&parts)?,
            low: each.iter().copied().reduce(f64::min).filter(|_| several),
            high: each.iter().copied().reduce(f64::max).filter(|_| several),
        })
    };
    (0..longest).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use model::{DatagramReading, DatagramTally, FlowCounts, FlowTally, Interval};

    use super::*;
    use crate::sample;

    const SECOND: u64 = 1_000_000_000;

    /// Trials of `seconds` in which each flow sends 1,000 datagrams a second, and loses so many of each second.
    fn run(flows: u32, lost: &[u64]) -> Run {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.spec.transport = model::TransportName::Udp;
        outcome.summary.packets_sent = Some(1_000);
        let seconds = lost.len() as u64;
        for trial in &mut outcome.trials {
            let counts = |second: u64| {
                let received = 1_000 * second - lost[..second as usize].iter().sum::<u64>();
                DatagramReading { numbers: 1_000 * second, received, jitter_ns: Some(100 * second) }
            };
            let reading = |second: u64| FlowCounts {
                at_ns: second * SECOND,
                bytes_sent: 0,
                bytes_received: 0,
                datagrams: Some(counts(second)),
            };
            let end = counts(seconds);
            let flow = |flow: u32, datagrams: DatagramTally| FlowTally {
                flow,
                datagrams: Some(datagrams),
                ..FlowTally::default()
            };
            let arrived =
                DatagramTally { received: end.received, jitter_ns: end.jitter_ns, ..DatagramTally::default() };
            trial.far.flows = (0..flows)
                .map(|number| FlowTally { readings: (1..seconds).map(reading).collect(), ..flow(number, arrived) })
                .collect();
            let sent = DatagramTally { sent: end.numbers, ..DatagramTally::default() };
            trial.near.flows = (0..flows).map(|number| flow(number, sent)).collect();
            trial.far.intervals = vec![Interval { end_ns: seconds * SECOND, ..Interval::default() }];
        }
        run
    }

    fn values(run: &Run) -> Vec<(String, Vec<(f64, f64)>)> {
        let of = |drawn: Drawn| {
            let points = drawn.figure.series[0].points.iter().map(|point| (point.x / 1e9, point.y)).collect();
            (drawn.figure.id, points)
        };
        figures(std::slice::from_ref(run)).into_iter().map(of).collect()
    }

    #[test]
    fn loss_and_jitter_have_a_point_for_each_second() {
        let figures = values(&run(2, &[0, 10, 0, 500]));
        assert_eq!(figures[0], ("loss".to_owned(), vec![(0.5, 0.0), (1.5, 1.0), (2.5, 0.0), (3.5, 50.0)]));
        assert_eq!(figures[1], ("jitter".to_owned(), vec![(0.5, 100.0), (1.5, 200.0), (2.5, 300.0), (3.5, 400.0)]));
    }

    #[test]
    fn short_trials_follow_one_another() {
        let run = run(1, &[100]);
        let loss = &values(&run)[0].1;
        let expected: Vec<(f64, f64)> = (0..run.outcomes[0].trials.len()).map(|at| (at as f64 + 0.5, 10.0)).collect();
        assert_eq!(*loss, expected);
    }

    #[test]
    fn a_single_point_and_other_transports_have_no_figure() {
        let mut run = run(1, &[100]);
        run.outcomes[0].trials.truncate(1);
        assert!(figures(&[run, sample::stream(), sample::rr()]).is_empty());
        let ids: Vec<String> = values(&self::run(1, &[0; 4])).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["jitter"], "nothing was lost");
    }
}

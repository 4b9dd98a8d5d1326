//! Goodput above and round-trip times below, over the same time: what a load does to latency.

use model::{Axis, Direction, EndTally, Figure, Look, Outcome, Panel, Point, Run, Scale, Series, Trial};

use super::Drawn;
use super::arrange::line_looks;
use super::flow::{round_trips, shown};
use super::line::{Line, single_lines};
use super::subtitle::subtitle;

/// The most lines: more would hide each other.
const MOST: usize = 3;
/// The panels.
const RATE: usize = 0;
const LATENCY: usize = 1;

/// The figure of streams whose senders' TCP or a probe measured round-trip times; `None` if there are none, or many.
pub(crate) fn figure(runs: &[Run]) -> Option<Drawn> {
    let wanted = |outcome: &Outcome| {
        outcome.summary.goodput_bps.is_some()
            && (outcome.summary.probe.is_some()
                || shown(outcome).is_some_and(|trial| !round_trips(outcome, trial).is_empty()))
    };
    let lines = single_lines(runs, wanted);
    if lines.is_empty() || lines.len() > MOST {
        return None;
    }
    let looks = line_looks(runs, &lines);
    let (mut series, mut owners) = (Vec::new(), Vec::new());
    for (line, of_line) in lines.iter().zip(looks) {
        for outcome in &line.outcomes {
            let whose = if lines.len() > 1 { format!("{}: ", line.name) } else { String::new() };
            for (number, own) in of_outcome(outcome).into_iter().enumerate() {
                // The quantities of a single line have a colour each; several lines have a colour each.
                let beside = Look { dash: number, ..of_line };
                let look = if lines.len() > 1 { beside } else { Look { colour: number, dash: 0 } };
                series.push(Series { name: format!("{whose}{}", own.name), look: Some(look), ..own });
                owners.push(line.run);
            }
        }
    }
    let has = |panel| series.iter().any(|series| series.panel == Some(panel) && !series.reference);
    if !has(RATE) || !series.iter().any(|series| series.panel == Some(LATENCY)) {
        return None;
    }
    let has_medians = series.iter().any(|series| series.reference);
    let dashed = if has_medians { "; dashed: medians of a probe" } else { "" };
    let what = format!("the trial nearest to the median{dashed}");
    let latency = Axis::new("round-trip time", "ns", Scale::Linear);
    let refs: Vec<&Line<'_>> = lines.iter().collect();
    let figure = Figure {
        id: "under-load".to_owned(),
        title: "Goodput and latency over time".to_owned(),
        subtitle: subtitle(runs, &refs, &what, None),
        x: Axis::elapsed("time since the start of the trial"),
        y: Axis::new("goodput", "bit/s", Scale::Linear),
        panels: vec![
            Panel { title: "Goodput".to_owned(), y: None },
            Panel { title: "Round-trip time".to_owned(), y: Some(latency) },
        ],
        series,
        ..Figure::default()
    };
    Some(Drawn { figure, owners })
}

/// The goodput in each direction, the round-trip times of TCP and of a probe's requests, and the medians of a probe without and with load.
fn of_outcome(outcome: &Outcome) -> Vec<Series> {
    let Some(trial) = shown(outcome) else { return Vec::new() };
    let start_ns = outcome.spec.starts_after_ns();
    let mut all = Vec::new();
    let mut add = |panel, name: String, points: Vec<Point>, reference| {
        if !points.is_empty() {
            all.push(Series { name, points, panel: Some(panel), reference, ..Series::default() });
        }
    };
    for (name, end) in receivers(outcome, trial) {
        add(RATE, name.to_owned(), rates(end, outcome.spec.interval_ns, start_ns), false);
    }
    for (of, points) in round_trips(outcome, trial) {
        add(LATENCY, format!("TCP's smoothed RTT{of}"), points, false);
    }
    let requests = |end: &EndTally| -> Vec<Point> {
        let point = |at_ns: u64, y: u64| Point { x: (start_ns + at_ns) as f64, y: y as f64, ..Point::default() };
        end.probes.iter().map(|sample| point(sample.at_ns, sample.request_ns)).collect()
    };
    for end in [&trial.near, &trial.far] {
        add(LATENCY, "requests of the probe".to_owned(), requests(end), false);
    }
    let Some(probe) = &outcome.summary.probe else { return all };
    let xs = || all.iter().flat_map(|series| &series.points).map(|point| point.x);
    let ends = [xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max)];
    let level = |y: u64| ends.map(|x| Point { x, y: y as f64, ..Point::default() }).to_vec();
    let idle = probe.idle.as_ref().map(|idle| ("probe, idle", idle.p50_ns));
    let has_times = all.iter().any(|series| series.panel == Some(LATENCY));
    for (name, median) in idle.into_iter().chain([("probe, under load", probe.loaded.p50_ns)]) {
        // Without times beside them they are what is measured, and not a comparison.
        all.push(Series {
            name: name.to_owned(),
            points: level(median),
            panel: Some(LATENCY),
            reference: has_times,
            ..Series::default()
        });
    }
    all
}

/// The ends that receive payload, with what each receives.
fn receivers<'a>(outcome: &Outcome, trial: &'a Trial) -> Vec<(&'static str, &'a EndTally)> {
    match outcome.spec.direction {
        Direction::Send => vec![("goodput", &trial.far)],
        Direction::Reverse => vec![("goodput", &trial.near)],
        Direction::Both => vec![("goodput, outbound", &trial.far), ("goodput, return", &trial.near)],
    }
}

/// The goodput of each interval; a short one at the end has too few arrivals for a rate.
fn rates(end: &EndTally, nominal_ns: u64, start_ns: u64) -> Vec<Point> {
    let length = |interval: &model::Interval| interval.end_ns.saturating_sub(interval.start_ns);
    let long = end.intervals.iter().filter(|interval| length(interval) > 0 && length(interval) >= nominal_ns / 5);
    let point = |interval: &model::Interval| Point {
        x: (start_ns + interval.start_ns) as f64 + length(interval) as f64 / 2.0,
        y: interval.bytes_received as f64 * 8e9 / length(interval) as f64,
        ..Point::default()
    };
    long.map(point).collect()
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Histogram, Responsiveness, RttTally, TcpSample};

    use super::*;
    use crate::sample;

    fn run() -> Run {
        let mut run = sample::stream();
        let sampled = |at: u64| TcpSample { at_ns: at * 100_000_000, rtt_ns: 20_000_000, ..TcpSample::default() };
        for trial in &mut run.outcomes[0].trials {
            let tcp = (0..10).map(sampled).collect();
            trial.near.flows = vec![FlowTally { bytes_sent: 1, tcp, ..FlowTally::default() }];
        }
        run
    }

    fn tally(ns: u64) -> RttTally {
        let mut histogram = Histogram::default();
        (0..20).for_each(|_| histogram.record(ns));
        RttTally::from_histogram(histogram, 1).unwrap()
    }

    #[test]
    fn the_rate_is_above_the_latency_on_the_same_time() {
        let mut run = run();
        let probe = Responsiveness {
            idle: Some(tally(1_000_000)),
            loaded: tally(21_000_000),
            bufferbloat_ns: None,
            rpm: 300.0,
            working: Vec::new(),
        };
        run.outcomes[0].summary.probe = Some(Box::new(probe));
        let figure = figure(&[run]).unwrap().figure;
        let names: Vec<(&str, Option<usize>, bool)> =
            figure.series.iter().map(|series| (series.name.as_str(), series.panel, series.reference)).collect();
        assert_eq!(
            names,
            [
                ("goodput", Some(0), false),
                ("TCP's smoothed RTT", Some(1), false),
                ("probe, idle", Some(1), true),
                ("probe, under load", Some(1), true)
            ]
        );
        assert_eq!((figure.y_of(0).unit.as_str(), figure.y_of(1).unit.as_str()), ("bit/s", "ns"));
        let idle = figure.series[2].points[0].y;
        assert!((idle / 1e6 - 1.0).abs() < 1e-3, "{idle}");
    }

    #[test]
    fn without_a_latency_there_is_no_figure() {
        assert!(figure(&[sample::stream()]).is_none());
        assert!(figure(&[sample::rr(), sample::curve()]).is_none());
    }
}

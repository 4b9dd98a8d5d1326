//! TCP over the time of a trial, from the TCP_INFO series of its senders: window, round-trip time, rates and retransmissions.

use model::{Axis, Direction, EndTally, Figure, FlowTally, Look, Outcome, Point, Run, Scale, Series, TcpSample, Trial};

use super::Drawn;
use super::arrange::{MOST, line_colours, one_each, panel_for_each};
use super::curve::out_of_range_named;
use super::line::{Line, single_lines};
use super::subtitle::subtitle;

/// The most flows of a trial that are drawn, if it is the only one in the figure.
const MAX_FLOWS: usize = 3;
/// The most points of a series, by the width of a figure.
const MAX_POINTS: usize = 400;

/// A value of a TCP_INFO sample, with its name in the legend.
struct Quantity {
    name: &'static str,
    value: fn(&TcpSample) -> Option<f64>,
    /// Drawn thin, and only within the range of the others.
    reference: bool,
}

const fn quantity(name: &'static str, value: fn(&TcpSample) -> Option<f64>) -> Quantity {
    Quantity { name, value, reference: false }
}

const WINDOW: &[Quantity] = &[
    quantity("congestion window", |sample| Some(f64::from(sample.cwnd))),
    Quantity { reference: true, ..quantity("slow-start threshold", |sample| sample.ssthresh.map(f64::from)) },
];
const ROUND_TRIP: &[Quantity] = &[
    quantity("smoothed", |sample| Some(sample.rtt_ns as f64).filter(|ns| *ns > 0.0)),
    quantity("shortest", |sample| sample.min_rtt_ns.map(|ns| ns as f64)),
];
const RATE: &[Quantity] = &[
    quantity("delivered", |sample| sample.delivery_bps.map(|bps| bps as f64)),
    Quantity { reference: true, ..quantity("pacing rate", |sample| sample.pacing_bps.map(|bps| bps as f64)) },
];
const RETRANSMITS: &[Quantity] = &[quantity("retransmitted segments", |sample| Some(sample.retransmits as f64))];

/// The figures of all runs whose senders have series. Retransmissions have a figure only if there were any.
pub(crate) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let lines = single_lines(runs, |outcome| shown(outcome).is_some_and(|trial| !senders(outcome, trial).is_empty()));
    if lines.is_empty() {
        return Vec::new();
    }
    let retransmitted = |line: &Line<'_>| {
        let series = line.outcomes.iter().filter_map(|outcome| Some(senders(outcome, shown(outcome)?)));
        series.flatten().filter_map(|flow| flow.tcp.last()).any(|last| last.retransmits > 0)
    };
    [
        ("tcp-window", "Congestion window over time", "window in segments", "", WINDOW),
        ("tcp-rtt", "TCP's round-trip time over time", "round-trip time", "ns", ROUND_TRIP),
        ("tcp-rate", "TCP's delivery rate over time", "rate", "bit/s", RATE),
        ("tcp-retransmits", "Retransmitted segments over time", "segments", "", RETRANSMITS),
    ]
    .into_iter()
    .filter(|(id, ..)| *id != "tcp-retransmits" || lines.iter().any(retransmitted))
    .filter_map(|(id, title, label, unit, quantities)| {
        let y = Axis::new(label, unit, Scale::Linear);
        figure(runs, &lines, (id, title), y, quantities)
    })
    .collect()
}

fn figure(
    runs: &[Run],
    lines: &[Line<'_>],
    (id, title): (&str, &str),
    y: Axis,
    quantities: &[Quantity],
) -> Option<Drawn> {
    let (mut series, mut owners, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let max_flows = if lines.len() == 1 { MAX_FLOWS } else { 1 };
    // Each of many lines has a plot of its own, with all its quantities.
    let apart = lines.len() > 1 && lines.len() * quantities.len() > MOST;
    let colours = line_colours(runs, lines);
    for (number, line) in lines.iter().enumerate() {
        for outcome in &line.outcomes {
            let flows = shown(outcome).map(|trial| senders(outcome, trial)).unwrap_or_default();
            for flow in flows.iter().take(max_flows) {
                let of = match flows.len() {
                    1 => String::new(),
                    _ => format!(", flow {}", flow.flow),
                };
                for (dash, quantity) in quantities.iter().enumerate() {
                    let points = points(&flow.tcp, quantity.value, outcome.spec.starts_after_ns());
                    if !points.is_empty() {
                        let alone = lines.len() == 1 || (apart && quantities.len() > 1);
                        let whose = if alone { String::new() } else { format!("{}: ", line.name) };
                        let name = format!("{whose}{}{of}", quantity.name);
                        // Beside others, a line has one colour, and each of its quantities a pattern.
                        let look = (lines.len() > 1 && !apart).then_some(Look { colour: colours[number], dash });
                        let look = if apart { Some(Look { colour: dash, dash: 0 }) } else { look };
                        series.push(Series { name, points, reference: quantity.reference, look, ..Series::default() });
                        owners.push(line.run);
                        groups.push(number);
                    }
                }
            }
        }
    }
    if series.iter().all(|series| series.reference) {
        return None;
    }
    let refs: Vec<&Line<'_>> = lines.iter().collect();
    let figure = Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        subtitle: subtitle(runs, &refs, "TCP_INFO of the sender, in the trial nearest to the median", None),
        x: Axis::new("time since the start of the trial", "ns", Scale::Linear),
        y,
        series: out_of_range_named(series),
        ..Figure::default()
    };
    let mut drawn = Drawn { figure, owners };
    if apart && quantities.len() > 1 {
        let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        panel_for_each(&mut drawn.figure, &groups, &names);
        return Some(drawn);
    }
    Some(one_each(drawn))
}

/// The trial that represents its outcome: the one with the value nearest to the median.
pub(super) fn shown(outcome: &Outcome) -> Option<&Trial> {
    let mut values: Vec<f64> = outcome.trials.iter().filter_map(|trial| trial.value).collect();
    values.sort_by(f64::total_cmp);
    let Some(median) = values.get(values.len() / 2) else { return outcome.trials.last() };
    let distance = |trial: &Trial| trial.value.map_or(f64::INFINITY, |value| (value - median).abs());
    outcome.trials.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The flows with a series at the end that sends payload; for round trips the requesting end.
fn senders<'a>(outcome: &Outcome, trial: &'a Trial) -> Vec<&'a FlowTally> {
    let end: &EndTally = match outcome.spec.direction {
        Direction::Reverse => &trial.far,
        Direction::Send | Direction::Both => &trial.near,
    };
    // A first and a last sample alone show nothing over time.
    end.flows.iter().filter(|flow| flow.bytes_sent > 0 && flow.tcp.len() > 2).collect()
}

/// Every n-th sample, and the last, of an end that started `start_ns` after the common start of simultaneous tests.
fn points(samples: &[TcpSample], value: fn(&TcpSample) -> Option<f64>, start_ns: u64) -> Vec<Point> {
    let every = samples.len().div_ceil(MAX_POINTS).max(1);
    let last = samples.len().saturating_sub(1);
    let taken = samples.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    taken
        .filter_map(|(_, sample)| {
            let x = (start_ns + sample.at_ns) as f64;
            Some(Point { x, y: value(sample)?, low: None, high: None })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn sampled(at: u64) -> TcpSample {
        TcpSample {
            at_ns: at * 100_000_000,
            cwnd: 10 + at as u32,
            ssthresh: (at > 3).then_some(7_000),
            rtt_ns: 2_000_000,
            min_rtt_ns: Some(1_000_000),
            delivery_bps: Some(1_000_000 * at),
            pacing_bps: Some(1 << 50),
            retransmits: at / 4,
            ..TcpSample::default()
        }
    }

    fn run(flows: u32, readings: u64) -> Run {
        let mut run = sample::stream();
        for trial in &mut run.outcomes[0].trials {
            trial.near.flows = (0..flows)
                .map(|flow| FlowTally {
                    flow,
                    bytes_sent: 1,
                    tcp: (0..readings).map(sampled).collect(),
                    ..FlowTally::default()
                })
                .collect();
        }
        run
    }

    fn ids(runs: &[Run]) -> Vec<String> {
        figures(runs).into_iter().map(|drawn| drawn.figure.id).collect()
    }

    #[test]
    fn a_senders_series_give_window_round_trip_rate_and_retransmits() {
        assert_eq!(ids(&[run(1, 12)]), ["tcp-window", "tcp-rtt", "tcp-rate", "tcp-retransmits"]);
        assert_eq!(ids(&[run(1, 4)]), ["tcp-window", "tcp-rtt", "tcp-rate"], "nothing was retransmitted");
        assert_eq!(ids(&[run(1, 2)]), [""; 0]);
        assert_eq!(ids(&[sample::stream(), sample::curve()]), [""; 0]);
    }

    #[test]
    fn each_flow_has_its_lines_and_limits_do_not_flatten_them() {
        let drawn = figures(&[run(5, 12)]);
        let names = |figure: &Figure| figure.series.iter().map(|series| series.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&drawn[1].figure)[..3], ["smoothed, flow 0", "shortest, flow 0", "smoothed, flow 1"]);
        assert_eq!(drawn[1].figure.series.len(), 2 * MAX_FLOWS);
        let rate = &drawn[2].figure;
        assert!(rate.series[1].reference, "the pacing rate is far above");
        let (_, y) = crate::draw::span::spans(rate);
        assert!(y.high < 20e6, "{y:?}");
        assert!(rate.series[1].name.contains("(up to "));
        let beside = figures(&[run(5, 12), run(1, 12)]);
        assert_eq!(beside[0].figure.series.len(), 4);
        assert_eq!(beside[0].owners, [0, 0, 1, 1]);
    }

    #[test]
    fn long_series_are_thinned_and_keep_their_ends() {
        let samples: Vec<TcpSample> = (0..5_001).map(sampled).collect();
        let points = points(&samples, |sample| Some(f64::from(sample.cwnd)), 0);
        assert!((MAX_POINTS / 2..=MAX_POINTS + 1).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0].y, points[points.len() - 1].y), (10.0, 5_010.0));
    }
}

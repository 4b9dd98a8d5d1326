//! TCP over the time of a trial, from the TCP_INFO series of its senders: window, round-trip time, rates and retransmissions.

use model::median;
use model::{Axis, Direction, EndTally, Figure, FlowTally, Look, Outcome, Point, Run, Scale, Series, TcpSample, Trial};

use super::Drawn;
use super::arrange::{MOST, arranged, line_looks, one_each, panel_for_each};
use super::curve::out_of_range_named;
use super::line::{Line, single_lines};
use super::subtitle::subtitle;

/// The most points of a series, by the width of a figure.
const MAX_POINTS: usize = 400;
/// The most lines that have a plot each, with all quantities. Of more, the first quantity is drawn in small multiples by factor.
const MOST_APART: usize = 12;

/// A value of a TCP_INFO sample, with its name in the legend.
struct Quantity {
    name: &'static str,
    value: fn(&TcpSample) -> Option<f64>,
    /// Drawn thin, and only within the range of the others.
    reference: bool,
    /// Whether the values of several flows have a sum.
    adds_up: bool,
    /// Whether it is a counter, which holds its value until the next event.
    counts: bool,
}

const fn quantity(name: &'static str, value: fn(&TcpSample) -> Option<f64>) -> Quantity {
    Quantity { name, value, reference: false, adds_up: true, counts: false }
}

const fn time(name: &'static str, value: fn(&TcpSample) -> Option<f64>) -> Quantity {
    Quantity { adds_up: false, ..quantity(name, value) }
}

const WINDOW: &[Quantity] = &[
    quantity("congestion window", |sample| Some(f64::from(sample.cwnd))),
    Quantity { reference: true, ..quantity("slow-start threshold", |sample| sample.ssthresh.map(f64::from)) },
];
const ROUND_TRIP: &[Quantity] = &[
    time("smoothed", |sample| Some(sample.rtt_ns as f64).filter(|ns| *ns > 0.0)),
    time("shortest", |sample| sample.min_rtt_ns.map(|ns| ns as f64)),
];
const RATE: &[Quantity] = &[
    quantity("delivered", |sample| sample.delivery_bps.map(|bps| bps as f64)),
    Quantity { reference: true, ..quantity("pacing rate", |sample| sample.pacing_bps.map(|bps| bps as f64)) },
];
const RETRANSMITS: &[Quantity] =
    &[Quantity { counts: true, ..quantity("retransmitted segments", |sample| Some(sample.retransmits as f64)) }];

/// The figures of all runs whose senders have series. Retransmissions have a figure only if there were any.
pub(crate) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let lines = single_lines(runs, |outcome| shown(outcome).is_some_and(|trial| !senders(outcome, trial).is_empty()));
    if lines.is_empty() {
        return Vec::new();
    }
    let streams = lines.iter().flat_map(|line| &line.outcomes).any(|outcome| outcome.spec.is_stream());
    let retransmitted = |line: &Line<'_>| {
        let series = line.outcomes.iter().filter_map(|outcome| Some(senders(outcome, shown(outcome)?)));
        let flows = series.flatten().flat_map(|flows| flows.series);
        flows.filter_map(|flow| flow.tcp.last()).any(|last| last.retransmits > 0)
    };
    [
        ("tcp-window", "Congestion window over time", "window in segments", "", WINDOW),
        ("tcp-rtt", "TCP's round-trip time over time", "round-trip time", "ns", ROUND_TRIP),
        ("tcp-rate", "TCP's delivery rate over time", "rate", "bit/s", RATE),
        ("tcp-retransmits", "Retransmitted segments over time", "retransmitted segments so far", "", RETRANSMITS),
    ]
    .into_iter()
    // Round trips do not fill a window: their rate is no property of the path.
    .filter(|(id, ..)| streams || !["tcp-window", "tcp-rate"].contains(id))
    .filter(|(id, ..)| *id != "tcp-retransmits" || lines.iter().any(retransmitted))
    .filter_map(|(id, title, label, unit, quantities)| {
        let counts = quantities.iter().all(|quantity| quantity.counts);
        let y = Axis { counts, ..Axis::new(label, unit, Scale::Linear) };
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
    let many = lines.len() > MOST_APART;
    let quantities = if many { &quantities[..1] } else { quantities };
    let (mut series, mut owners, mut groups, mut several) = (Vec::new(), Vec::new(), Vec::new(), false);
    let mut combined = false;
    // Each of many lines has a plot of its own, with all its quantities.
    let apart = lines.len() > 1 && lines.len() * quantities.len() > MOST;
    let looks = line_looks(runs, lines);
    for (number, line) in lines.iter().enumerate() {
        for outcome in &line.outcomes {
            let ways = shown(outcome).map(|trial| senders(outcome, trial)).unwrap_or_default();
            for (way, flows) in ways.iter().enumerate() {
                for (at, quantity) in quantities.iter().enumerate() {
                    let dash = way * quantities.len() + at;
                    for (of, points) in flows.curves(quantity, outcome.spec.starts_after_ns(), lines.len() == 1) {
                        several |= points.iter().any(|point| point.low.is_some());
                        // Panels share the entries of a legend, whatever the number of flows in each.
                        let way =
                            [", sum of ", ", median of "].iter().find_map(|of_flows| Some(of.split_once(of_flows)?.0));
                        let of = match way {
                            Some(way) if apart => {
                                combined = true;
                                way.to_owned()
                            }
                            _ => of,
                        };
                        let alone = lines.len() == 1 || (apart && (many || quantities.len() > 1));
                        let whose = if alone { String::new() } else { format!("{}: ", line.name) };
                        let name = format!("{whose}{}{of}", quantity.name);
                        // Beside others, a line has one colour, and each of its quantities a pattern.
                        let Look { colour, dash: other } = looks[number];
                        let beside = Look { colour, dash: other * ways.len() * quantities.len() + dash };
                        let look = (lines.len() > 1 && !apart).then_some(beside);
                        let look = if apart { Some(Look { colour: dash, dash: 0 }) } else { look };
                        let reference = quantity.reference;
                        series.push(Series {
                            name,
                            points,
                            reference,
                            look,
                            steps: quantity.counts,
                            ..Series::default()
                        });
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
    let band = several.then(|| "range from the lowest to the highest flow".to_owned());
    let refs: Vec<&Line<'_>> = lines.iter().collect();
    let of_several = match quantities.first() {
        Some(first) if combined => format!("; of several flows the {}", if first.adds_up { "sum" } else { "median" }),
        _ => String::new(),
    };
    let what = format!("TCP_INFO of the sender, in the trial nearest to the median{of_several}");
    let figure = Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        subtitle: subtitle(runs, &refs, &what, band),
        x: Axis::elapsed("time since the start of the trial"),
        y,
        // In panels, entries of the legend are shared, and a value out of range has an arrow.
        series: if apart { series } else { out_of_range_named(series) },
        ..Figure::default()
    };
    let mut drawn = Drawn { figure, owners };
    if many {
        let of: Vec<&Line<'_>> = groups.iter().map(|number| &lines[*number]).collect();
        return Some(arranged(drawn, runs, &of));
    }
    if apart && quantities.len() > 1 {
        let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        panel_for_each(&mut drawn.figure, &groups, &names);
        return Some(drawn);
    }
    Some(one_each(drawn))
}

/// The trial that represents its outcome: the one with the value nearest to the median.
pub(super) fn shown(outcome: &Outcome) -> Option<&Trial> {
    let values: Vec<f64> = outcome.trials.iter().filter_map(|trial| trial.value).collect();
    let Some(median) = model::median(&values) else { return outcome.trials.last() };
    let distance = |trial: &Trial| trial.value.map_or(f64::INFINITY, |value| (value - median).abs());
    outcome.trials.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The smoothed round-trip times of a trial's senders, with what they are of.
pub(super) fn round_trips(outcome: &Outcome, trial: &Trial) -> Vec<(String, Vec<Point>)> {
    let of = |flows: &Flows<'_>| flows.curves(&ROUND_TRIP[0], outcome.spec.starts_after_ns(), false);
    senders(outcome, trial).iter().flat_map(of).collect()
}

/// The flows of a trial in one direction, where their senders have series.
struct Flows<'a> {
    /// Of payload in both directions.
    direction: Option<Direction>,
    series: Vec<&'a FlowTally>,
    /// How many carried payload, also those without a series.
    count: usize,
}

/// The flows at the end that sends payload, of both directions at each end; for round trips at the requesting end.
fn senders<'a>(outcome: &Outcome, trial: &'a Trial) -> Vec<Flows<'a>> {
    let of = |direction, end: &'a EndTally| {
        let sending = || end.flows.iter().filter(|flow| flow.bytes_sent > 0);
        // A first and a last sample alone show nothing over time.
        let series: Vec<&FlowTally> = sending().filter(|flow| flow.tcp.len() > 2).collect();
        (!series.is_empty()).then(|| Flows { direction, series, count: sending().count() })
    };
    let all = match outcome.spec.direction {
        Direction::Send => [of(None, &trial.near), None],
        Direction::Reverse => [of(None, &trial.far), None],
        Direction::Both => [of(Some(Direction::Send), &trial.near), of(Some(Direction::Reverse), &trial.far)],
    };
    all.into_iter().flatten().collect()
}

impl Flows<'_> {
    /// The curves of a quantity, each with what it is of: of one flow its own; of several their sum, and the median with the range
    /// where there is no sum or `spread` is wanted. One of many flows does not stand for them.
    fn curves(&self, quantity: &Quantity, start_ns: u64, spread: bool) -> Vec<(String, Vec<Point>)> {
        let way = self.direction.map_or(String::new(), |direction| format!(", {}", direction.way()));
        let mut curves = Vec::new();
        if let ([only], 1) = (self.series.as_slice(), self.count) {
            curves.push((way, points(&only.tcp, quantity.value, start_ns)));
        } else {
            let moments = self.moments(quantity.value);
            let count = match self.series.len() {
                all if all == self.count => format!("{all} flows"),
                some => format!("{some} of {} flows", self.count),
            };
            let at = |at_ns: u64, y| Point { x: (start_ns + at_ns) as f64, y, low: None, high: None };
            if quantity.adds_up {
                let sum = moments.iter().map(|(at_ns, values)| at(*at_ns, values.iter().sum()));
                curves.push((format!("{way}, sum of {count}"), sum.collect()));
            }
            if !quantity.adds_up || (spread && !quantity.reference) {
                let range = moments.iter().filter_map(|(at_ns, values)| {
                    let low = values.iter().copied().reduce(f64::min);
                    let high = values.iter().copied().reduce(f64::max);
                    Some(Point { low, high, ..at(*at_ns, median(values)?) })
                });
                curves.push((format!("{way}, median of {count}"), range.collect()));
            }
        }
        curves.retain(|(_, points)| !points.is_empty());
        curves
    }

    /// The values of the flows that have begun, at the times of the flow with the most samples: the last value of each. Moments at which
    /// one of them has none are left out.
    fn moments(&self, value: fn(&TcpSample) -> Option<f64>) -> Vec<(u64, Vec<f64>)> {
        let Some(longest) = self.series.iter().max_by_key(|flow| flow.tcp.len()) else { return Vec::new() };
        let at = |at_ns: u64| {
            let last = self.series.iter().filter_map(|flow| {
                let past = flow.tcp.partition_point(|sample| sample.at_ns <= at_ns);
                flow.tcp[..past].last()
            });
            Some((at_ns, last.map(value).collect::<Option<Vec<f64>>>()?))
        };
        thinned(&longest.tcp).filter_map(|sample| at(sample.at_ns)).collect()
    }
}

/// Every n-th sample, and the last.
fn thinned(samples: &[TcpSample]) -> impl Iterator<Item = &TcpSample> {
    let every = samples.len().div_ceil(MAX_POINTS).max(1);
    let last = samples.len().saturating_sub(1);
    samples.iter().enumerate().filter(move |(index, _)| index % every == 0 || *index == last).map(|(_, sample)| sample)
}

/// The points of an end that started `start_ns` after the common start of simultaneous tests.
fn points(samples: &[TcpSample], value: fn(&TcpSample) -> Option<f64>, start_ns: u64) -> Vec<Point> {
    let of = |sample: &TcpSample| {
        let x = (start_ns + sample.at_ns) as f64;
        Some(Point { x, y: value(sample)?, low: None, high: None })
    };
    thinned(samples).filter_map(of).collect()
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

    fn names(figure: &Figure) -> Vec<&str> {
        figure.series.iter().map(|series| series.name.as_str()).collect()
    }

    #[test]
    fn many_flows_are_a_sum_and_a_median_with_their_range() {
        let mut run = run(16, 12);
        for trial in &mut run.outcomes[0].trials {
            for flow in &mut trial.near.flows {
                let number = flow.flow;
                flow.tcp
                    .iter_mut()
                    .for_each(|sample| (sample.cwnd, sample.rtt_ns) = (number, 1_000 * u64::from(1 + number)));
            }
        }
        let drawn = figures(&[run.clone()]);
        let window = &drawn[0].figure;
        let whole = ["congestion window, sum of 16 flows", "congestion window, median of 16 flows"];
        assert_eq!(names(window)[..2], whole);
        assert!(window.subtitle.contains("range from the lowest to the highest flow"), "{}", window.subtitle);
        let last = |series: usize| *window.series[series].points.last().unwrap();
        assert_eq!(last(0).y, f64::from((0..16).sum::<u32>()));
        assert_eq!((last(1).y, last(1).low, last(1).high), (7.5, Some(0.0), Some(15.0)));
        assert_eq!(names(&drawn[1].figure), ["smoothed, median of 16 flows", "shortest, median of 16 flows"]);
        let rate = &drawn[2].figure;
        assert_eq!(rate.series[0].points.last().unwrap().y, 16.0 * 11e6);
        assert!(rate.series.iter().any(|series| series.reference && series.name.contains("(up to ")), "{rate:?}");
        let (_, y) = drawing::span::spans(rate);
        assert!(y.high < 320e6, "the pacing rate is far above: {y:?}");
        // Beside other lines each is a total.
        let beside = figures(&[run, self::run(1, 12)]);
        let of_rate = names(&beside[2].figure);
        assert!(of_rate[0].ends_with("delivered, sum of 16 flows") && of_rate[2].ends_with("delivered"), "{of_rate:?}");
        assert_eq!(beside[2].owners, [0, 0, 1, 1]);
    }

    #[test]
    fn a_sum_of_those_with_a_series_says_so_and_has_flows_that_began() {
        let mut run = run(3, 12);
        for trial in &mut run.outcomes[0].trials {
            trial.near.flows[1].tcp.retain(|sample| sample.at_ns >= 500_000_000);
            trial.near.flows[2].tcp.clear();
        }
        let drawn = figures(&[run]);
        let rate = &drawn[2].figure.series[0];
        assert_eq!(rate.name, "delivered, sum of 2 of 3 flows");
        let values: Vec<f64> = rate.points.iter().map(|point| point.y).collect();
        assert_eq!(values[3..7], [3e6, 4e6, 10e6, 12e6]);
    }

    #[test]
    fn both_directions_have_their_senders() {
        let mut run = run(1, 12);
        run.outcomes[0].spec.direction = Direction::Both;
        for trial in &mut run.outcomes[0].trials {
            trial.far.flows = trial.near.flows.clone();
            trial.far.flows[0].tcp.iter_mut().for_each(|sample| sample.rtt_ns = 9_000_000);
        }
        let drawn = figures(&[run]);
        let rtt = &drawn[1].figure;
        let all = ["smoothed, outbound", "shortest, outbound", "smoothed, return", "shortest, return"];
        assert_eq!(names(rtt), all);
        assert_eq!((rtt.series[0].points[5].y, rtt.series[2].points[5].y), (2e6, 9e6));
    }

    #[test]
    fn long_series_are_thinned_and_keep_their_ends() {
        let samples: Vec<TcpSample> = (0..5_001).map(sampled).collect();
        let points = points(&samples, |sample| Some(f64::from(sample.cwnd)), 0);
        assert!((MAX_POINTS / 2..=MAX_POINTS + 1).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0].y, points[points.len() - 1].y), (10.0, 5_010.0));
    }
}

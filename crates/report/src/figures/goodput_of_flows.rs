//! How several flows share the goodput over time.

use model::{Axis, Direction, Figure, Look, Outcome, Point, Run, Scale, Series, median};

use super::Drawn;
use super::arrange::{MOST, panel_for_each};
use super::flow::shown;
use super::line::{Line, single_lines};
use super::parts::{FlowPart, Part, Trials, directions};
use super::subtitle::subtitle;

/// The name of what a flow would have if all had the same.
const EQUAL: &str = "equal share";

/// The figure of all streams with several flows: each of a few flows, of many the median with the middle half and the extremes, beside
/// an equal share of the total. Each line and direction has a panel; `None` if there are none.
pub(super) fn figure(runs: &[Run]) -> Option<Drawn> {
    let lines = single_lines(runs, |outcome| outcome.spec.flows > 1 && outcome.summary.goodput_bps.is_some());
    let ways = |line: &Line<'_>| -> Vec<(Direction, Trials)> {
        let outcome = line.outcomes.first();
        let ways = outcome.map(|outcome| directions(outcome.spec.direction)).unwrap_or_default();
        ways.into_iter().filter_map(|way| Some((way, Trials::of(outcome?, way)))).collect()
    };
    let all: Vec<(&Line<'_>, Vec<(Direction, Trials)>)> = lines.iter().map(|line| (line, ways(line))).collect();
    let in_a_row = all.iter().flat_map(|(_, ways)| ways).any(|(_, trials)| trials.are_short());
    let (mut series, mut owners, mut groups, mut panels, mut used) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (line, ways) in &all {
        for (way, trials) in ways {
            let Some(outcome) = line.outcomes.first() else { continue };
            let parts = parts(outcome, trials, in_a_row);
            let own = of(&parts);
            if own.is_empty() {
                continue;
            }
            let name = match (all.len() > 1, ways.len() > 1) {
                (true, true) => format!("{}, {}", line.name, way.way()),
                (false, true) => way.way().to_owned(),
                _ => line.name.clone(),
            };
            owners.extend(own.iter().map(|_| line.run));
            groups.extend(own.iter().map(|_| panels.len()));
            series.extend(own);
            panels.push((name, total(&parts)));
            used.push(*line);
        }
    }
    if series.is_empty() {
        return None;
    }
    let some_sent = all.iter().flat_map(|(_, ways)| ways).any(|(_, trials)| trials.is_sent);
    let which = if in_a_row { "the trials one after the other" } else { "in the trial nearest to the median" };
    let what = if some_sent { "; where the receiver has no series, what was sent" } else { "" };
    let note = format!("over about a second each, {which}{what}");
    let band = series.iter().any(|one| one.points.iter().any(|point| point.low.is_some()));
    let time = if in_a_row { "measured time of all trials" } else { "time since the start of the trial" };
    let figure = Figure {
        id: "goodput-flows".to_owned(),
        title: "Goodput of the flows over time".to_owned(),
        subtitle: subtitle(runs, &used, &note, band.then(|| "band with the middle half of the flows".to_owned())),
        x: Axis::elapsed(time),
        y: Axis::new("goodput of a flow", "bit/s", Scale::Linear),
        series,
        ..Figure::default()
    };
    let mut drawn = Drawn { figure, owners };
    if panels.len() > 1 {
        let titles: Vec<String> = panels.iter().map(|(name, total)| format!("{name}: {total}")).collect();
        panel_for_each(&mut drawn.figure, &groups, &titles);
    } else if let Some(share) = drawn.figure.series.last_mut() {
        share.name = format!("{EQUAL} of {}", panels[0].1);
    }
    Some(drawn)
}

/// The parts to show, with the start of each one's trial.
fn parts<'a>(outcome: &Outcome, trials: &'a Trials, in_a_row: bool) -> Vec<(u64, &'a Part)> {
    if in_a_row {
        return trials.in_a_row().collect();
    }
    let at = shown(outcome).and_then(|trial| outcome.trials.iter().position(|other| std::ptr::eq(other, trial)));
    let start_ns = outcome.spec.starts_after_ns();
    let parts = at.and_then(|at| trials.parts.get(at)).into_iter().flatten();
    parts.map(|part| (start_ns, part)).collect()
}

/// The lines of one panel.
fn of(parts: &[(u64, &Part)]) -> Vec<Series> {
    let count = parts.iter().map(|(_, part)| part.flows.len()).max().unwrap_or(0);
    if count < 2 || parts.len() < 2 {
        return Vec::new();
    }
    let rate = |part: &Part, flow: &FlowPart| flow.bytes as f64 * 8e9 / part.length_ns() as f64;
    let rates = |part: &Part| -> Vec<f64> {
        let mut rates: Vec<f64> = part.flows.iter().map(|flow| rate(part, flow)).collect();
        rates.sort_by(f64::total_cmp);
        rates
    };
    let curve = |value: &dyn Fn(&Part) -> Option<Point>| -> Vec<Point> {
        let at = |(start_ns, part): &(u64, &Part)| Some(Point { x: part.middle(*start_ns), ..value(part)? });
        parts.iter().filter_map(at).collect()
    };
    let line = |name: String, colour: usize, points: Vec<Point>| Series {
        name,
        points,
        look: Some(Look { colour, dash: 0 }),
        ..Series::default()
    };
    let plain = |y: f64| Point { y, ..Point::default() };
    let mut series = Vec::new();
    if count <= MOST {
        let mut numbers: Vec<u32> = parts.iter().flat_map(|(_, part)| &part.flows).map(|flow| flow.flow).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for (colour, number) in numbers.into_iter().enumerate() {
            let own =
                |part: &Part| part.flows.iter().find(|flow| flow.flow == number).map(|flow| plain(rate(part, flow)));
            series.push(line(format!("flow {number}"), colour, curve(&own)));
        }
    } else {
        let half = |part: &Part| {
            let rates = rates(part);
            let (low, high) = (quantile(&rates, 0.25), quantile(&rates, 0.75));
            Some(Point { low, high, ..plain(median(&rates)?) })
        };
        series.push(line(format!("median of {count} flows"), 0, curve(&half)));
        series.push(line("fastest flow".to_owned(), 2, curve(&|part| rates(part).last().copied().map(plain))));
        series.push(line("slowest flow".to_owned(), 1, curve(&|part| rates(part).first().copied().map(plain))));
    }
    let share = |part: &Part| Some(plain(rates(part).iter().sum::<f64>() / part.flows.len() as f64));
    series.push(Series { reference: true, ..line(EQUAL.to_owned(), 6, curve(&share)) });
    series
}

/// The goodput of all flows over all parts.
fn total(parts: &[(u64, &Part)]) -> String {
    let (bytes, ns) = parts.iter().fold((0, 0), |(bytes, ns), (_, part)| {
        (bytes + part.flows.iter().map(|flow| flow.bytes).sum::<u64>(), ns + part.length_ns())
    });
    model::units::bits_per_second(bytes as f64 * 8e9 / ns as f64)
}

/// The value below which this share of the ascending values is, interpolated.
fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    let at = share * ascending.len().checked_sub(1)? as f64;
    let (low, high) = (ascending.get(at.floor() as usize)?, ascending.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

#[cfg(test)]
mod tests {
    use model::{FlowCounts, FlowTally, Interval};

    use super::*;
    use crate::sample;

    const SECOND: u64 = 1_000_000_000;

    /// Flow n moves n + 1 MB in each second.
    fn run(flows: u32, seconds: u64) -> Run {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.spec.flows = flows;
        for trial in &mut outcome.trials {
            trial.far.intervals = vec![Interval { end_ns: seconds * SECOND, ..Interval::default() }];
            let flow = |flow: u32| {
                let bytes = |second: u64| second * u64::from(flow + 1) * 1_000_000;
                let reading = |second: u64| FlowCounts {
                    at_ns: second * SECOND,
                    bytes_sent: 0,
                    bytes_received: bytes(second),
                    datagrams: None,
                };
                let readings = (1..seconds).map(reading).collect();
                FlowTally { flow, bytes_received: bytes(seconds), readings, ..FlowTally::default() }
            };
            trial.far.flows = (0..flows).map(flow).collect();
        }
        run
    }

    fn lines(run: &Run) -> Vec<(String, Vec<f64>)> {
        let figure = figure(std::slice::from_ref(run)).unwrap().figure;
        let of = |series: &Series| (series.name.clone(), series.points.iter().map(|point| point.y / 8e6).collect());
        figure.series.iter().map(of).collect()
    }

    #[test]
    fn a_few_flows_have_a_line_each_beside_an_equal_share() {
        let lines = lines(&run(3, 4));
        let expected = [("flow 0", 1.0), ("flow 1", 2.0), ("flow 2", 3.0), ("equal share of 48.0 Mbit/s", 2.0)];
        assert_eq!(lines, expected.map(|(name, rate)| (name.to_owned(), vec![rate; 4])));
    }

    #[test]
    fn many_flows_are_their_median_the_middle_half_and_the_extremes() {
        let run = run(16, 4);
        let lines = lines(&run);
        let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..3], ["median of 16 flows", "fastest flow", "slowest flow"]);
        assert_eq!([0, 1, 2].map(|at: usize| lines[at].1[0]), [8.5, 16.0, 1.0]);
        let point = figure(&[run]).unwrap().figure.series[0].points[0];
        assert_eq!((point.low, point.high), (Some(4.75 * 8e6), Some(12.25 * 8e6)));
    }

    #[test]
    fn short_trials_follow_one_another_and_one_flow_has_no_figure() {
        let run = run(2, 1);
        assert_eq!(lines(&run)[0].1.len(), run.outcomes[0].trials.len());
        assert!(figure(&[sample::stream(), sample::rr()]).is_none());
    }

    #[test]
    fn runs_beside_each_other_have_a_panel_each() {
        let figure = figure(&[run(3, 4), run(2, 4)]).unwrap().figure;
        assert!(figure.panels.len() == 2 && figure.panels[0].title.ends_with(": 48.0 Mbit/s"), "{:?}", figure.panels);
        assert_eq!((figure.series.len(), figure.series[3].name.as_str()), (7, "equal share"));
        assert_eq!(figure.series[4].panel, Some(1));
    }
}

//! The figures of a set of runs, as data.
//!
//! Runs of the same kind share a figure, one series each; a run with several kinds of outcomes is in several figures.

mod anatomy;
mod arrange;
mod close_range;
mod counters;
mod curve;
mod curve_points;
mod datagrams;
mod flow;
mod goodput;
mod goodput_of_flows;
mod history;
mod hosts;
mod latency;
mod line;
mod marks;
mod names;
mod parts;
mod plan;
mod round_trips;
mod sequence;
mod subtitle;
mod topology;
mod trials;
mod under_load;

use model::{Figure, Point, Run};

pub(crate) use curve_points::{Measure, curve_points};
pub(crate) use drawing::TAIL_UNIT;
pub use history::history_figures;
pub use hosts::host_figures;
pub(crate) use line::curve_lines;
pub(crate) use names::direction;
#[cfg(feature = "xlsx")]
pub(crate) use plan::Effects;
pub use topology::{map_figure, topology};

/// The figures of `runs`, the most useful first.
///
/// Block-size curves give `throughput` (bit/s over bytes), `saturation` (ns over bytes) and `signature` (bit/s over ns);
/// if some runs are round trips and others streams, the ids of the streams' figures end in `-stream`. Streams and transfers give
/// `goodput` (bit/s over ns since the trial's start), with several flows `goodput-flows` and, if TCP or a probe measured round trips
/// beside them, `under-load` (the same above ns), datagrams `loss` (%) and `jitter` (ns), request/response `latency` (ns over
/// [`TAIL_UNIT`]), `rtt` (ns over ns) and, if their parts were stamped, `anatomy` (ns over bytes, stacked). Several trials give
/// `trials`, their values by line. Plans give `plan-effects`, values, CPU use and interrupts over their factors, and values over the
/// day if they have a schedule; their cells over time are small multiples by factor ([`Run`]s of chosen cells, [`crate::chosen`], have
/// others). TCP senders give `tcp-rtt` (ns), those of streams also `tcp-window` (segments) and `tcp-rate` (bit/s), and if segments were retransmitted `tcp-retransmits`, all over ns since the trial's start.
/// Captures give `time-sequence` (bytes over ns). Outcomes without a value and figures without a point are left out.
#[must_use]
pub fn figures(runs: &[Run]) -> Vec<Figure> {
    drawn(runs).into_iter().map(|drawn| drawn.figure).collect()
}

/// A figure, and for each of its series the index of its run.
pub(crate) struct Drawn {
    pub(crate) figure: Figure,
    pub(crate) owners: Vec<usize>,
}

pub(crate) fn drawn(runs: &[Run]) -> Vec<Drawn> {
    let mut all = curve::figures(runs);
    all.extend(plan::results(runs));
    all.extend(goodput::figure(runs));
    all.extend(under_load::figure(runs));
    all.extend(goodput_of_flows::figure(runs));
    all.extend(datagrams::figures(runs));
    all.extend(latency::figure(runs));
    all.extend(round_trips::figure(runs));
    all.extend(trials::figures(runs));
    all.extend(anatomy::figures(runs));
    all.extend(flow::figures(runs));
    all.extend(plan::costs(runs));
    all.extend(sequence::figure(runs));
    all
}

/// A value with its interval, in one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranged {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Ranged {
    fn over(self, x: f64) -> Point {
        Point { x, y: self.value, low: self.low, high: self.high }
    }
}

#[cfg(test)]
mod tests {
    use model::Direction;

    use super::*;
    use crate::sample;

    fn ids(runs: &[Run]) -> Vec<String> {
        figures(runs).into_iter().map(|figure| figure.id).collect()
    }

    fn figure(runs: &[Run], id: &str) -> Figure {
        figures(runs).into_iter().find(|figure| figure.id == id).unwrap()
    }

    #[test]
    fn runs_are_grouped_by_kind() {
        let curves = ["throughput", "saturation", "signature"];
        assert_eq!(ids(&[sample::curve()]), curves);
        assert_eq!(ids(&[sample::stream_curve()]), curves);
        let both = ["goodput", "latency", "trials", "trials-1-per-s"];
        assert_eq!(ids(&[sample::stream(), sample::rr()]), both);
        let all = [curves.as_slice(), &both].concat();
        assert_eq!(ids(&[sample::rr(), sample::curve(), sample::stream()]), all);
        assert_eq!(ids(&[sample::empty()]), Vec::<String>::new());
        let mixed = ids(&[sample::curve(), sample::stream_curve()]);
        assert_eq!(mixed[..3], curves);
        assert_eq!(mixed[3..], ["throughput-stream", "saturation-stream", "signature-stream"]);
    }

    #[test]
    fn a_curve_shows_netpipes_rate_with_the_inverted_interval_of_the_round_trip() {
        let run = sample::curve();
        let (outcome, estimate) = (&run.outcomes[5], run.outcomes[5].estimate.as_ref().unwrap());
        let block = outcome.spec.block as f64;
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() / b - 1.0).abs() < 1e-12, "{a:?} {b}");
        let rate = figure(std::slice::from_ref(&run), "throughput").series[0].points[5];
        assert_eq!(rate.x, block);
        close(Some(rate.y), block * 8e9 / (estimate.value / 2.0));
        close(rate.low, block * 8e9 / (estimate.high.unwrap() / 2.0));
        close(rate.high, block * 8e9 / (estimate.low.unwrap() / 2.0));
        let time = figure(std::slice::from_ref(&run), "saturation").series[0].points[5];
        close(Some(time.y), estimate.value / 2.0);
        close(time.low, estimate.low.unwrap() / 2.0);
        let signature = figure(&[run], "signature").series[0].points[5];
        assert_eq!((signature.x, signature.y, signature.low), (time.y, rate.y, rate.low));
    }

    #[test]
    fn values_that_are_no_rates_are_left_out() {
        let broken = sample::broken();
        let outcomes: Vec<&model::Outcome> = broken.outcomes.iter().collect();
        let shown = curve_points(&outcomes, Measure::Netpipe).len();
        let usable = |outcome: &&model::Outcome| {
            let bps = outcome.summary.netpipe_bps.unwrap_or(0.0);
            bps > 0.0 && (outcome.spec.block as f64 * 8.0 / bps).is_finite() && bps.is_finite()
        };
        let usable = broken.outcomes.iter().filter(usable).count();
        assert!(shown <= usable && shown >= 84, "{shown} of {usable}");
    }

    #[test]
    fn goodput_is_that_of_the_receiving_end() {
        let send = sample::stream();
        let forward = figure(std::slice::from_ref(&send), "goodput");
        assert_eq!(forward.series.len(), 1);
        // 10 full intervals and one of 30 ms, which is long enough to be kept.
        assert_eq!(forward.series[0].points.len(), 11);
        let mut reverse = send.clone();
        for outcome in &mut reverse.outcomes {
            outcome.spec.direction = Direction::Reverse;
            for trial in &mut outcome.trials {
                std::mem::swap(&mut trial.near, &mut trial.far);
                trial.far.intervals =
                    vec![model::Interval { end_ns: 1_000_000_000, bytes_received: 1, ..Default::default() }];
            }
        }
        assert_eq!(figure(&[reverse], "goodput").series[0].points, forward.series[0].points);
        let both = figure(&[sample::both()], "goodput");
        let names: Vec<&str> = both.series.iter().map(|series| series.name.rsplit_once(", ").unwrap().1).collect();
        assert_eq!(names, ["outbound", "return"]);
        assert!(both.series[0].points[5].y > 6e9 && both.series[1].points[5].y < 5e9);
    }

    #[test]
    fn goodput_is_bytes_over_time_within_the_trials_range() {
        let run = sample::stream();
        let point = figure(std::slice::from_ref(&run), "goodput").series[0].points[3];
        let rates: Vec<f64> = run.outcomes[0]
            .trials
            .iter()
            .map(|trial| trial.far.intervals[3].bytes_received as f64 * 8.0 / 0.1)
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((point.y / mean - 1.0).abs() < 1e-9 && (point.x - 0.35e9).abs() < 1.0, "{point:?}");
        assert_eq!(point.low, rates.iter().copied().reduce(f64::min));
        assert_eq!(point.high, rates.iter().copied().reduce(f64::max));
    }

    #[test]
    fn latency_runs_from_the_shortest_to_the_longest_round_trip() {
        let run = sample::rr();
        let histogram = run.outcomes[0].histogram.clone().unwrap();
        let figure = figure(&[run], "latency");
        let points = &figure.series[0].points;
        assert!(points.len() < 500 && points.windows(2).all(|pair| pair[0].x < pair[1].x && pair[0].y <= pair[1].y));
        let (first, last) = (points[0], points[points.len() - 1]);
        // The shortest is exact to its bucket, at most 0.1 % wide.
        assert!((first.y / histogram.min().unwrap() as f64 - 1.0).abs() < 1e-3, "{first:?}");
        assert_eq!(last.y, histogram.max().unwrap() as f64);
        assert_eq!(last.x, 2.0 * histogram.count() as f64);
        let median = points.iter().min_by(|a, b| (a.x - 2.0).abs().total_cmp(&(b.x - 2.0).abs())).unwrap();
        assert!((median.y / histogram.quantile(0.5).unwrap() as f64 - 1.0).abs() < 0.02);
        assert_eq!(figure.marks.len(), 2);
    }

    #[test]
    fn series_have_unique_names_and_ceilings_are_references() {
        let twice = [sample::curve(), sample::curve(), sample::curve()];
        let mut names: Vec<String> =
            figure(&twice, "throughput").series.into_iter().map(|series| series.name).collect();
        assert_eq!(names[0], "beta tcp pingpong, 2026-11-21 20:37:58 #1");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 3);
        let overlaid = sample::overlaid();
        let references = |runs: &[Run]| figure(runs, "throughput").series.iter().filter(|s| s.reference).count();
        assert_eq!(references(&overlaid), 1);
        assert_eq!(references(&overlaid[4..]), 0, "memcpy alone is what was measured");
        let named = figure(&overlaid, "throughput");
        assert_eq!(named.series[1].name, "tcp, 1500 byte MTU");
    }

    #[test]
    fn cells_of_one_run_have_distinct_names() {
        let mut run = sample::stream();
        let mut other = run.outcomes[0].clone();
        other.cell = 1;
        other.spec.flows = 4;
        run.outcomes.push(other);
        let names: Vec<String> = figure(&[run], "goodput").series.into_iter().map(|series| series.name).collect();
        assert_eq!(names, ["1 flow", "4 flows"]);
    }

    #[test]
    fn the_sides_of_a_comparison_are_a_and_b() {
        let names = |runs: &[Run]| -> Vec<String> {
            figure(runs, "goodput").series.into_iter().map(|series| series.name).collect()
        };
        assert_eq!(names(&[sample::pair()]), ["A --cc cubic", "B --cc bbr"]);
        let beside = names(&[sample::pair(), sample::stream()]);
        assert_eq!(beside[..2], ["A --cc cubic", "B --cc bbr"]);
    }
}

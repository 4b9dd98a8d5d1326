//! Host activity over the time of a pass: a figure for each family of counters.

use model::source::{CPU, DEV, QDISC, SNMP, SOCKSTAT, SOFTNET, STAT, column};
use model::{Axis, EndPass, Figure, Outcome, Pass, Point, Run, Scale, Series, SeriesLine};

use super::counters::in_words;
use super::names::levels;
use crate::labels;

/// The most lines of one end in a figure, those with the largest sums, so that colours are not repeated.
const MAX_LINES: usize = 3;

/// A kind of figure.
struct Family {
    id: &'static str,
    title: &'static str,
    label: &'static str,
    unit: &'static str,
    /// The factor from a value to that unit.
    factor: f64,
    /// Selects the lines that it shows.
    shows: fn(&str) -> bool,
    /// Whether lines that are always 0 are left out.
    without_zeros: bool,
}

const FAMILIES: [Family; 5] = [
    Family {
        id: "host-cpu",
        title: "CPU use over time",
        label: "share of a core's time",
        unit: "%",
        factor: 100.0,
        shows: |name| CPU.owns(name),
        without_zeros: true,
    },
    Family {
        id: "host-network",
        title: "Interfaces over time",
        label: "traffic of the interface",
        unit: "bit/s",
        factor: 8.0,
        shows: |name| matches!(DEV.device(name), Some((_, column::RX_BYTES | column::TX_BYTES))),
        without_zeros: true,
    },
    Family {
        id: "host-events",
        title: "Context switches and interrupts over time",
        label: "events",
        unit: "1/s",
        factor: 1.0,
        shows: |name| STAT.owns(name),
        without_zeros: false,
    },
    Family {
        id: "host-losses",
        title: "Drops and retransmissions over time",
        label: "drops and retransmitted segments",
        unit: "1/s",
        factor: 1.0,
        shows: |name| {
            SOFTNET.owns(name)
                || SNMP.owns(name)
                || matches!(DEV.device(name), Some((_, column::RX_DROPPED | column::TX_DROPPED)))
                || matches!(QDISC.device(name), Some((_, column::DROPS)))
        },
        without_zeros: true,
    },
    Family {
        id: "host-buffers",
        title: "Buffer occupancy over time",
        label: "socket memory and queue backlog",
        unit: "B",
        factor: 1.0,
        shows: |name| SOCKSTAT.owns(name) || matches!(QDISC.device(name), Some((_, column::BACKLOG))),
        without_zeros: true,
    },
];

/// The figures of a run's first pass with a series; empty if there is none.
#[must_use]
pub fn host_figures(run: &Run) -> Vec<Figure> {
    let with_series = |pass: &&Pass| [&pass.near, &pass.far].into_iter().any(|end| series(end).is_some());
    let Some(pass) = run.passes.iter().find(with_series) else { return Vec::new() };
    FAMILIES.iter().filter_map(|family| figure(family, run, pass)).collect()
}

fn series(end: &EndPass) -> Option<&model::HostSeries> {
    end.observed.as_ref()?.series.as_ref()
}

fn figure(family: &Family, run: &Run, pass: &Pass) -> Option<Figure> {
    // Ends that share a host have the same counters.
    let shared = crate::sections::host_activity::hosts(run).iter().any(|host| host.name == "both ends");
    let ends = [("near ", &pass.near), ("far ", &pass.far)];
    let ends = ends.into_iter().take(if shared { 1 } else { 2 });
    let series: Vec<Series> = ends.flat_map(|(end, of)| lines(family, if shared { "" } else { end }, of)).collect();
    if series.is_empty() {
        return None;
    }
    Some(Figure {
        id: family.id.to_owned(),
        title: family.title.to_owned(),
        subtitle: format!("{} of {}, {}", of_pass(run, pass), labels::title(run), labels::hosts(run)),
        x: Axis::elapsed("time since the start of the pass"),
        y: Axis::new(family.label, family.unit, Scale::Linear),
        series,
        ..Figure::default()
    })
}

/// A pass by its number from 1, and in a plan by the levels of its cell, such as the pair of hosts.
fn of_pass(run: &Run, pass: &Pass) -> String {
    let is_of = |outcome: &&Outcome| outcome.trials.iter().any(|trial| trial.pass == pass.index);
    let levels = run.outcomes.iter().find(is_of).map(|outcome| levels(run, outcome)).unwrap_or_default();
    let levels: String = levels.iter().map(|(factor, level)| format!(", {factor} {level}")).collect();
    format!("pass {}{}", pass.index + 1, labels::plain(&levels))
}

fn lines(family: &Family, end: &str, of: &EndPass) -> Vec<Series> {
    let Some(series) = series(of) else { return Vec::new() };
    let sum = |line: &SeriesLine| line.values.iter().flatten().sum::<f64>();
    let mut shown: Vec<&SeriesLine> = series
        .lines
        .iter()
        .filter(|line| (family.shows)(&line.name) && (!family.without_zeros || sum(line) > 0.0))
        .collect();
    shown.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    let shown = shown.into_iter().take(MAX_LINES).map(|line| {
        let values = line.values.iter().zip(&series.at_ns);
        let points = values.filter_map(|(value, at)| {
            Some(Point { x: *at as f64, y: (*value)? * family.factor, low: None, high: None })
        });
        Series { name: format!("{end}{}", in_words(&line.name)), points: points.collect(), ..Series::default() }
    });
    shown.filter(|series| !series.points.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_family_has_a_figure_of_its_lines() {
        let figures = host_figures(&sample::observed());
        let ids: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["host-cpu", "host-network", "host-events", "host-losses"]);
        let names: Vec<&str> = figures[0].series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["near core 1", "near core 0", "near core 1, softirq", "far core 0"]);
        assert_eq!(figures[0].series[0].points[1].y, 95.0);
        // 125 MB/s is 1 Gbit/s; the failed reading has no point.
        let network = &figures[1].series[0];
        assert_eq!((network.points.len(), network.points[0].y), (2, 1e9));
        assert!(host_figures(&sample::stream()).is_empty());
    }

    #[test]
    fn a_pass_of_a_plan_is_named_by_its_cell() {
        let mut run = sample::between_hosts();
        run.passes = sample::observed().passes;
        let trial = &mut run.outcomes[1].trials[0];
        trial.pass = 0;
        run.outcomes[0].trials.clear();
        let subtitle = host_figures(&run)[0].subtitle.clone();
        assert!(subtitle.starts_with("pass 1, flows 1, from a, to c of "), "{subtitle}");
        assert!(host_figures(&sample::observed())[0].subtitle.starts_with("pass 1 of "));
    }

    #[test]
    fn a_figure_of_the_hosts_can_be_selected_by_its_id() {
        let runs = [sample::observed()];
        let view = crate::View { figure: Some("host-cpu"), ..crate::View::new(&runs) };
        assert_eq!(view.figures("svg").unwrap()[0].id, "host-cpu");
        let wrong = crate::View { figure: Some("host-tea"), ..view };
        assert!(wrong.figures("svg").unwrap_err().to_string().contains("host-losses"));
    }
}

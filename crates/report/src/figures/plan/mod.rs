//! Figures of a plan: values, CPU use and interrupts over the levels of a factor, values between hosts, and values over time.

mod axis;
mod effects;
mod standing;
mod traffic;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use analysis::plan::{FactorLine, factor_lines};
use model::{Axis, Figure, Point, Run, RunKind, Scale, Series};

use super::Drawn;
use super::arrange::{END, OwnLevels, Palette, by_levels};
use crate::labels;
use axis::Levels;
#[cfg(feature = "xlsx")]
pub(crate) use effects::Effects;

/// Nanoseconds of an hour.
const HOUR: u64 = 3_600_000_000_000;

/// The figures of the results of all plans among the runs: effects, values over factors and hosts, and over the day.
pub(super) fn results(runs: &[Run]) -> Vec<Drawn> {
    of_plans(runs, |run| {
        let mut of = traffic::figures(run);
        of.extend(effects::figure(run));
        of.extend(values::figures(run));
        of.extend(over_time(run));
        of
    })
}

/// The figures of what the hosts spent in all plans among the runs. In a mesh every pair would be a line over the patterns.
pub(super) fn costs(runs: &[Run]) -> Vec<Drawn> {
    of_plans(runs, |run| if run.header.kind == RunKind::Mesh { Vec::new() } else { line_figures(run) })
}

/// The figures of each plan, with its number as owner and its id in theirs if there are several.
fn of_plans(runs: &[Run], figures: fn(&Run) -> Vec<Drawn>) -> Vec<Drawn> {
    let plans = || runs.iter().enumerate().filter(|(_, run)| run.header.plan.is_some());
    let mut drawn: Vec<Drawn> = Vec::new();
    for (owner, run) in plans() {
        let suffix = if plans().count() > 1 { format!("-{}", run.header.id) } else { String::new() };
        let of = figures(run);
        drawn.extend(of.into_iter().map(|Drawn { figure, .. }| Drawn {
            // A matrix has no series, but an owner.
            owners: vec![owner; figure.series.len().max(1)],
            figure: Figure { id: format!("{}{suffix}", figure.id), ..figure },
        }));
    }
    drawn
}

/// A name as a part of a figure's id.
fn file_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

fn subtitle(run: &Run, note: &str) -> String {
    let plan = run.header.plan.iter();
    let ends: BTreeSet<&String> = plan.flat_map(|plan| plan.from.iter().chain(&plan.to)).collect();
    // The header has the first pair only.
    let hosts = if ends.len() > 2 { format!("{} hosts", ends.len()) } else { labels::hosts(run) };
    format!("{hosts}, {}; {note}", labels::begun(run))
}

/// CPU use and interrupts, one figure for each factor.
fn line_figures(run: &Run) -> Vec<Drawn> {
    let lines = factor_lines(&run.header, &run.outcomes, &run.passes);
    let mut figures: Vec<Drawn> = Vec::new();
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for line in &lines {
        if kinds.contains(&(line.factor.as_str(), line.unit)) {
            continue;
        }
        kinds.push((&line.factor, line.unit));
        let own: Vec<&FactorLine> =
            lines.iter().filter(|other| (&other.factor, other.unit) == (&line.factor, line.unit)).collect();
        let factor = run.header.plan.iter().flat_map(|plan| &plan.factors).find(|factor| factor.name == line.factor);
        let names = factor.map(|factor| factor.levels.as_slice()).unwrap_or_default();
        let levels_on_axis = Levels::new(&line.factor, factor, names);
        let (id, what, label) = if line.unit == "cores" {
            ("cpu", "CPU use", "busy cores")
        } else {
            ("interrupts", "Interrupts", "interrupts")
        };
        let series = own.iter().map(|line| {
            let point = |(level, value): &(String, f64)| {
                Some(Point { x: *levels_on_axis.positions.get(level)?, y: *value, ..Point::default() })
            };
            let mut points: Vec<Point> = line.points.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series { name: format!("{} {END}", line.end), points, ..Series::default() }
        });
        let levels: Vec<OwnLevels> = own
            .iter()
            .map(|line| line.held.iter().cloned().chain([(END.to_owned(), line.end.to_owned())]).collect())
            .collect();
        let figure = Figure {
            id: format!("plan-{id}-{}", file_name(&line.factor)),
            title: format!("{what} over {}", line.factor),
            subtitle: subtitle(run, "means of the passes, set-up and drain included"),
            series: series.collect(),
            x: levels_on_axis.axis,
            y: Axis::new(label, if line.unit == "cores" { "" } else { "1/s" }, Scale::Linear),
            ..Figure::default()
        };
        figures.push(by_levels(Drawn { figure, owners: Vec::new() }, &levels, &Palette::of(run)));
    }
    figures
}

/// Every trial of a plan with a schedule over its time; a schedule shorter than an hour is drawn over the time since its start. One
/// figure for each unit.
fn over_time(run: &Run) -> Vec<Drawn> {
    let Some(schedule) = run.header.plan.as_ref().and_then(|plan| plan.schedule) else { return Vec::new() };
    let short = schedule.for_ns < HOUR;
    let origin = if short { run.header.started_unix_ns } else { 0 };
    let times: BTreeMap<u32, u64> =
        run.passes.iter().filter_map(|pass| Some((pass.index, pass.started_unix_ns?))).collect();
    let mut by_unit: BTreeMap<&str, Vec<(OwnLevels, Series)>> = BTreeMap::new();
    for outcome in &run.outcomes {
        let Some(estimate) = &outcome.estimate else { continue };
        let cell = model::Cell::find(&run.header.cells, outcome.cell);
        let levels: OwnLevels =
            cell.iter().flat_map(|cell| &cell.levels).map(|(name, level)| (name.clone(), level.clone())).collect();
        let point = |trial: &model::Trial| {
            let at = times.get(&trial.pass)?.checked_sub(origin)?;
            Some(Point { x: at as f64, y: trial.value?, ..Point::default() })
        };
        let points: Vec<Point> = outcome.trials.iter().filter_map(point).collect();
        if !points.is_empty() {
            let series = Series { name: labels::title(run), points, ..Series::default() };
            by_unit.entry(&estimate.unit).or_default().push((levels, series));
        }
    }
    let figure = |(unit, own): (&str, Vec<(OwnLevels, Series)>)| {
        let (levels, series): (Vec<OwnLevels>, Vec<Series>) = own.into_iter().unzip();
        let label = match unit {
            "bit/s" => "goodput",
            "1/s" => "transactions per second",
            _ => "round trip",
        };
        let figure = Figure {
            id: format!("plan-day-{}", unit.replace('/', "-per-")),
            title: "Every trial over time".to_owned(),
            subtitle: subtitle(run, "every trial"),
            x: if short { Axis::elapsed("time since the start") } else { Axis::new("time", "", Scale::Date) },
            y: Axis::new(label, unit, Scale::Linear),
            series,
            ..Figure::default()
        };
        by_levels(Drawn { figure, owners: Vec::new() }, &levels, &Palette::of(run))
    };
    by_unit.into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn trials_are_at_their_times() {
        let mut run = sample::planned();
        let start = run.header.started_unix_ns;
        for pass in &mut run.passes {
            pass.started_unix_ns = Some(start + 30 * HOUR);
        }
        if let Some(plan) = &mut run.header.plan {
            plan.schedule = Some(model::Every { every_ns: 1, for_ns: HOUR });
        }
        let figures = over_time(&run);
        let figure = &figures[0].figure;
        assert_eq!((figures.len(), figure.series.len(), figure.x.scale), (1, 4, Scale::Date));
        assert!(figure.series[0].points.iter().all(|point| point.x == (start + 30 * HOUR) as f64));
        assert_eq!(figure.series[3].name, "block 128KiB, sndbuf 256KiB");
        // A schedule of minutes is drawn from its start.
        run.passes.iter_mut().for_each(|pass| pass.started_unix_ns = Some(start + 4_000_000_000));
        if let Some(plan) = &mut run.header.plan {
            plan.schedule = Some(model::Every { every_ns: 1, for_ns: 60_000_000_000 });
        }
        let figure = &over_time(&run)[0].figure;
        assert!(figure.x.unit == "ns" && figure.series[0].points.iter().all(|point| point.x == 4e9));
    }
}

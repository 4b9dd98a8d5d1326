//! Figures of a plan: values, CPU use and interrupts over the levels of a factor, and values over the time of day.

use std::collections::BTreeMap;

use analysis::plan::{CellMean, FactorLine, PlanTable, factor_lines, tables};
use model::{Axis, ByteSize, Figure, Point, Run, Scale, Series};

use super::Drawn;
use crate::labels;

/// Nanoseconds of an hour and of a day.
const HOUR: f64 = 3.6e12;
const DAY_NS: u64 = 86_400_000_000_000;

/// The figures of all plans among the runs.
pub(crate) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let plans = || runs.iter().enumerate().filter(|(_, run)| run.header.plan.is_some());
    let mut drawn: Vec<Drawn> = Vec::new();
    for (owner, run) in plans() {
        let suffix = if plans().count() > 1 { format!("-{}", run.header.id) } else { String::new() };
        let mut figures: Vec<Figure> = table_figures(run);
        figures.extend(line_figures(run));
        figures.extend(over_the_day(run));
        drawn.extend(figures.into_iter().map(|figure| Drawn {
            owners: vec![owner; figure.series.len()],
            figure: Figure { id: format!("{}{suffix}", figure.id), ..figure },
        }));
    }
    drawn
}

/// The positions of a factor's levels on an axis.
struct Levels {
    axis: Axis,
    positions: BTreeMap<String, f64>,
}

impl Levels {
    /// Sizes and numbers are at their value; names at their number in the plan.
    fn new(factor: &str, levels: &[String]) -> Self {
        let sizes: Option<Vec<f64>> =
            levels.iter().map(|level| Some(level.parse::<ByteSize>().ok()?.0 as f64)).collect();
        let bytes = levels.iter().any(|level| level.ends_with('B'));
        match sizes.filter(|sizes| sizes.iter().all(|size| *size > 0.0)) {
            Some(sizes) => Self {
                axis: Axis {
                    label: factor.to_owned(),
                    unit: if bytes { "B" } else { "" }.to_owned(),
                    scale: if bytes { Scale::Log } else { Scale::Linear },
                },
                positions: levels.iter().cloned().zip(sizes).collect(),
            },
            None => {
                let numbered: Vec<String> =
                    levels.iter().enumerate().map(|(at, level)| format!("{}: {level}", at + 1)).collect();
                Self {
                    axis: Axis {
                        label: format!("{factor} ({})", numbered.join(", ")),
                        unit: String::new(),
                        scale: Scale::Linear,
                    },
                    positions: levels.iter().cloned().zip((1..).map(f64::from)).collect(),
                }
            }
        }
    }
}

fn subtitle(run: &Run, note: &str) -> String {
    format!("{}, {}; {note}", labels::hosts(run), labels::begun(run))
}

/// Each table as lines over its rows, one line for each column.
fn table_figures(run: &Run) -> Vec<Figure> {
    let mut figures = Vec::new();
    let hosts = |table: &&PlanTable| ![model::Factor::FROM, model::Factor::TO].contains(&table.row_factor.as_str());
    let all = tables(&run.header, &run.outcomes);
    let mut measures: Vec<&str> = Vec::new();
    for table in all.iter().filter(hosts) {
        if measures.contains(&table.measure) {
            continue;
        }
        measures.push(table.measure);
        let same: Vec<&PlanTable> = all.iter().filter(hosts).filter(|other| other.measure == table.measure).collect();
        let mut levels: Vec<String> = Vec::new();
        for level in same.iter().flat_map(|table| &table.rows) {
            if !levels.contains(level) {
                levels.push(level.clone());
            }
        }
        let levels_on_axis = Levels::new(&table.row_factor, &levels);
        let series: Vec<Series> = same.iter().flat_map(|table| of_table(table, &levels_on_axis)).collect();
        if series.iter().any(|series| series.points.len() > 1) {
            figures.push(Figure {
                id: format!("plan-{}", table.measure.replace(' ', "-")),
                title: format!("{} over {}", table.measure, table.row_factor),
                subtitle: subtitle(run, "means of the trials with their intervals"),
                x: levels_on_axis.axis,
                y: Axis { label: table.measure.to_owned(), unit: table.unit.to_owned(), scale: Scale::Linear },
                series,
                marks: Vec::new(),
            });
        }
    }
    figures
}

fn of_table(table: &PlanTable, levels: &Levels) -> Vec<Series> {
    let column = |(at, column): (usize, &String)| {
        let mut parts: Vec<String> = Vec::new();
        if !table.column_factor.is_empty() {
            parts.push(format!("{} {column}", table.column_factor));
        }
        parts.extend(table.held.iter().map(|(name, level)| format!("{name} {level}")));
        let name = if parts.is_empty() { table.measure.to_owned() } else { parts.join(", ") };
        let point = |(level, cells): (&String, &Vec<Option<CellMean>>)| {
            let middle = cells[at]?;
            Some(Point { x: *levels.positions.get(level)?, y: middle.value, low: middle.low, high: middle.high })
        };
        let points: Vec<Point> = table.rows.iter().zip(&table.cells).filter_map(point).collect();
        Series { name, points, reference: false, stacked: false }
    };
    table.columns.iter().enumerate().map(column).filter(|series| !series.points.is_empty()).collect()
}

/// CPU use and interrupts, one figure for each factor.
fn line_figures(run: &Run) -> Vec<Figure> {
    let lines = factor_lines(&run.header, &run.outcomes, &run.passes);
    let mut figures: Vec<Figure> = Vec::new();
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for line in &lines {
        if kinds.contains(&(line.factor.as_str(), line.unit)) {
            continue;
        }
        kinds.push((&line.factor, line.unit));
        let own: Vec<&FactorLine> =
            lines.iter().filter(|other| (&other.factor, other.unit) == (&line.factor, line.unit)).collect();
        let levels = run.header.plan.iter().flat_map(|plan| &plan.factors).find(|factor| factor.name == line.factor);
        let levels_on_axis =
            Levels::new(&line.factor, levels.map(|factor| factor.levels.as_slice()).unwrap_or_default());
        let (id, what, label) = if line.unit == "cores" {
            ("cpu", "CPU use", "busy cores")
        } else {
            ("interrupts", "Interrupts", "interrupts")
        };
        let series = own.iter().map(|line| {
            let fixed: Vec<String> = line.held.iter().map(|(name, level)| format!("{name} {level}")).collect();
            let name = std::iter::once(format!("{} host", line.end)).chain(fixed).collect::<Vec<_>>().join(", ");
            let point = |(level, value): &(String, f64)| {
                Some(Point { x: *levels_on_axis.positions.get(level)?, y: *value, low: None, high: None })
            };
            Series { name, points: line.points.iter().filter_map(point).collect(), reference: false, stacked: false }
        });
        figures.push(Figure {
            id: format!("plan-{id}-{}", line.factor.replace(|c: char| !c.is_ascii_alphanumeric(), "-")),
            title: format!("{what} over {}", line.factor),
            subtitle: subtitle(run, "means of the passes, set-up and drain included"),
            series: series.collect(),
            x: levels_on_axis.axis,
            y: Axis {
                label: label.to_owned(),
                unit: if line.unit == "cores" { "" } else { "1/s" }.to_owned(),
                scale: Scale::Linear,
            },
            marks: Vec::new(),
        });
    }
    figures
}

/// Every trial of a plan with a schedule, over the hours since midnight before its start; a schedule shorter than an hour is drawn
/// over the time since its start. One figure for each unit.
fn over_the_day(run: &Run) -> Vec<Figure> {
    let Some(schedule) = run.header.plan.as_ref().and_then(|plan| plan.schedule) else { return Vec::new() };
    let started = run.header.started_unix_ns;
    let midnight = started - started % DAY_NS;
    let short = (schedule.for_ns as f64) < HOUR;
    let (origin, scale) = if short { (started, 1.0) } else { (midnight, HOUR) };
    let times: BTreeMap<u32, u64> =
        run.passes.iter().filter_map(|pass| Some((pass.index, pass.started_unix_ns?))).collect();
    let mut by_unit: BTreeMap<&str, Vec<Series>> = BTreeMap::new();
    for outcome in &run.outcomes {
        let Some(estimate) = &outcome.estimate else { continue };
        let cell = run.header.cells.iter().find(|cell| cell.id == outcome.cell);
        let levels: Vec<String> =
            cell.iter().flat_map(|cell| &cell.levels).map(|(name, level)| format!("{name} {level}")).collect();
        let name = if levels.is_empty() { labels::title(run) } else { levels.join(", ") };
        let point = |trial: &model::Trial| {
            let at = times.get(&trial.pass)?.checked_sub(origin)?;
            Some(Point { x: at as f64 / scale, y: trial.value?, low: None, high: None })
        };
        let points: Vec<Point> = outcome.trials.iter().filter_map(point).collect();
        if !points.is_empty() {
            by_unit.entry(&estimate.unit).or_default().push(Series { name, points, reference: false, stacked: false });
        }
    }
    let figure = |(unit, series): (&str, Vec<Series>)| Figure {
        id: format!("plan-day-{}", unit.replace('/', "-per-")),
        title: "Over the day".to_owned(),
        subtitle: subtitle(run, "every trial"),
        x: if short {
            Axis { label: "time since the start".to_owned(), unit: "ns".to_owned(), scale: Scale::Linear }
        } else {
            Axis {
                label: format!("hours since {}", labels::when(midnight)),
                unit: "h".to_owned(),
                scale: Scale::Linear,
            }
        },
        y: Axis {
            label: match unit {
                "bit/s" => "goodput",
                "1/s" => "transactions per second",
                _ => "round trip",
            }
            .to_owned(),
            unit: unit.to_owned(),
            scale: Scale::Linear,
        },
        series,
        marks: Vec::new(),
    };
    by_unit.into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_plan_has_its_values_over_the_first_factor_and_no_figure_of_each_cell() {
        let ids: Vec<String> = crate::figures(&[sample::planned()]).into_iter().map(|figure| figure.id).collect();
        assert_eq!(ids, ["plan-goodput"]);
        let figure = &table_figures(&sample::planned())[0];
        assert_eq!((figure.series.len(), figure.series[0].points.len(), figure.x.unit.as_str()), (2, 2, "B"));
        assert_eq!(figure.series[0].name, "sndbuf 64KiB");
    }

    #[test]
    fn levels_without_a_size_are_numbered() {
        let levels = Levels::new("cc", &["cubic".to_owned(), "bbr".to_owned()]);
        assert_eq!(levels.axis.label, "cc (1: cubic, 2: bbr)");
        assert_eq!(levels.positions["bbr"], 2.0);
    }

    #[test]
    fn trials_are_at_their_hours() {
        let mut run = sample::planned();
        let midnight = run.header.started_unix_ns - run.header.started_unix_ns % DAY_NS;
        for pass in &mut run.passes {
            pass.started_unix_ns = Some(midnight + (30.0 * HOUR) as u64);
        }
        if let Some(plan) = &mut run.header.plan {
            plan.schedule = Some(model::Every { every_ns: 1, for_ns: HOUR as u64 });
        }
        let figures = over_the_day(&run);
        assert_eq!((figures.len(), figures[0].series.len()), (1, 4));
        assert!(figures[0].series[0].points.iter().all(|point| (point.x - 30.0).abs() < 1e-9));
        // A schedule of minutes is drawn from its start.
        let start = run.header.started_unix_ns;
        run.passes.iter_mut().for_each(|pass| pass.started_unix_ns = Some(start + 4_000_000_000));
        if let Some(plan) = &mut run.header.plan {
            plan.schedule = Some(model::Every { every_ns: 1, for_ns: 60_000_000_000 });
        }
        let figures = over_the_day(&run);
        assert!(figures[0].x.unit == "ns" && figures[0].series[0].points.iter().all(|point| point.x == 4e9));
    }
}

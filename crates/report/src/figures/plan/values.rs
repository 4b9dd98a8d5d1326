//! A plan's values: over each factor, and between each pair of hosts.

use std::collections::{HashMap, HashSet};

use analysis::plan::{CellMean, PlanTable, tables};
use model::{Axis, Factor, Figure, Matrix, MatrixCell, Panel, Point, Run, RunKind, Scale, Series};

use super::super::Drawn;
use super::super::arrange::{OwnLevels, Palette, by_levels};
use super::super::close_range::close_range;
use super::axis::Levels;
use super::standing::compare;
use super::{file_name, subtitle};
use crate::labels;
use crate::sections::adapters;

/// One value of a measure, with its levels.
struct Value<'a> {
    table: &'a PlanTable,
    row: &'a str,
    column: &'a str,
    mean: CellMean,
}

impl<'a> Value<'a> {
    /// The factors with their levels, in the order of the tables.
    fn levels(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let Self { table, row, column, .. } = *self;
        let columns = (!table.column_factor.is_empty()).then_some((table.column_factor.as_str(), column));
        let held = table.held.iter().map(|(name, level)| (name.as_str(), level.as_str()));
        std::iter::once((table.row_factor.as_str(), row)).chain(columns).chain(held)
    }

    fn level(&self, factor: &str) -> Option<&'a str> {
        self.levels().find(|(name, _)| *name == factor).map(|(_, level)| level)
    }

    /// Its levels of all factors but these.
    fn others(&self, but: &[&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.levels().filter(|(name, _)| !but.contains(name))
    }
}

/// All values of a measure.
struct Measured<'a> {
    name: &'static str,
    unit: &'static str,
    values: Vec<Value<'a>>,
}

const HOSTS: [&str; 2] = [Factor::FROM, Factor::TO];

/// The figures of each measure: a matrix if both ends vary, and lines over each other factor.
pub(super) fn figures(run: &Run) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    let tables = tables(&run.header, &run.outcomes);
    for measured in all(&tables) {
        let factors = factors(&measured);
        if HOSTS.iter().all(|host| factors.iter().any(|factor| factor == host)) {
            drawn.extend(matrix(run, &measured));
        }
        let (hosts, others): (Vec<String>, Vec<String>) =
            factors.into_iter().partition(|factor| HOSTS.contains(&factor.as_str()));
        // If nothing else varies, the far ends are the categories.
        let over = if others.is_empty() && hosts.len() == 1 { hosts } else { others };
        let lines = over.iter().filter_map(|factor| lines(run, &measured, factor));
        drawn.extend(lines.enumerate().map(|(at, (factor, mut one))| {
            if at > 0 {
                one.figure.id += &format!("-{}", file_name(factor));
            }
            one
        }));
    }
    drawn
}

fn all(tables: &[PlanTable]) -> Vec<Measured<'_>> {
    let mut all: Vec<Measured<'_>> = Vec::new();
    for table in tables {
        let values = values(table);
        match all.iter_mut().find(|other| other.name == table.measure) {
            Some(other) => other.values.extend(values),
            None => all.push(Measured { name: table.measure, unit: table.unit, values }),
        }
    }
    all
}

fn values(table: &PlanTable) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    for (row, cells) in table.rows.iter().zip(&table.cells) {
        let means = table.columns.iter().zip(cells);
        values.extend(means.filter_map(|(column, mean)| Some(Value { table, row, column, mean: (*mean)? })));
    }
    values
}

/// The factors with several levels, in the order of the tables.
fn factors(measured: &Measured<'_>) -> Vec<String> {
    let mut first: Vec<(&str, &str, bool)> = Vec::new();
    for (name, level) in measured.values.iter().flat_map(Value::levels) {
        match first.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, other, varies)) => *varies |= *other != level,
            None => first.push((name, level, false)),
        }
    }
    first.into_iter().filter(|(.., varies)| *varies).map(|(name, ..)| name.to_owned()).collect()
}

/// The levels of a factor in the plan's order.
fn levels_of(run: &Run, measured: &Measured<'_>, factor: &str) -> Vec<String> {
    let mut known: HashSet<&str> = HashSet::new();
    let met = measured.values.iter().filter_map(|value| value.level(factor));
    let mut found: Vec<String> = met.filter(|level| known.insert(*level)).map(str::to_owned).collect();
    let plan = run.header.plan.as_deref();
    let written: &[String] = match (plan, factor) {
        (Some(plan), Factor::FROM) => &plan.from,
        (Some(plan), Factor::TO) => &plan.to,
        (Some(plan), name) => plan.factors.iter().find(|one| one.name == name).map_or(&[], |one| &one.levels),
        (None, _) => &[],
    };
    let mut places: HashMap<&String, usize> = HashMap::new();
    written.iter().zip(0..).for_each(|(level, place)| {
        places.entry(level).or_insert(place);
    });
    found.sort_by_key(|level| places.get(level).copied().unwrap_or(usize::MAX));
    found
}

/// The values over a factor, a line for each combination of the others; `None` if no line has two points.
fn lines<'a>(run: &Run, measured: &Measured<'_>, factor: &'a str) -> Option<(&'a str, Drawn)> {
    let plan_factor = run.header.plan.iter().flat_map(|plan| &plan.factors).find(|one| one.name == factor);
    let levels = Levels::new(factor, plan_factor, &levels_of(run, measured, factor));
    let mut groups: Vec<(OwnLevels, Vec<Point>)> = Vec::new();
    for value in &measured.values {
        let Some(x) = value.level(factor).and_then(|level| levels.positions.get(level)) else { continue };
        let CellMean { value: y, low, high, .. } = value.mean;
        let point = Point { x: *x, y, low, high };
        let others: OwnLevels =
            value.others(&[factor]).map(|(name, level)| (name.to_owned(), level.to_owned())).collect();
        match groups.iter_mut().find(|(own, _)| *own == others) {
            Some((_, points)) => points.push(point),
            None => groups.push((others, vec![point])),
        }
    }
    groups.iter().find(|(_, points)| points.len() > 1)?;
    groups.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    let series: Vec<Series> = groups
        .iter()
        .map(|(_, points)| Series { name: measured.name.to_owned(), points: points.clone(), ..Series::default() })
        .collect();
    let own: Vec<OwnLevels> = groups.into_iter().map(|(own, _)| own).collect();
    let mut figure = Figure {
        id: format!("plan-{}", file_name(measured.name)),
        title: format!("{} over {factor}", text::capitalised(measured.name)),
        subtitle: subtitle(run, means(&series)),
        x: levels.axis,
        y: Axis::new(measured.name, measured.unit, scale(measured.unit, &series)),
        series,
        ..Figure::default()
    };
    close_range(&mut figure);
    let owners = vec![0; own.len()];
    Some((factor, by_levels(Drawn { figure, owners }, &own, &Palette::of(run))))
}

/// What the points are.
fn means(series: &[Series]) -> &'static str {
    let interval = |point: &Point| point.low.is_some() || point.high.is_some();
    let some = series.iter().flat_map(|one| &one.points).any(interval);
    if some { "means of the trials with their intervals" } else { "means of the trials" }
}

/// Times of which the longest is so many times the shortest have a logarithmic axis, on which both can be read.
const WIDE_TIMES: f64 = 30.0;

/// The scale of values in `unit`.
fn scale(unit: &str, series: &[Series]) -> Scale {
    let values = || series.iter().flat_map(|one| &one.points).map(|point| point.y);
    let [low, high] = [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)];
    if unit == "ns" && low > 0.0 && high >= WIDE_TIMES * low { Scale::Log } else { Scale::Linear }
}

/// The values from each host to each other one; a panel for each combination of the other factors.
fn matrix(run: &Run, measured: &Measured<'_>) -> Option<Drawn> {
    let (from, to) = (levels_of(run, measured, Factor::FROM), levels_of(run, measured, Factor::TO));
    let varied = factors(measured);
    let mut panels: Vec<String> = Vec::new();
    let mut cells = Vec::new();
    let [rows, columns] =
        [&from, &to].map(|levels| levels.iter().map(String::as_str).zip(0..).collect::<HashMap<_, usize>>());
    let same_row = |a: &Value<'_>, b: &Value<'_>| std::ptr::eq(a.table, b.table) && std::ptr::eq(a.row, b.row);
    for of_row in measured.values.chunk_by(same_row) {
        let first = of_row.first()?;
        // Hosts are the rows and columns of a table in which both vary; its other factors are the same for all of it.
        let others = first.others(&HOSTS).filter(|(name, _)| varied.iter().any(|varied| varied == name));
        let words: Vec<String> = others.map(|(name, level)| format!("{name} {level}")).collect();
        let words = words.join(", ");
        let panel = panels.iter().position(|other| *other == words).unwrap_or_else(|| {
            panels.push(words);
            panels.len() - 1
        });
        let row = *rows.get(first.level(Factor::FROM)?)?;
        for value in of_row {
            let column = *columns.get(value.column)?;
            cells.push(MatrixCell { panel, row, column, value: value.mean.value, standing: 0.0 });
        }
    }
    if panels.iter().all(String::is_empty) {
        panels.clear();
    }
    let (from_groups, to_groups) = (groups(run, &from), groups(run, &to));
    let label = run.header.plan.as_ref().and_then(|plan| plan.cluster_label()).filter(|_| !from_groups.is_empty());
    let by_cluster = label.map_or(String::new(), |label| {
        let names: Vec<&str> = from_groups.iter().map(|(name, _)| name.as_str()).collect();
        format!("; hosts by {}: {}", labels::plain(label), names.join(", "))
    });
    let mut matrix =
        Matrix { label: measured.name.to_owned(), unit: measured.unit.to_owned(), cells, ..Matrix::default() };
    compare(&mut matrix);
    let figure = Figure {
        id: format!("plan-{}-hosts", file_name(measured.name)),
        title: format!("{} from host to host", text::capitalised(measured.name)),
        subtitle: subtitle(run, &format!("means of the trials{by_cluster}")),
        x: Axis { groups: to_groups, ..Axis::names(Factor::TO, &with_drivers(run, &to)) },
        y: Axis { groups: from_groups, ..Axis::names(Factor::FROM, &with_drivers(run, &from)) },
        panels: panels.into_iter().map(Panel::from).collect(),
        matrix: Some(matrix),
        ..Figure::default()
    };
    Some(Drawn { figure, owners: Vec::new() })
}

/// The clusters of a mesh's hosts in their order, such as racks; empty where they have none, and where a cluster is not in one place.
fn groups(run: &Run, hosts: &[String]) -> Vec<(String, usize)> {
    let Some(plan) = run.header.plan.as_deref().filter(|_| run.header.kind == RunKind::Mesh) else { return Vec::new() };
    let of = |host: &String| plan.cluster_of(host).map(labels::plain);
    let Some(clusters) = hosts.iter().map(of).collect::<Option<Vec<String>>>() else { return Vec::new() };
    let groups = clusters.chunk_by(|a, b| a == b).map(|own| (own[0].clone(), own.len()));
    let groups: Vec<(String, usize)> = groups.collect();
    let names: HashSet<&String> = groups.iter().map(|(name, _)| name).collect();
    if names.len() == groups.len() { groups } else { Vec::new() }
}

/// The hosts with the drivers of their adapters, if these differ.
fn with_drivers(run: &Run, hosts: &[String]) -> Vec<String> {
    let adapters = adapters::of_hosts(run);
    let mut drivers = adapters.values().map(|adapter| &adapter.driver);
    let first = drivers.next();
    if drivers.all(|other| Some(other) == first) {
        return hosts.to_vec();
    }
    let name = |host: &String| match adapters.get(host.as_str()) {
        Some(adapter) => format!("{host} ({})", adapter.driver),
        None => host.clone(),
    };
    hosts.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn ids(drawn: &[Drawn]) -> Vec<&str> {
        drawn.iter().map(|drawn| drawn.figure.id.as_str()).collect()
    }

    #[test]
    fn a_plan_has_its_values_over_each_factor_before_its_cells_over_time() {
        let all: Vec<String> = crate::figures(&[sample::planned()]).into_iter().map(|figure| figure.id).collect();
        assert_eq!(all, ["plan-goodput", "plan-goodput-sndbuf", "goodput"]);
        let figure = &figures(&sample::planned())[0].figure;
        assert_eq!((figure.series.len(), figure.series[0].points.len(), figure.x.unit.as_str()), (2, 2, "B"));
        assert_eq!((figure.series[0].name.as_str(), figure.x.scale), ("sndbuf 64KiB", Scale::Log));
        assert_eq!(figure.title, "Goodput over block");
    }

    #[test]
    fn a_plan_between_hosts_has_a_matrix_and_lines_of_each_pair() {
        let run = sample::between_hosts();
        let drawn = figures(&run);
        assert_eq!(ids(&drawn), ["plan-goodput-hosts", "plan-goodput"]);
        let matrix = drawn[0].figure.matrix.as_ref().unwrap();
        assert_eq!(
            (drawn[0].figure.panels.as_slice(), matrix.cells.len()),
            (&["flows 1", "flows 4"].map(|title| Panel::from(title.to_owned()))[..], 12)
        );
        assert!(matrix.cells.iter().all(|cell| cell.row != cell.column), "no host measures to itself");
        let first = matrix.cells.iter().find(|cell| (cell.row, cell.column, cell.panel) == (0, 1, 0)).unwrap();
        let mean = run.outcomes[0].estimate.as_ref().unwrap().value;
        assert!((first.value / mean - 1.0).abs() < 1e-9, "from a to b is the first cell");
        let lines = &drawn[1].figure;
        assert_eq!((lines.series.len(), lines.x.label.as_str()), (6, "flows"));
        assert_eq!(lines.series[0].name, "from a, to b");
    }

    #[test]
    fn levels_of_different_factors_have_different_colours() {
        let drawn = figures(&sample::planned());
        let colours = |at: usize| -> Vec<usize> {
            drawn[at].figure.series.iter().filter_map(|series| Some(series.look?.colour)).collect()
        };
        assert_eq!((colours(0), colours(1)), (vec![2, 3], vec![0, 1]));
    }

    #[test]
    fn categories_have_one_panel_for_each_of_many_lines() {
        let drawn = figures(&sample::categories());
        let (over_stack, over_message) = (&drawn[0].figure, &drawn[1].figure);
        assert_eq!((over_stack.x.scale, over_stack.panels.len(), over_stack.context), (Scale::Names, 8, true));
        assert_eq!(over_stack.panels[0].title, "message 64");
        assert_eq!((over_message.x.scale, over_message.x.unit.as_str()), (Scale::Log, "B"));
        assert_eq!((over_message.panels.len(), over_message.series.len()), (0, 4));
    }

    #[test]
    fn far_ends_alone_are_categories() {
        let mut run = sample::between_hosts();
        run.header.cells.retain(|cell| cell.levels["from"] == "a" && cell.levels["flows"] == "1");
        let drawn = figures(&run);
        assert_eq!(ids(&drawn), ["plan-goodput"]);
        assert_eq!((drawn[0].figure.x.scale, drawn[0].figure.x.ticks.len()), (Scale::Names, 2));
    }

    #[test]
    fn many_lines_are_panels() {
        let run = sample::between_hosts_many();
        let figure = &figures(&run)[1].figure;
        assert_eq!((figure.panels.len(), figure.series.len()), (4, 12), "{:?}", figure.panels);
        assert!(figure.series.iter().all(|series| series.panel < Some(4)));
    }

    #[test]
    fn times_of_very_different_lengths_have_a_logarithmic_axis() {
        let series = |values: &[f64]| {
            let points = values.iter().map(|y| Point { x: 1.0, y: *y, ..Point::default() }).collect();
            [Series { points, ..Series::default() }]
        };
        assert_eq!(scale("ns", &series(&[1.0, 30.0])), Scale::Log);
        for (unit, values) in [("ns", &[1.0, 29.0][..]), ("ns", &[0.0, 30.0]), ("bit/s", &[1.0, 30.0]), ("ns", &[])] {
            assert_eq!(scale(unit, &series(values)), Scale::Linear, "{unit} {values:?}");
        }
    }
}

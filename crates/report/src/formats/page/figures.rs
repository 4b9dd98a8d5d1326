//! The figures of the page: axes and marks as they are, and points as columns.

use drawing::look;
use model::{Axis, Figure, Map, MapKind, Mark, Matrix, MatrixCell, Panel, Run, Scale};
use serde::Serialize;

use super::columns::{Column, Columns};
use super::tables::Table;
use crate::figures::Drawn;
use crate::labels;

/// A figure.
#[derive(Debug, Serialize)]
pub(super) struct FigurePart {
    /// Unique on the page.
    pub(super) id: String,
    title: String,
    subtitle: String,
    /// Where it stands.
    place: Place,
    x: Axis,
    y: Axis,
    /// Several plots.
    panels: Vec<Panel>,
    /// Whether each panel shows the series of the others behind its own.
    context: bool,
    series: Vec<SeriesPart>,
    marks: Vec<Mark>,
    matrix: Option<MatrixPart>,
    /// Index of the run of a matrix.
    owner: usize,
    map: Option<Map>,
    /// What a map says, as a table: a map has no points.
    table: Option<Table>,
}

/// The section of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// What was measured.
    Main,
    /// Host activity.
    Hosts,
    /// The path.
    Path,
}

/// A line.
#[derive(Debug, Serialize)]
struct SeriesPart {
    name: String,
    /// Index of its run.
    run: usize,
    colour: usize,
    dash: usize,
    reference: bool,
    stacked: bool,
    steps: bool,
    panel: Option<usize>,
    x: Option<Column>,
    y: Option<Column>,
    low: Option<Column>,
    high: Option<Column>,
}

/// A matrix.
#[derive(Debug, Serialize)]
struct MatrixPart {
    label: String,
    unit: String,
    /// The usual values of each panel.
    usual: Vec<[f64; 2]>,
    /// Panel, row, column, value and standing of each cell.
    cells: [Option<Column>; 5],
}

/// All figures: those of the runs, of the hosts, and of the paths.
pub(super) fn all(main: Vec<Drawn>, runs: &[Run], columns: &mut Columns) -> Vec<FigurePart> {
    let mut parts: Vec<FigurePart> =
        main.into_iter().map(|drawn| part(drawn.figure, &drawn.owners, Place::Main, columns)).collect();
    for (index, run) in runs.iter().enumerate() {
        let mut own = |mut figure: Figure, place: Place| {
            if runs.len() > 1 {
                figure.id = format!("{}-{}", figure.id, index + 1);
                figure.title = format!("{}, {}", figure.title, labels::title(run));
            }
            let owners = vec![index; figure.series.len()];
            parts.push(part(figure, &owners, place, columns));
        };
        crate::host_figures(run).into_iter().for_each(|figure| own(figure, Place::Hosts));
        crate::topology(run).into_iter().for_each(|figure| own(figure, Place::Path));
    }
    parts
}

fn part(figure: Figure, owners: &[usize], place: Place, columns: &mut Columns) -> FigurePart {
    let series = (0..figure.series.len()).map(|index| {
        let run = owners.get(index).copied().unwrap_or_default();
        series(&figure, index, run, columns)
    });
    let series = series.collect();
    FigurePart {
        place,
        series,
        table: figure.map.as_ref().map(|map| map_table(map, &figure.title)),
        id: figure.id,
        title: figure.title,
        subtitle: figure.subtitle,
        x: figure.x,
        y: figure.y,
        panels: figure.panels,
        context: figure.context,
        marks: figure.marks,
        matrix: figure.matrix.as_ref().map(|of| matrix(of, columns)),
        map: figure.map,
        owner: owners.first().copied().unwrap_or_default(),
    }
}

/// The hosts and routers of a map with the links between them, in the order of the path.
fn map_table(map: &Map, title: &str) -> Table {
    let plain = |text: &str| labels::plain(text);
    let facts = |lines: &[String]| plain(&lines.join(", "));
    let kind = |kind| match kind {
        MapKind::Host => "host",
        MapKind::Router => "router",
        MapKind::Switch => "switch",
    };
    let mut rows = Vec::new();
    for (at, node) in map.nodes.iter().enumerate() {
        rows.push(vec![kind(node.kind).to_owned(), plain(&node.name), facts(&node.lines)]);
        for link in map.links.iter().filter(|link| link.between[0] == at) {
            let ends = link.between.map(|end| map.nodes.get(end).map_or("", |node| node.name.as_str()));
            rows.push(vec!["link".to_owned(), plain(&ends.join(" – ")), facts(&link.lines)]);
        }
    }
    Table::words(title, ["part", "name", "facts"].map(str::to_owned).to_vec(), rows)
}

fn matrix(of: &Matrix, columns: &mut Columns) -> MatrixPart {
    let mut column = |value: fn(&MatrixCell) -> f64| columns.add(&of.cells.iter().map(value).collect::<Vec<_>>());
    let cells = [
        column(|cell| cell.panel as f64),
        column(|cell| cell.row as f64),
        column(|cell| cell.column as f64),
        column(|cell| cell.value),
        column(|cell| cell.standing),
    ];
    MatrixPart { label: of.label.clone(), unit: of.unit.clone(), usual: of.usual.clone(), cells }
}

fn series(figure: &Figure, index: usize, run: usize, columns: &mut Columns) -> SeriesPart {
    let (series, look) = (&figure.series[index], look(figure, index));
    let points = || series.points.iter();
    let mut column = |values: Vec<f64>| columns.add(&values);
    // Times since 1970 in ns are beyond what a double counts one by one; a clock's µs are enough for a picture.
    let date = figure.x.scale == Scale::Date;
    let x = points().map(|point| if date { (point.x / 1e3).round() * 1e3 } else { point.x }).collect();
    SeriesPart {
        name: series.name.clone(),
        run,
        colour: look.colour,
        dash: look.dash,
        reference: series.reference,
        stacked: series.stacked,
        steps: series.steps,
        panel: series.panel,
        x: column(x),
        y: column(points().map(|point| point.y).collect()),
        low: column(points().map(|point| point.low.unwrap_or(f64::NAN)).collect()),
        high: column(points().map(|point| point.high.unwrap_or(f64::NAN)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::read;
    use super::*;
    use crate::{View, sample};

    #[test]
    fn every_point_of_every_figure_is_there() {
        for (what, runs) in sample::gallery() {
            let mut columns = Columns::default();
            let parts = all(View::new(&runs).drawn().unwrap(), &runs, &mut columns);
            for (part, figure) in parts.iter().zip(crate::figures(&runs)) {
                assert_eq!(part.id, figure.id, "{what}");
                for (own, series) in part.series.iter().zip(&figure.series) {
                    let y = own.y.as_ref().map_or(Vec::new(), |column| read(&columns.bytes, column));
                    let points: Vec<f64> = series.points.iter().map(|point| point.y).collect();
                    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
                    let none = y.is_empty() && points.iter().all(|point| point.is_nan());
                    let all = y.len() == points.len() && y.iter().zip(&points).all(same);
                    assert!(all || none, "{what} {}", series.name);
                }
            }
            let mut ids: Vec<&String> = parts.iter().map(|part| &part.id).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), parts.len(), "{what}");
        }
    }
}

//! The figures, each on a sheet with its data and native charts.

use model::{Axis, Figure, Matrix, Point, Scale, Series};
use rust_xlsxwriter::{ChartType, XlsxError};

use super::book::{Book, MOST_ROWS, Sheet};
use super::charts::{ROWS, bound, chart, colour, error_bars, fill_look, line_look, range, shape};
use crate::figures::Effects;
use crate::formats::value::{Value, number, text};
use drawing::span::{x_span, y_span};
use drawing::{joined, look};

/// Columns of the data: series, x, y, low, high, the lengths of the two halves of an interval, and the panel.
const X: u16 = 1;
const Y: u16 = 2;
const BELOW: u16 = 5;
const ABOVE: u16 = 6;
/// Parts of titles, and what the names of sheets have instead: they are short.
const SHORT: [(&str, &str); 3] =
    [(" over time", ""), (" from host to host", " between hosts"), (" of each trial", ", trials")];

/// Adds a sheet for each figure; those without axes are pictures of a network and have no data.
pub(super) fn add(book: &mut Book, figures: Vec<Figure>) -> Result<(), XlsxError> {
    for mut figure in figures {
        // The effects of a plan have a sheet of their own.
        if figure.map.is_some() || figure.id.starts_with(Effects::FIGURE) {
            continue;
        }
        // A date of a spreadsheet is in days.
        if figure.x.scale == Scale::Date {
            figure.series.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point.x = days(point.x));
        }
        let about = format!("{}; {}", figure.title, figure.subtitle);
        let title = figure.title.split(": ").next().unwrap_or_default();
        let short = SHORT.iter().fold(title.to_owned(), |title, (long, short)| title.replace(long, short));
        let mut sheet = book.sheet(&short, &about)?;
        let stacked = figure.series.iter().any(|series| series.stacked);
        match &figure.matrix {
            Some(matrix) => matrices(&mut sheet, &figure, matrix)?,
            None if stacked || (figure.x.scale == Scale::Names && !is_scattered(&figure)) => bars(&mut sheet, &figure)?,
            None => lines(&mut sheet, &figure)?,
        }
        book.push(sheet);
    }
    Ok(())
}

/// Whether points are spread within their categories.
fn is_scattered(figure: &Figure) -> bool {
    figure.x.scale == Scale::Names
        && figure.series.iter().flat_map(|one| &one.points).any(|point| point.x.fract() != 0.0)
}

/// Nanoseconds after 1970 as days after 1899-12-30.
fn days(unix_ns: f64) -> f64 {
    unix_ns / 86_400e9 + 25_569.0
}

/// A label with its unit.
fn labelled(axis: &Axis) -> String {
    let unit = if axis.scale == Scale::Date { "UTC" } else { &axis.unit };
    if unit.is_empty() { axis.label.clone() } else { format!("{} ({unit})", axis.label) }
}

/// The panels; a figure without any has one without a title.
fn panels(figure: &Figure) -> Vec<&str> {
    if figure.panels.is_empty() { vec![""] } else { figure.panels.iter().map(|panel| panel.title.as_str()).collect() }
}

fn title(figure: &Figure, panel: &str) -> String {
    if panel.is_empty() { figure.title.clone() } else { format!("{}: {panel}", figure.title) }
}

/// The lowest and the highest of some values; (0, 0) without any.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|value| value.is_finite())
        .fold(None, |span: Option<(f64, f64)>, value| match span {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        })
        .unwrap_or_default()
}

/// The interval of a point and the lengths of its halves.
fn interval(point: &Point) -> [Option<Value>; 4] {
    let half = |of: Option<f64>| number(of.map(|length| length.max(0.0)));
    [
        number(point.low),
        number(point.high),
        half(point.low.map(|low| point.y - low)),
        half(point.high.map(|high| high - point.y)),
    ]
}

/// Curves: a row for each point, and a chart for each panel.
fn lines(sheet: &mut Sheet, figure: &Figure) -> Result<(), XlsxError> {
    let own_axes = figure.panels.iter().any(|panel| panel.y.is_some());
    let x = if is_scattered(figure) { "place".to_owned() } else { labelled(&figure.x) };
    let y = if own_axes { "value".to_owned() } else { labelled(&figure.y) };
    let panel = (!figure.panels.is_empty()).then_some("panel");
    let mut points = figure.series.iter().flat_map(|series| &series.points);
    let ends = points.any(|point| point.low.is_some() || point.high.is_some());
    let ends: &[&str] = if ends || panel.is_some() { &["low", "high", "below", "above"] } else { &[] };
    let head: Vec<&str> = ["series", &x, &y].into_iter().chain(ends.iter().copied()).chain(panel).collect();
    let columns = head.len();
    let head = sheet.head(0, head)?;
    let mut rows = Vec::new();
    for series in &figure.series {
        let first = sheet.row;
        let room = MOST_ROWS.saturating_sub(first as usize);
        let panel = series.panel.and_then(|panel| figure.panels.get(panel)).map(|panel| panel.title.as_str());
        let unit = &figure.y_axis(series).unit;
        let name = if own_axes && !unit.is_empty() { format!("{} ({unit})", series.name) } else { series.name.clone() };
        for point in series.points.iter().take(room) {
            let names = [text(&name), value_of(&figure.x, point.x), number(Some(point.y))];
            sheet.line(names.into_iter().chain(interval(point)).chain([panel.and_then(text)]))?;
        }
        rows.push((first, sheet.row.saturating_sub(1)));
    }
    sheet.filter(head, columns)?;
    let x_span = x_span(figure);
    let kind = if joined(figure) { ChartType::ScatterStraightWithMarkers } else { ChartType::Scatter };
    let column = sheet.free_column();
    for (index, panel) in panels(figure).into_iter().enumerate() {
        let own: Vec<(usize, &Series)> = figure
            .series
            .iter()
            .enumerate()
            // A sheet that is full has no row for the rest.
            .filter(|(at, series)| series.is_in(index) && !series.points.is_empty() && rows[*at].0 <= rows[*at].1)
            .collect();
        // A chart without data would be refused, and the whole workbook with it.
        if own.is_empty() {
            continue;
        }
        let mut chart = chart(kind, &title(figure, panel), own.len());
        for (at, series) in &own {
            let drawn = chart.add_series();
            drawn.set_name((sheet.name.as_str(), rows[*at].0, 0));
            drawn.set_categories(&range(&sheet.name, X, rows[*at])).set_values(&range(&sheet.name, Y, rows[*at]));
            line_look(drawn, look(figure, *at), series.reference, series.points.len());
            if !series.reference && series.points.iter().any(|point| point.low.is_some() || point.high.is_some()) {
                drawn.set_y_error_bars(&error_bars(&sheet.name, BELOW, ABOVE, rows[*at]));
            }
        }
        let all = || figure.series.iter().flat_map(|series| &series.points);
        shape(chart.x_axis(), &figure.x, span(all().map(|point| point.x)));
        // Panels share their vertical axis too, unless one has its own.
        let axis = figure.y_of(index);
        let sharing = figure.series.iter().filter(|series| figure.y_axis(series) == axis);
        let points = sharing.flat_map(|series| &series.points);
        let ends = points.flat_map(|point| [Some(point.y), point.low.filter(|low| *low > 0.0)]).flatten();
        shape(chart.y_axis(), axis, span(ends));
        bound(chart.x_axis(), &figure.x, x_span);
        bound(chart.y_axis(), axis, y_span(figure, &x_span, index));
        if is_scattered(figure) {
            chart.x_axis().set_hidden(true);
        }
        sheet.chart(1 + ROWS * u32::try_from(index).unwrap_or_default(), column, &chart)?;
    }
    Ok(())
}

/// A value on an axis; a date as a number of days.
fn value_of(axis: &Axis, value: f64) -> Option<Value> {
    match axis.scale {
        Scale::Date => Some(Value::Time(((value - 25_569.0) * 86_400e9).max(0.0) as u64)),
        _ => number(Some(value)),
    }
}

/// Categories: a row for each, and the values and intervals of all series beside each other.
fn bars(sheet: &mut Sheet, figure: &Figure) -> Result<(), XlsxError> {
    let mut positions: Vec<f64> = figure.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
    positions.sort_by(f64::total_cmp);
    positions.dedup();
    let unit = &figure.y.unit;
    let column_of = |index: usize| u16::try_from(1 + index * 3).unwrap_or(u16::MAX);
    let named = |series: &Series| {
        let panel = series.panel.and_then(|panel| figure.panels.get(panel)).filter(|panel| panel.title != series.name);
        let name = panel.map_or(series.name.clone(), |panel| format!("{}, {}", panel.title, series.name));
        [name.clone(), format!("{name}, below ({unit})"), format!("{name}, above ({unit})")]
    };
    let head = std::iter::once(labelled(&figure.x)).chain(figure.series.iter().flat_map(named));
    sheet.head(1, head)?;
    let first = sheet.row;
    for position in &positions {
        let tick = figure.x.ticks.iter().find(|(at, _)| at == position).and_then(|(_, name)| text(name));
        let values = figure.series.iter().flat_map(|series| {
            let point = series.points.iter().find(|point| point.x == *position);
            let [_, _, below, above] = point.filter(|_| !series.stacked).map(interval).unwrap_or_default();
            [point.and_then(|point| number(Some(point.y))), below, above]
        });
        sheet.line(std::iter::once(tick.or_else(|| number(Some(*position)))).chain(values))?;
    }
    let rows = (first, sheet.row.saturating_sub(1));
    let column = sheet.free_column();
    for (index, panel) in panels(figure).into_iter().enumerate() {
        let own: Vec<(usize, &Series)> =
            figure.series.iter().enumerate().filter(|(_, series)| series.is_in(index)).collect();
        // A chart without data would be refused, and the whole workbook with it.
        if own.is_empty() || rows.0 > rows.1 {
            continue;
        }
        let stacked = own.iter().any(|(_, series)| series.stacked);
        let kind = if stacked { ChartType::ColumnStacked } else { ChartType::Column };
        let mut chart = chart(kind, &title(figure, panel), own.len());
        for (at, series) in &own {
            let drawn = chart.add_series();
            drawn.set_name((sheet.name.as_str(), 0, column_of(*at)));
            drawn.set_categories(&range(&sheet.name, 0, rows)).set_values(&range(&sheet.name, column_of(*at), rows));
            fill_look(drawn, colour(look(figure, *at).colour));
            if !stacked && series.points.iter().any(|point| point.low.is_some() || point.high.is_some()) {
                drawn.set_y_error_bars(&error_bars(&sheet.name, column_of(*at) + 1, column_of(*at) + 2, rows));
            }
        }
        let highest =
            span(own.iter().flat_map(|(_, series)| &series.points).map(|point| point.high.unwrap_or(point.y)));
        shape(chart.x_axis(), &Axis { scale: Scale::Names, unit: String::new(), ..figure.x.clone() }, (0.0, 0.0));
        // The length of a bar is its value, so its axis begins at zero.
        shape(chart.y_axis(), &Axis { scale: Scale::Linear, ..figure.y.clone() }, (0.0, highest.1));
        sheet.chart(1 + ROWS * u32::try_from(index).unwrap_or_default(), column, &chart)?;
    }
    Ok(())
}

/// A matrix of numbers for each panel, coloured from the lowest to the highest value.
fn matrices(sheet: &mut Sheet, figure: &Figure, matrix: &Matrix) -> Result<(), XlsxError> {
    let names = |axis: &Axis| -> Vec<String> { axis.ticks.iter().map(|(_, name)| name.clone()).collect() };
    let (rows, columns) = (names(&figure.y), names(&figure.x));
    for (index, panel) in panels(figure).into_iter().enumerate() {
        let corner = format!("{} \\ {}", figure.y.label, figure.x.label);
        sheet.title(&format!("{} ({})", title(figure, panel), matrix.unit))?;
        sheet.head(1, std::iter::once(&corner).chain(&columns))?;
        let first = sheet.row;
        for (row, name) in rows.iter().enumerate() {
            let value = |column: usize| {
                let mut cells = matrix.cells.iter();
                let cell = cells.find(|cell| (cell.panel, cell.row, cell.column) == (index, row, column))?;
                number(Some(cell.value))
            };
            sheet.line(std::iter::once(text(name)).chain((0..columns.len()).map(value)))?;
        }
        let last = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        if sheet.row > first && last > 0 {
            sheet.colours((first, sheet.row - 1), (1, last), matrix.unit == "ns")?;
        }
        sheet.row += 1;
    }
    Ok(())
}

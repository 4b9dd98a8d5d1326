//! The tables of plans as numbers with a colour scale, and the effects of their factors as bars.

use analysis::plan::{CellMean, PlanTable, tables};
use model::{Axis, Run, Scale};
use rust_xlsxwriter::{ChartAxisCrossing, ChartAxisLabelPosition, ChartType, XlsxError};

use super::book::{Book, Sheet};
use super::charts::{ROWS, chart, colour, error_bars, fill_look, range, shape};
use super::rows::Places;
use crate::figures::Effects;
use crate::formats::value::{Value, number, text};
use crate::labels;
use crate::sections::plan_answer::{self, Curves};

/// Adds the sheets of each plan among the runs.
pub(super) fn add(book: &mut Book, runs: &[Run], places: &Places) -> Result<(), XlsxError> {
    for run in runs.iter().filter(|run| run.header.plan.is_some()) {
        let tables = tables(&run.header, &run.outcomes);
        let mut sheet = book.sheet("plan tables", &format!("means of the cells: {}", labels::title(run)))?;
        if let Some(table) = plan_answer::curves(run) {
            curves(&mut sheet, &table, book)?;
        }
        for table in tables.iter().filter(|table| table.cells.iter().flatten().any(Option::is_some)) {
            means(&mut sheet, table, |cell| places.of(run, cell))?;
        }
        if sheet.row > 0 {
            book.push(sheet);
        }
        effects(book, run)?;
    }
    Ok(())
}

/// The latency, peak, half peak and saturation of each curve, with their intervals as text.
fn curves(sheet: &mut Sheet, table: &Curves, book: &Book) -> Result<(), XlsxError> {
    sheet.title(table.title)?;
    sheet.head(1, table.head.iter())?;
    for row in &table.rows {
        sheet.line(row.iter().map(|cell| book.said(cell)))?;
    }
    sheet.row += 1;
    Ok(())
}

/// The means, and beside them both ends of their intervals. A mean leads to the line of its outcome: sheet and row, which `place` knows.
fn means<'a>(
    sheet: &mut Sheet,
    table: &PlanTable,
    place: impl Fn(u32) -> Option<(&'a str, u32)>,
) -> Result<(), XlsxError> {
    let held: Vec<String> = table.held.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let held = if held.is_empty() { String::new() } else { format!("; {}", held.join(", ")) };
    sheet.title(&format!("{} ({}){held}", table.measure, table.unit))?;
    let corner = if table.column_factor.is_empty() {
        table.row_factor.clone()
    } else {
        format!("{} \\ {}", table.row_factor, table.column_factor)
    };
    let of = |what: &'static str| {
        table.columns.iter().map(move |level| match (level.is_empty(), what) {
            (true, _) => {
                if what.is_empty() {
                    "mean".to_owned()
                } else {
                    what.to_owned()
                }
            }
            (false, "") => level.clone(),
            (false, what) => format!("{level}, {what}"),
        })
    };
    let ends = [("", None), ("low", Some(false)), ("high", Some(true))];
    sheet.head(1, std::iter::once(corner).chain(ends.iter().flat_map(|(what, _)| of(what))))?;
    let first = sheet.row;
    for (level, cells) in table.rows.iter().zip(&table.cells) {
        let value = |end: Option<bool>| {
            move |cell: &Option<CellMean>| -> Option<Value> {
                let cell = cell.as_ref()?;
                number(match end {
                    None => Some(cell.value),
                    Some(false) => cell.low,
                    Some(true) => cell.high,
                })
            }
        };
        let row = sheet
            .line(std::iter::once(text(level)).chain(ends.iter().flat_map(|(_, end)| cells.iter().map(value(*end)))))?;
        for (column, cell) in (1..).zip(cells) {
            if let Some(mean) = cell
                && let Some(at) = place(mean.cell)
            {
                sheet.lead((row, column), mean.value, at)?;
            }
        }
    }
    let last = u16::try_from(table.columns.len()).unwrap_or(u16::MAX);
    if sheet.row > first {
        sheet.colours((first, sheet.row - 1), (1, last), table.unit == "ns")?;
    }
    sheet.row += 1;
    Ok(())
}

/// The effects with their intervals: changes in percent, or ratios on a logarithmic axis if one of them is more than the double.
fn effects(book: &mut Book, run: &Run) -> Result<(), XlsxError> {
    let effects = Effects::of(run);
    let (found, is_wide) = (&effects.all, effects.are_wide());
    if found.is_empty() {
        return Ok(());
    }
    let ends = || found.iter().flat_map(|(_, values)| *values);
    let shown = |ratio: f64| if is_wide { ratio } else { 100.0 * (ratio - 1.0) };
    let what = if is_wide { "ratio" } else { "change (%)" };
    let mut sheet = book.sheet("effects", &format!("effects of the plan's factors: {}", labels::title(run)))?;
    sheet.head(1, ["effect", what, "low", "high", "below", "above", "in words"])?;
    let first = sheet.row;
    for (finding, values) in found {
        let [value, low, high] = values.map(shown);
        let short = finding.statement.brief();
        let numbers = [value, low, high, value - low, high - value].map(|number| Some(Value::Number(number)));
        let words = book.said(&finding.statement);
        sheet.line(std::iter::once(book.said(&short)).chain(numbers).chain([words]))?;
    }
    let rows = (first, sheet.row - 1);
    let mut chart = chart(ChartType::Bar, "Effects of the factors, with their intervals", 1);
    let drawn = chart.add_series();
    drawn.set_categories(&range(&sheet.name, 0, rows)).set_values(&range(&sheet.name, 1, rows)).set_gap(60);
    fill_look(drawn, colour(0));
    // Of horizontal bars, the values are on the horizontal axis.
    drawn.set_x_error_bars(&error_bars(&sheet.name, 4, 5, rows));
    let (least, most) = (ends().fold(1.0, f64::min), ends().fold(1.0, f64::max));
    let scale = if is_wide { Scale::Log } else { Scale::Linear };
    shape(chart.x_axis(), &Axis::new(what, "", scale), (shown(least), shown(most)));
    shape(chart.y_axis(), &Axis { scale: Scale::Names, ..Axis::default() }, (0.0, 0.0));
    if is_wide {
        // Bars begin where nothing changes.
        chart.x_axis().set_num_format("General");
        chart.x_axis().set_crossing(ChartAxisCrossing::AxisValue(1.0));
    }
    // The first effect is at the top, and the values stay below.
    chart.y_axis().set_reverse().set_crossing(ChartAxisCrossing::Max);
    chart.x_axis().set_label_position(ChartAxisLabelPosition::High);
    sheet.chart(rows.1 + 2, 0, &chart)?;
    sheet.row += ROWS;
    book.push(sheet);
    Ok(())
}

//! CPU use of both hosts over time, as stacked areas.

use std::collections::BTreeMap;

use model::source::CPU;
use model::{Axis, CpuUse, EndPass, Pass, Run, Scale};
use rust_xlsxwriter::{ChartType, XlsxError};

use super::book::{Book, Sheet};
use super::charts::{ROWS, chart, colour, fill_look, range, shape};
use crate::formats::value::{Value, text};
use crate::labels;
use crate::sections::host_activity;

/// The most charts of a sheet.
const MOST_CHARTS: u32 = 24;
/// The first column of the parts.
const PARTS: u16 = 4;

/// Rows of one end: seconds, and cores for each part.
type Rows = Vec<(f64, Vec<f64>)>;

/// Adds the CPU use of each pass, and within a pass where it was recorded.
pub(super) fn add(book: &mut Book, runs: &[Run]) -> Result<(), XlsxError> {
    let of_passes = runs.iter().map(|run| (run, ends(run).map(|(name, end)| (name, passes(run, end))).collect()));
    let kinds = ["user", "kernel", "hard interrupts", "soft interrupts", "hypervisor"];
    let sheet = book.sheet("host cpu", "CPU use of each pass")?;
    stacks(book, sheet, "time since the start of the run", &kinds, of_passes.collect())?;
    let within =
        runs.iter().map(|run| (run, ends(run).filter_map(|(name, end)| Some((name, series(run, end)?))).collect()));
    let kinds = ["user, kernel and hard interrupts", "soft interrupts", "hypervisor"];
    let sheet = book.sheet("host cpu in a pass", "CPU use within the first pass that has a series")?;
    stacks(book, sheet, "time since the start of the pass", &kinds, within.collect())
}

type End = fn(&Pass) -> &EndPass;

/// The ends with a host of their own.
fn ends(run: &Run) -> impl Iterator<Item = (&'static str, End)> {
    let shared = host_activity::hosts(run).iter().any(|host| host.name == "both ends");
    let near: (&str, End) = (if shared { "both ends" } else { "near" }, |pass| &pass.near);
    let far: (&str, End) = ("far", |pass| &pass.far);
    std::iter::once(near).chain((!shared).then_some(far))
}

/// The mean of each pass, in its middle.
fn passes(run: &Run, end: End) -> Rows {
    let row = |pass: &Pass| {
        let cpu = end(pass).cpu.as_ref().filter(|cpu| cpu.window_ns > 0)?;
        Some(((pass.started_ns as f64 + pass.duration_ns as f64 / 2.0) / 1e9, parts(cpu)))
    };
    run.passes.iter().filter_map(row).collect()
}

fn parts(cpu: &CpuUse) -> Vec<f64> {
    let mut sums = [0; 5];
    for core in &cpu.cores {
        let parts = [core.user_ns, core.system_ns, core.irq_ns, core.softirq_ns, core.steal_ns];
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    sums.iter().map(|sum| *sum as f64 / cpu.window_ns as f64).collect()
}

/// The readings of the first pass with a series, summed over the cores.
fn series(run: &Run, end: End) -> Option<Rows> {
    let series = run.passes.iter().find_map(|pass| end(pass).observed.as_ref()?.series.as_ref())?;
    let mut sums: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for line in series.lines.iter().filter(|line| CPU.owns(&line.name)) {
        let Some((_, part)) = line.name.rsplit_once('.') else { continue };
        let sum = sums.entry(part).or_insert_with(|| vec![Some(0.0); series.at_ns.len()]);
        // A core that was not read makes the sum unknown.
        sum.iter_mut().zip(&line.values).for_each(|(sum, value)| *sum = sum.zip(*value).map(|(a, b)| a + b));
    }
    let at = |part: &str, index: usize| sums.get(part).map_or(Some(0.0), |sum| sum.get(index).copied().flatten());
    let row = |(index, at_ns): (usize, &u64)| {
        let (busy, softirq, steal) = (at("busy", index)?, at("softirq", index)?, at("steal", index)?);
        Some((*at_ns as f64 / 1e9, vec![(busy - softirq).max(0.0), softirq, steal]))
    };
    let rows: Rows = series.at_ns.iter().enumerate().filter_map(row).collect();
    (sums.contains_key("busy") && !rows.is_empty()).then_some(rows)
}

/// A table of all ends, and a chart for each.
fn stacks(
    book: &mut Book,
    mut sheet: Sheet,
    time: &str,
    kinds: &[&str],
    all: Vec<(&Run, Vec<(&'static str, Rows)>)>,
) -> Result<(), XlsxError> {
    let head = ["run", "name", "end"].map(str::to_owned).into_iter().chain([format!("{time} (s)")]);
    sheet.head(0, head.chain(kinds.iter().map(|kind| format!("{kind} (cores)"))))?;
    let mut charts = Vec::new();
    for (run, ends) in all {
        for (end, rows) in ends.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            let first = sheet.row;
            for (seconds, parts) in rows {
                let names = [text(&run.header.id), run.header.name.as_ref().and_then(text), text(end)];
                let numbers = std::iter::once(seconds).chain(parts).map(|number| Some(Value::Number(number)));
                sheet.line(names.into_iter().chain(numbers))?;
            }
            let of = format!("CPU use, {end}: {}", labels::title(run));
            charts.push((of, (first, sheet.row - 1)));
        }
    }
    if charts.is_empty() {
        return Ok(());
    }
    let column = sheet.free_column();
    for (index, (title, rows)) in (0..MOST_CHARTS).zip(charts) {
        let mut chart = chart(ChartType::AreaStacked, &title, kinds.len());
        for part in 0..kinds.len() {
            let at = PARTS + u16::try_from(part).unwrap_or_default();
            let drawn = chart.add_series();
            drawn.set_name((sheet.name.as_str(), 0, at));
            drawn.set_categories(&range(&sheet.name, PARTS - 1, rows)).set_values(&range(&sheet.name, at, rows));
            fill_look(drawn, colour(part));
        }
        shape(chart.x_axis(), &Axis::new(time, "s", Scale::Names), (0.0, 0.0));
        chart.x_axis().set_num_format("0.0");
        shape(chart.y_axis(), &Axis::new("CPU use", "cores", Scale::Linear), (0.0, 1.0));
        sheet.chart(1 + ROWS * index, column, &chart)?;
    }
    book.push(sheet);
    Ok(())
}

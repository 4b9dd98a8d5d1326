//! A plan's tables as text, and the preview of `thru run --dry-run`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use analysis::plan::{CellMean, PlanTable, of_set, tables};
use comfy_table::Table;
use model::{
    Factor, FactorKind, HostSettings, LINK_SETTING, Order, Outcome, Plan, Run, Stopping, Trust, Verdict, units,
};
use text::{Span, Text, say};

use crate::grid::Grid;
use crate::{Layout, labels};

/// One table of means.
pub(crate) struct TextTable {
    /// The measure and the cells that it shows.
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Text>>,
}

/// The tables of a run; none without a plan.
pub(crate) fn text_tables(run: &Run) -> Vec<TextTable> {
    let doubts = Doubts::new(run);
    tables(&run.header, &run.outcomes)
        .iter()
        .filter(|table| table.cells.iter().flatten().any(Option::is_some))
        .map(|table| text(table, &doubts))
        .collect()
}

fn text(table: &PlanTable, doubts: &Doubts) -> TextTable {
    let fixed: Vec<String> = table.held.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let fixed = if fixed.is_empty() { String::new() } else { format!("; {}", fixed.join(", ")) };
    let interval = if table.cells.iter().flatten().flatten().any(|mean| mean.low.is_some()) {
        format!(", mean of the trials with its {} % interval", labels::percent(table.confidence))
    } else {
        ", mean of the trials".to_owned()
    };
    let (corner, columns) = if table.column_factor.is_empty() {
        (table.row_factor.clone(), vec![table.measure.to_owned()])
    } else {
        (format!("{} \\ {}", table.row_factor, table.column_factor), table.columns.clone())
    };
    let head = std::iter::once(corner).chain(columns).map(|cell: String| labels::plain(&cell)).collect();
    let rows = table.rows.iter().zip(&table.cells).zip(&table.ids).map(|((level, cells), ids)| {
        let values = cells.iter().zip(ids).map(|(cell, id)| match cell {
            Some(mean) => value(mean, table.unit) + doubts.of(mean.cell),
            None => id.map_or("", |id| doubts.of(id)).trim_start().into(),
        });
        std::iter::once(Text::from(level.as_str())).chain(values).collect()
    });
    let rows = rows.collect();
    TextTable { title: labels::plain(&format!("{}{interval}{fixed}", text::capitalised(table.measure))), head, rows }
}

/// What makes the values of cells unusable.
struct Doubts(HashMap<u32, &'static str>);

impl Doubts {
    fn new(run: &Run) -> Self {
        let why = |outcome: &Outcome| {
            if outcome.summary.verdicts.contains(&Verdict::Stalled) {
                " (stalled)"
            } else if outcome.summary.trust == Some(Trust::None) {
                " (not trusted)"
            } else {
                ""
            }
        };
        // The first outcome of a cell counts.
        Self(run.outcomes.iter().rev().map(|outcome| (outcome.cell, why(outcome))).collect())
    }

    /// Of one cell, in brackets after a space; empty if it has none.
    fn of(&self, cell: u32) -> &'static str {
        self.0.get(&cell).copied().unwrap_or_default()
    }
}

/// `941 Mbit/s ±0.4 %`, with the longer arm of the interval.
pub(crate) fn value(mean: &CellMean, unit: &str) -> Text {
    let text = labels::quantity(mean.value, unit);
    match mean.low.zip(mean.high) {
        Some((low, high)) if mean.value > 0.0 => {
            let arm = (high - mean.value).max(mean.value - low) / mean.value;
            say!("{text} {}", units::plus_minus(arm))
        }
        _ => text,
    }
}

/// Tables for a terminal.
pub(crate) fn in_text(run: &Run, layout: Layout) -> String {
    grids(&text_tables(run), layout)
}

/// The tables of these measures for a terminal.
pub(crate) fn matrices_in_text(run: &Run, layout: Layout, measures: &[&str]) -> String {
    let all = tables(&run.header, &run.outcomes);
    let shown = all.iter().filter(|table| measures.contains(&table.measure));
    let doubts = Doubts::new(run);
    let matrices: Vec<TextTable> = shown.map(|table| matrix(table, &doubts)).collect();
    let ends_wide = |cell: &Text| matches!(cell.spans().last(), Some(Span::Words(words)) if words.ends_with(WIDE));
    let is_wide = matrices.iter().flat_map(|table| table.rows.iter().flatten()).any(ends_wide);
    let legend = if is_wide {
        format!("{WIDE}: the interval is wider than {} of the value\n", units::plus_minus(WIDE_FROM))
    } else {
        String::new()
    };
    grids(&matrices, layout) + &legend
}

/// Marks a value with a wide interval, from this half width on, as a share of the value.
const WIDE: &str = "~";
const WIDE_FROM: f64 = 0.25;

/// A table with the values alone, to see many at once.
fn matrix(table: &PlanTable, doubts: &Doubts) -> TextTable {
    let whole = text(table, doubts);
    let value = |mean: &CellMean| {
        let arm = mean.low.zip(mean.high).map(|(low, high)| (high - low) / 2.0 / mean.value);
        let mark = if arm.is_some_and(|arm| arm > WIDE_FROM) { WIDE } else { "" };
        say!("{}{}{mark}", labels::quantity(mean.value, table.unit), doubts.of(mean.cell))
    };
    let row = |(cells, own): (&Vec<Option<CellMean>>, Vec<Text>)| {
        let values = cells.iter().zip(own.iter().skip(1));
        let values = values.map(|(mean, own)| mean.as_ref().map_or_else(|| own.clone(), value));
        own.first().cloned().into_iter().chain(values).collect()
    };
    let rows = table.cells.iter().zip(whole.rows).map(row).collect();
    let title = text::capitalised(&format!("{}, mean of the trials", table.measure));
    TextTable { title: labels::plain(&title), head: whole.head, rows }
}

/// Tables for a terminal, an empty line before each.
pub(crate) fn grids(tables: &[TextTable], layout: Layout) -> String {
    let grid = |one: &TextTable| {
        let numeric: Vec<bool> = (0..one.head.len()).map(|column| column > 0).collect();
        let rows = layout.rows(&one.rows);
        let table = Grid { head: &one.head, rows: &rows, numeric: &numeric, names: 1 };
        format!("\n{}\n{}\n", one.title, table.text(layout.columns))
    };
    tables.iter().map(grid).collect()
}

/// What a plan will do.
#[derive(Debug)]
pub struct PlanPreview<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The stop rule.
    pub rule: &'a Stopping,
    /// Each cell by its number, or a curve by the range of its sizes' numbers, with its levels.
    pub cells: &'a [(String, BTreeMap<String, String>)],
    /// The steps of the first round: cells that run at the same time.
    pub steps: &'a [Vec<u32>],
    /// Estimated duration of a round, ns.
    pub round_ns: u64,
    /// Longest time to test again what stands out, ns.
    pub retests_ns: u64,
    /// Cells whose send method is chosen by a short trial before the first round.
    pub probed_methods: usize,
    /// Cells whose trials end after a count and are not part of `round_ns`.
    pub untimed: usize,
    /// Whether nothing tells how long queues drain after the streams, which `round_ns` leaves out.
    pub drains: bool,
    /// The earlier run that told how long tests take.
    pub earlier: Option<&'a str>,
    /// The far ends that are other programs: the program, its host, and what has to run there.
    pub programs: &'a [[String; 3]],
}

/// Most cells that a preview lists.
const MOST_LISTED: usize = 500;

/// The cells of a plan, the order of its first round and the duration, as text. Of a large plan the first cells, and the number of steps.
#[must_use]
pub fn plan_preview(preview: &PlanPreview<'_>) -> String {
    let PlanPreview { plan, .. } = preview;
    let mut text = String::new();
    for line in [&plan.title, &plan.question].into_iter().flatten() {
        text += &format!("{}\n", labels::plain(line));
    }
    let mut names: Vec<String> = plan.factors.iter().map(|factor| factor.name.clone()).collect();
    names.extend(["from", "to"].map(str::to_owned));
    names.retain(|name| preview.cells.iter().any(|(_, levels)| levels.contains_key(name)));
    let mut table = Table::new();
    table.load_style(labels::TABLE);
    table.set_header(std::iter::once("cell".to_owned()).chain(names.iter().map(|name| labels::plain(name))));
    for (id, levels) in preview.cells.iter().take(MOST_LISTED) {
        let levels = names.iter().map(|name| labels::plain(levels.get(name).map_or("", String::as_str)));
        table.add_row(std::iter::once(id.clone()).chain(levels));
    }
    text += &format!("\n{}\n", table.trim_fmt());
    let unlisted = preview.cells.len().saturating_sub(MOST_LISTED);
    if unlisted > 0 {
        text += &format!("and {unlisted} more\n");
    }
    text += &first_round(preview, unlisted > 0);
    if preview.cells.iter().any(|(id, _)| id.contains(' ')) {
        text += "A curve is listed by its first cell.\n";
    }
    if preview.probed_methods > 0 {
        let plural = if preview.probed_methods == 1 { "" } else { "s" };
        text +=
            &format!("First, send methods are compared for {} cell{plural}, about 3 s each.\n", preview.probed_methods);
    }
    for [program, host, server] in preview.programs {
        text += &format!("The far end {} speaks {program}: it needs {server}\n", labels::plain(host));
    }
    text += &changes(plan);
    text += &duration(preview);
    if preview.untimed > 0 {
        text += &format!(
            "Not included: the trials of {}, which end after a count at an unknown rate\n",
            if preview.untimed == 1 { "1 cell".to_owned() } else { format!("{} cells", preview.untimed) }
        );
    }
    if let Some(earlier) = preview.earlier {
        text += &format!("The time around each test is that of the run {}\n", labels::plain(earlier));
    }
    if preview.drains {
        text += "Not included: the time in which queues drain after each stream; it is known after a run between these hosts\n";
    }
    text
}

/// The steps of the first round; where the plan is `large`, their number and size.
fn first_round(preview: &PlanPreview<'_>, large: bool) -> String {
    let PlanPreview { plan, rule, steps, .. } = preview;
    let drawn = match rule.order {
        Order::Random => format!(" (random, seed {})", rule.seed),
        _ => String::new(),
    };
    let count = if steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", steps.len()) };
    let most = steps.iter().map(Vec::len).max().unwrap_or_default();
    let shared = plan.groups().is_some() || plan.traffic.is_some() || plan.light.is_some();
    let place = if shared { "" } else { ", between different hosts" };
    if large {
        let together = if most > 1 { format!(" of up to {most} cells{place}") } else { String::new() };
        return format!("\nThe first round{drawn} has {count}{together}\n");
    }
    let step = |step: &Vec<u32>| step.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    let listed = steps.iter().map(step).collect::<Vec<_>>().join(" ");
    let joined = if most > 1 { format!("Cells joined by + run at the same time{place}.\n") } else { String::new() };
    format!("\nOrder of the first round{drawn}, in {count}: {listed}\n{joined}")
}

fn changes(plan: &Plan) -> String {
    let mut text = String::new();
    let HostSettings { near, far, links } = &plan.settings;
    let single: Vec<Factor> = plan.factors.iter().flat_map(single_factors).collect();
    for (end, settings) in [("near", near), ("far", far), ("links", links)] {
        let varied = single.iter().filter(|factor| match end {
            "near" => !is_of_link(factor) && factor.end.ends()[0],
            "far" => !is_of_link(factor) && factor.end.ends()[1],
            _ => is_of_link(factor),
        });
        let varied = varied.filter(|factor| factor.kind == FactorKind::Setting);
        let fixed = settings.iter().map(|setting| labels::plain(&setting.to_string()));
        let all: Vec<String> = fixed.chain(varied.map(|factor| format!("{} by {}", factor.key, factor.name))).collect();
        if !all.is_empty() {
            let of = if end == "links" { "lab's links".to_owned() } else { format!("{end} host") };
            text += &format!("Settings of the {of}, restored at the end: {}\n", all.join("; "));
        }
    }
    let expensive: Vec<&str> =
        plan.factors.iter().filter(|factor| factor.expensive).map(|factor| factor.name.as_str()).collect();
    if !expensive.is_empty() {
        text += &format!("Expensive to change, so varied in the outer loop: {}\n", expensive.join(", "));
    }
    text
}

/// Whether it is a property of the lab's links.
fn is_of_link(factor: &Factor) -> bool {
    factor.key.starts_with(LINK_SETTING)
}

/// A set of settings as one factor for each of them.
fn single_factors(factor: &Factor) -> Vec<Factor> {
    if factor.kind != FactorKind::Set {
        return vec![factor.clone()];
    }
    let keys: BTreeSet<&String> = factor.sets.values().flat_map(BTreeMap::keys).collect();
    keys.into_iter().map(|key| of_set(factor, key)).collect()
}

fn duration(preview: &PlanPreview<'_>) -> String {
    let rule = preview.rule;
    let rounds = |count: u32| units::seconds(preview.round_ns as f64 * f64::from(count));
    if let Some(every) = preview.plan.schedule {
        return format!(
            "Duration: {} times, every {} for {}, about {} each\n",
            every.times(),
            units::seconds(every.every_ns as f64),
            units::seconds(every.for_ns as f64),
            rounds(rule.min_trials)
        );
    }
    let budget =
        rule.budget_ns.map(|ns| format!(", at most {} in total", units::seconds(ns as f64))).unwrap_or_default();
    if rule.min_trials == rule.max_trials {
        let plural = if rule.min_trials == 1 { "" } else { "s" };
        let duration = rounds(rule.min_trials);
        let retests = match preview.retests_ns {
            0 => String::new(),
            ns => format!(", and up to {} for what stands out", units::seconds(ns as f64)),
        };
        return format!("Duration: about {duration} ({} round{plural}{budget}){retests}\n", rule.min_trials);
    }
    format!(
        "Duration: about {} to {} ({} to {} rounds, until the interval is ±{} %{budget})\n",
        rounds(rule.min_trials),
        rounds(rule.max_trials),
        rule.min_trials,
        rule.max_trials,
        labels::percent(rule.target)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn tables_have_rows_and_columns_of_levels() {
        let text = in_text(&sample::planned(), Layout::default());
        assert!(text.contains("Goodput, mean of the trials with its 95 % interval"), "{text}");
        assert!(text.contains("block \\ sndbuf") && text.contains("64KiB"), "{text}");
        assert!(text_tables(&sample::stream()).is_empty());
    }

    #[test]
    fn a_stalled_cell_is_marked_with_and_without_a_value() {
        let mut run = sample::planned();
        let table = |run: &Run| in_text(run, Layout::default()).split("\n\n").next().unwrap_or_default().to_owned();
        assert_eq!(table(&run).matches("(stalled)").count(), 0);
        for outcome in &mut run.outcomes[..2] {
            outcome.summary.verdicts.push(Verdict::Stalled);
        }
        run.outcomes[0].trials.clear();
        assert_eq!(table(&run).matches("(stalled)").count(), 2, "{}", table(&run));
    }

    fn preview<'a>(
        run: &'a Run,
        cells: &'a [(String, BTreeMap<String, String>)],
        steps: &'a [Vec<u32>],
    ) -> PlanPreview<'a> {
        PlanPreview {
            plan: run.header.plan.as_ref().unwrap(),
            rule: &run.header.stopping,
            cells,
            steps,
            round_ns: 2_000_000_000,
            retests_ns: 0,
            probed_methods: 0,
            untimed: 0,
            drains: false,
            earlier: None,
            programs: &[],
        }
    }

    #[test]
    fn a_preview_has_cells_order_and_duration() {
        let run = sample::planned();
        let cells: Vec<_> = run.header.cells.iter().map(|cell| (cell.id.to_string(), cell.levels.clone())).collect();
        let steps = [vec![1], vec![0], vec![2, 3]];
        let programs = [["iperf3".into(), "b".into(), "iperf3 -s".into()]];
        let preview = PlanPreview {
            untimed: 1,
            drains: true,
            earlier: Some("20261128-1"),
            programs: &programs,
            ..preview(&run, &cells, &steps)
        };
        let text = plan_preview(&preview);
        assert!(text.contains("(random, seed 1), in 3 steps: 1 0 2+3") && text.contains("at the same time"), "{text}");
        assert!(text.contains("The far end b speaks iperf3: it needs iperf3 -s\n"), "{text}");
        assert!(text.contains("Not included: the trials of 1 cell, which end after a count"), "{text}");
        assert!(text.contains("\nThe time around each test is that of the run 20261128-1\n"), "{text}");
        assert!(text.contains("\nNot included: the time in which queues drain after each stream;"), "{text}");
        assert!(text.contains("about 6.00 s to 128 s (3 to 64 rounds, until the interval is ±2 %)"), "{text}");
        let times = Plan {
            schedule: Some(model::Every { every_ns: 900_000_000_000, for_ns: 3_600_000_000_000 }),
            ..(**run.header.plan.as_ref().unwrap()).clone()
        };
        let text = plan_preview(&PlanPreview { plan: &times, ..preview });
        assert!(text.contains("5 times, every 900 s for 3600 s"), "{text}");
    }

    #[test]
    fn a_preview_of_a_large_plan_lists_its_first_cells() {
        let run = sample::planned();
        let cells: Vec<_> = (0..2_000).map(|id| (id.to_string(), run.header.cells[0].levels.clone())).collect();
        let steps: Vec<Vec<u32>> = (0..20).map(|step| (step * 100..step * 100 + 100).collect()).collect();
        let text = plan_preview(&preview(&run, &cells, &steps));
        assert!(text.contains("\nand 1500 more\n") && text.lines().count() < 530, "{text}");
        assert!(text.contains("has 20 steps of up to 100 cells, between different hosts\n"), "{text}");
        assert!(text.lines().all(|line| line.len() < 200), "{text}");
    }
}

//! The answer of a plan on a screen: what is best and by how much, what does not matter, what limits which cells, and its tables where
//! they are short. Everything else is in the whole report.

use model::{FindingKind, Run};
use text::{Text, say};

use super::mesh_screen;
use crate::grid::Grid;
use crate::headline::headline;
use crate::lines::{hanging, wrapped};
use crate::screens::plan::{TextTable, grids, text_tables};
use crate::sections::plan_answer;
use crate::{Layout, labels};

/// Width of the titles.
const TITLE: usize = 14;
/// Rows of tables that a screen shows.
const MOST_ROWS: usize = 40;

/// The screen; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = answer(run, layout);
    let tables = short_tables(run);
    text += &grids(&tables, layout);
    text.push('\n');
    for (title, row) in
        [mesh_screen::missing(run).map(|row| ("No value", row)), mesh_screen::caveats(run).map(|row| ("Caveats", row))]
            .into_iter()
            .flatten()
    {
        titled(title, &row, layout, &mut text);
    }
    for (title, row) in next(run, tables.is_empty(), whole) {
        titled(title, &row, layout, &mut text);
    }
    text
}

/// The answer in a line, its rows, and the figures of each curve.
pub(super) fn answer(run: &Run, layout: Layout) -> String {
    let mut text = String::new();
    wrapped("", &headline(run), layout, &mut text);
    text.push('\n');
    if let Some(curves) = plan_answer::curves(run) {
        let rows = layout.rows(&curves.rows);
        let numeric: Vec<bool> = (0..curves.head.len()).map(|at| at >= curves.names).collect();
        let grid = Grid { head: &curves.head, rows: &rows, numeric: &numeric, names: curves.names };
        text += &format!("{}\n{}\n\n", curves.title, grid.text(layout.columns));
    }
    for (title, row) in plan_answer::rows(run) {
        titled(title, &row, layout, &mut text);
    }
    text
}

fn titled(title: &str, row: &Text, layout: Layout, text: &mut String) {
    hanging(&format!("{title:<0$}", TITLE - 1), row, TITLE, layout, text);
}

/// The tables of the plan, if they are short. Those of curves have a row for each size, and the figures of each curve stand for them.
fn short_tables(run: &Run) -> Vec<TextTable> {
    let tables = text_tables(run);
    let rows: usize = tables.iter().map(|table| table.rows.len()).sum();
    if rows > MOST_ROWS || run.header.cells.iter().any(|cell| cell.spec.is_point()) { Vec::new() } else { tables }
}

fn next(run: &Run, without_tables: bool, whole: &str) -> Vec<(&'static str, Text)> {
    let mut rows = Vec::new();
    let is_stored = whole.contains(&run.header.id);
    if is_stored && run.findings.iter().any(|finding| finding.kind == FindingKind::Limits) {
        rows.push(("Next", say!("`thru why {}` (what limits each cell, with the evidence)", run.header.id)));
    }
    if is_stored {
        rows.push(("Figures", say!("`thru report {} -o {}.html`", run.header.id, file_stem(run))));
    }
    let tables = if without_tables { "its tables, " } else { "" };
    rows.push(("More", say!("{whole}: {tables}effects and interactions, every cell with its trials and trust")));
    rows
}

fn file_stem(run: &Run) -> String {
    crate::view::safe_name(&labels::plain(run.header.name.as_deref().unwrap_or("plan")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_answer_is_in_the_first_lines_and_short_tables_follow() {
        let mut run = sample::planned();
        run.findings = analysis::of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        let question = "Which buffer is best for which blocks?".to_owned();
        run.header.plan.as_mut().unwrap().question = Some(question.clone());
        let text = screen(&run, Layout::default(), &format!("`thru show {} -v`", run.header.id));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(&question), "{text}");
        let at = |title: &str| lines.iter().position(|line| line.starts_with(title));
        let levels = at("Best").or(at("No clear best")).unwrap();
        assert!(levels < 12 && at("Goodput  ").unwrap() < levels, "{text}");
        assert!(
            text.contains("block \\ sndbuf") && text.contains(&format!("thru report {} -o ", run.header.id)),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }
}

//! The comparison of stored runs, for a terminal.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table};
use model::{CellComparison, RunComparison, RunName, Unpaired};

use crate::labels;
use crate::limiter::wrapped;

/// The comparison as text: the runs, a line for each cell, configuration differences and caveats, in lines of at most `columns`
/// apart from the table.
#[must_use]
pub fn comparison(found: &RunComparison, columns: u16) -> String {
    let columns = usize::from(columns);
    let mut text = format!("A: {}\nB: {}\n\n", runs(&found.a), runs(&found.b));
    let mut table = Table::new();
    table.load_style(labels::TABLE);
    let levels = found.cells.iter().any(|cell| !cell.levels.is_empty());
    let head = ["pattern", "block", "cell", "A", "B", "B/A", "95 % interval", "p (Holm)", "answer"];
    // The column of cells is shown only if there are levels.
    let shown = |at: usize| levels || head[at] != "cell";
    let kept = |row: [String; 9]| row.into_iter().enumerate().filter(|(at, _)| shown(*at)).map(|(_, text)| text);
    table.set_header(kept(head.map(str::to_owned)));
    table.add_rows(found.cells.iter().map(|cell| kept(row(cell))));
    for (at, column) in (0..head.len()).filter(|at| shown(*at)).zip(table.column_iter_mut()) {
        if !["pattern", "cell", "answer"].contains(&head[at]) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text.push_str(&format!("{}\n", table.trim_fmt()));
    unpaired(&found.unpaired, columns, &mut text);
    if found.differences.is_empty() {
        text.push_str("\nNo configuration difference was recorded.\n");
    } else {
        text.push_str("\nConfiguration differences\n");
        for one in &found.differences {
            let line = format!("{} {}: {} -> {}", one.of, one.field, one.a, one.b);
            wrapped("- ", &line, columns, &mut text);
        }
    }
    text.push_str("\nCaveats\n");
    found.notes.iter().for_each(|note| wrapped("- ", note, columns, &mut text));
    text
}

fn runs(names: &[RunName]) -> String {
    let one = |run: &RunName| {
        let name = run.name.as_ref().map(|name| format!("{} ", labels::plain(name))).unwrap_or_default();
        let build = match run.far_build == run.near_build {
            true => run.near_build.clone(),
            false => format!("{}, far end {}", run.near_build, run.far_build),
        };
        format!("{name}{} ({}, {})", labels::plain(&run.id), labels::when(run.started_unix_ns), labels::plain(&build))
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The most cells of a kind that are listed by name.
const MAX_LISTED: usize = 40;

/// The unpaired cells, an entry for each side and reason.
fn unpaired(cells: &[Unpaired], columns: usize, text: &mut String) {
    let mut kinds: Vec<((&str, &str), Vec<&Unpaired>)> = Vec::new();
    for cell in cells {
        let kind = (cell.side.as_str(), cell.why.as_str());
        match kinds.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, all)) => all.push(cell),
            None => kinds.push((kind, vec![cell])),
        }
    }
    if !kinds.is_empty() {
        text.push_str("\nUnpaired cells\n");
    }
    for ((side, why), all) in &kinds {
        let named: Vec<String> = all.iter().take(MAX_LISTED).map(|cell| cell_name(cell)).collect();
        let more = all.len().saturating_sub(MAX_LISTED);
        let rest = if more > 0 { format!("; {more} more: see `json`") } else { String::new() };
        let entry = format!("{}, {} ({why}): {}{rest}", side.to_uppercase(), all.len(), named.join("; "));
        wrapped("- ", &entry, columns, text);
    }
}

/// The pattern, block and levels of a cell.
fn cell_name(cell: &Unpaired) -> String {
    let own = levels(&cell.levels);
    let separator = if own.is_empty() { "" } else { ", " };
    format!("{} {}{separator}{own}", cell.pattern, labels::block(cell.block))
}

fn levels(levels: &BTreeMap<String, String>) -> String {
    levels.iter().map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ")
}

fn row(cell: &CellComparison) -> [String; 9] {
    let interval = match (cell.ratio.low, cell.ratio.high) {
        (Some(low), Some(high)) => format!("{low:.4} to {high:.4}"),
        _ => "-".to_owned(),
    };
    let p = match cell.comparison.p_value {
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
        None => "-".to_owned(),
    };
    [
        labels::plain(&cell.pattern),
        labels::block(cell.block),
        labels::plain(&levels(&cell.levels)),
        labels::quantity(cell.a, &cell.unit),
        labels::quantity(cell.b, &cell.unit),
        format!("{:.4}", cell.ratio.value),
        interval,
        p,
        labels::answer(cell.comparison.answer).to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Answer, Comparison, Difference, Estimate};

    #[test]
    fn figures_differences_and_notes_are_printed() {
        let string = |text: &str| text.to_owned();
        let ratio = Estimate {
            statistic: string("ratio"),
            unit: string("ratio"),
            value: 0.97,
            low: Some(0.96),
            high: Some(0.98),
            confidence: 0.95,
            method: string("t"),
            n: 12,
        };
        let comparison = Comparison {
            answer: Answer::Worse,
            tolerance: 0.01,
            higher_is_better: true,
            p_value: Some(0.0004),
            adjusted_low: None,
            adjusted_high: None,
            ratios: Vec::new(),
        };
        let name = |id: &str| RunName {
            id: id.into(),
            name: Some("x\u{1b}[2J".into()),
            started_unix_ns: 0,
            near_build: string("thru 0.1.0"),
            far_build: string("thru 0.2.0"),
        };
        let left = |side: &str, to: &str| model::Unpaired {
            side: string(side),
            run: string("one"),
            cell: 1,
            pattern: string("stream"),
            block: 1,
            unit: string("bit/s"),
            levels: [(string("to"), string(to))].into(),
            why: string("no such cell"),
        };
        let found = RunComparison {
            schema: RunComparison::SCHEMA.into(),
            a: vec![name("one")],
            b: vec![name("two"), name("three")],
            answer: Answer::Worse,
            cells: vec![CellComparison {
                pattern: string("stream"),
                block: 65_536,
                levels: [(string("from"), string("cz"))].into(),
                unit: string("bit/s"),
                a: 1e9,
                b: 0.97e9,
                ratio,
                comparison,
            }],
            unmatched: 3,
            unpaired: vec![left("a", "fi"), left("a", "no"), left("b", "cz")],
            differences: vec![Difference {
                of: string("far"),
                field: string("kernel"),
                a: string("6.1"),
                b: string("6.2"),
            }],
            notes: vec![string("not paired")],
        };
        let text = super::comparison(&found, 100);
        for part in
            ["64 KiB", "0.9600 to 0.9800", "< 0.001", "worse", "from cz", "far kernel: 6.1 -> 6.2", "not paired"]
        {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        for line in [
            "- A, 2 (no such cell): stream 1 B, to fi; stream 1 B, to no\n",
            "- B, 1 (no such cell): stream 1 B, to cz\n",
            "thru 0.1.0, far end thru 0.2.0",
        ] {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        assert!(text.contains("three") && !text.contains('\u{1b}'), "{text:?}");
    }
}

//! The comparison of stored runs, for a terminal.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table};
use model::{Answer, CellComparison, Difference, RunComparison, RunName, Unpaired};
use text::{Text, say};

use crate::lines::{cut, hanging, wrapped};
use crate::{Layout, labels};

/// The comparison as text: the runs, the answer, a line for each cell, what changed most first, configuration differences and
/// caveats. A screen of them; with `whole` every cell with its p-value, and every difference.
#[must_use]
pub fn comparison(found: &RunComparison, layout: Layout, whole: bool) -> String {
    let most = |few: usize| if whole { usize::MAX } else { few };
    let mut text = String::new();
    for (side, of) in [("A:", &found.a), ("B:", &found.b)] {
        let mut line = String::new();
        hanging(side, &runs(of, whole).into(), 3, layout, &mut line);
        text += &if whole { line } else { cut(&line, 1, layout.width()) };
    }
    text.push('\n');
    wrapped("", &found.statement, layout, &mut text);
    text.push('\n');
    let mut cells: Vec<&CellComparison> = found.cells.iter().collect();
    if whole {
        text += &whole_table(&cells, layout);
    } else {
        cells.sort_by(|a, b| {
            (is_change(b), change(b)).partial_cmp(&(is_change(a), change(a))).unwrap_or(Ordering::Equal)
        });
        cells.truncate(FEW_CELLS);
        text += &table(&cells, layout);
    }
    if found.cells.len() > cells.len() {
        text.push_str(&format!("{} more cells: `-v`\n", found.cells.len() - cells.len()));
    }
    let mut left = String::new();
    unpaired(&found.unpaired, most(FEW_UNPAIRED), layout, &mut left);
    text.push_str(&first_lines(&left, most(FEW_LINES)));
    // What the plans of both sides say of them is what is compared.
    let labels = found.differences.iter().filter(|one| one.of == "plan").count();
    text.push_str(&first_lines(&configuration(&found.differences, layout), most(FEW_LINES + labels)));
    let mut caveats = "\nCaveats\n".to_owned();
    for note in &found.notes {
        let mut lines = String::new();
        wrapped("- ", note, layout, &mut lines);
        caveats += &if whole { lines } else { cut(&lines, 1, layout.width()) };
    }
    text.push_str(&first_lines(&caveats, most(FEW_LINES)));
    text
}

/// Without `whole`: the most cells, the most names of unpaired cells, and the most lines of each section with the empty one above it.
const FEW_CELLS: usize = 5;
const FEW_UNPAIRED: usize = 2;
const FEW_LINES: usize = 4;

/// The cells with both values, the difference with its interval, and the answer.
fn table(cells: &[&CellComparison], layout: Layout) -> String {
    let head = ["cell", "A", "B", "B to A (interval)", "answer"].map(str::to_owned);
    let row = |cell: &&CellComparison| {
        let own = levels(&cell.levels);
        let block = format!("{} {}", cell.pattern, labels::block(cell.block));
        let name = if own.is_empty() { block } else { format!("{block}, {own}") };
        let values = [cell.a, cell.b].map(|value| layout.shown(&labels::quantity(value, &cell.unit)));
        let [a, b] = values;
        let answer = labels::answer(cell.comparison.answer).to_owned();
        vec![labels::plain(&name), a, b, labels::change(&cell.ratio, &cell.comparison), answer]
    };
    let rows: Vec<Vec<String>> = cells.iter().map(row).collect();
    let width =
        |at: usize| rows.iter().map(|row| row[at].chars().count()).chain([head[at].chars().count()]).max().unwrap_or(0);
    let fixed: usize = (1..5).map(|at| width(at) + 2).sum();
    let first = width(0).min(layout.width().saturating_sub(fixed).max(8));
    let line = |row: &[String]| {
        let name: String = match row[0].chars().count() {
            count if count > first => row[0].chars().take(first - 1).chain(['…']).collect(),
            _ => row[0].clone(),
        };
        let rest: String = (1..5).map(|at| format!("  {:<1$}", row[at], width(at))).collect();
        format!("{}\n", format!("{name:<first$}{rest}").trim_end())
    };
    line(&head) + &rows.iter().map(|row| line(row)).collect::<String>()
}

fn whole_table(cells: &[&CellComparison], layout: Layout) -> String {
    let mut table = Table::new();
    table.load_style(labels::TABLE);
    let levels = cells.iter().any(|cell| !cell.levels.is_empty());
    let head = ["pattern", "block", "cell", "A", "B", "B/A", "95 % interval", "p", "answer"];
    // The column of cells is shown only if there are levels.
    let shown = |at: usize| levels || head[at] != "cell";
    let kept = |row: [String; 9]| row.into_iter().enumerate().filter(|(at, _)| shown(*at)).map(|(_, text)| text);
    table.set_header(kept(head.map(str::to_owned)));
    table.add_rows(cells.iter().map(|cell| kept(row(cell, layout))));
    for (at, column) in (0..head.len()).filter(|at| shown(*at)).zip(table.column_iter_mut()) {
        if !["pattern", "cell", "answer"].contains(&head[at]) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n", table.trim_fmt())
}

/// The first lines of a section, and how many more there are.
fn first_lines(section: &str, most: usize) -> String {
    let count = section.lines().count();
    if count <= most {
        return section.to_owned();
    }
    let kept: String = section.lines().take(most - 1).map(|line| format!("{line}\n")).collect();
    format!("{kept}  {} more lines: `-v`\n", count - (most - 1))
}

fn is_change(cell: &CellComparison) -> bool {
    matches!(cell.comparison.answer, Answer::Worse | Answer::Better)
}

/// How far the ratio is from 1, either way.
fn change(cell: &CellComparison) -> f64 {
    let distance = cell.ratio.value.ln().abs();
    if distance.is_finite() { distance } else { 0.0 }
}

/// The differences of the two sides. Facts that one side lacks altogether, as an import does, are counted and not listed.
fn configuration(differences: &[Difference], layout: Layout) -> String {
    if differences.is_empty() {
        return "\nNo configuration difference was recorded.\n".to_owned();
    }
    let mut text = "\nConfiguration differences\n".to_owned();
    for (side, is_missing) in [("A", (|one| one.a == "-") as fn(&Difference) -> bool), ("B", |one| one.b == "-")] {
        let missing: Vec<&Difference> = differences.iter().filter(|one| is_missing(one)).collect();
        match missing.as_slice() {
            [] => {}
            few if few.len() <= FEW_MISSING => {
                for one in few {
                    wrapped("- ", &named(one), layout, &mut text);
                }
            }
            many => {
                let line = say!("{} facts that were not recorded of {side}: see `--json`", many.len());
                wrapped("- ", &line, layout, &mut text);
            }
        }
    }
    let known = |one: &&Difference| one.a != "-" && one.b != "-";
    for one in differences.iter().filter(known) {
        wrapped("- ", &named(one), layout, &mut text);
    }
    text
}

fn named(one: &Difference) -> Text {
    say!("{}: {} -> {}", format!("{} {}", one.of, one.field).trim_end(), one.a, one.b)
}

/// The most facts of one side alone that are listed.
const FEW_MISSING: usize = 5;

/// The runs of a side, with `whole` with the programs that measured them.
fn runs(names: &[RunName], whole: bool) -> String {
    let one = |run: &RunName| {
        let name = run.name.as_ref().map(|name| format!("{} ", labels::plain(name))).unwrap_or_default();
        let build = match run.far_build == run.near_build {
            true => run.near_build.clone(),
            false => format!("{}, far end {}", run.near_build, run.far_build),
        };
        let build = if whole { format!(", {}", labels::plain(&build)) } else { String::new() };
        format!("{name}{} ({}{build})", labels::plain(&run.id), labels::when(run.started_unix_ns))
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The unpaired cells, an entry for each side and reason, which names at most so many.
fn unpaired(cells: &[Unpaired], most: usize, layout: Layout, text: &mut String) {
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
        let named: Vec<String> = all.iter().take(most).map(|cell| cell_name(cell)).collect();
        let more = all.len().saturating_sub(most);
        let rest = if more > 0 { say!("; {more} more: see `--json`") } else { Text::default() };
        let entry = say!("{}, {} ({why}): {}{rest}", side.to_uppercase(), all.len(), named.join("; "));
        wrapped("- ", &entry, layout, text);
    }
}

/// The pattern, block and levels of a cell.
fn cell_name(cell: &Unpaired) -> String {
    let own = levels(&cell.levels);
    let separator = if own.is_empty() { "" } else { ", " };
    format!("{} {}{separator}{own}", cell.pattern, labels::block(cell.block))
}

pub(crate) fn levels(levels: &BTreeMap<String, String>) -> String {
    levels.iter().map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ")
}

fn row(cell: &CellComparison, layout: Layout) -> [String; 9] {
    let interval = match (cell.comparison.adjusted_low, cell.comparison.adjusted_high) {
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
        layout.shown(&labels::quantity(cell.a, &cell.unit)),
        layout.shown(&labels::quantity(cell.b, &cell.unit)),
        format!("{:.4}", cell.ratio.value),
        interval,
        p,
        labels::answer(cell.comparison.answer).to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Comparison, Estimate};

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
            adjusted_low: Some(0.95),
            adjusted_high: Some(0.99),
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
            statement: string("B is worse than A by more than 1.00 %: B's goodput differs by -3.00 %.").into(),
            cells: vec![CellComparison {
                pattern: string("stream"),
                block: 65_536,
                levels: [(string("from"), string("cz"))].into(),
                unit: string("bit/s"),
                a: 1e9,
                b: 0.97e9,
                ratio,
                comparison,
                trust: None,
            }],
            unmatched: 3,
            unpaired: vec![left("a", "fi"), left("a", "no"), left("b", "cz")],
            differences: vec![Difference {
                of: string("far"),
                field: string("kernel"),
                a: string("6.1"),
                b: string("6.2"),
            }],
            notes: vec![string("not paired").into()],
        };
        let text = super::comparison(&found, Layout::default(), true);
        for part in
            ["64 KiB", "0.9500 to 0.9900", "< 0.001", "worse", "from cz", "far kernel: 6.1 -> 6.2", "not paired"]
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
        assert!(
            text.contains("\n\nB is worse than A by more than 1.00 %: B's goodput differs by -3.00 %.\n\n"),
            "{text}"
        );

        // Many cells, differences and notes.
        let cell = |index: usize| {
            let mut cell = found.cells[0].clone();
            cell.block = index as u64;
            cell.ratio.value = 1.0 + index as f64 / 100.0;
            if index < 30 {
                cell.comparison.answer = Answer::CannotTell;
            }
            cell
        };
        let difference = |index: usize| {
            let a = if index < 5 { string("1") } else { string("-") };
            Difference { of: string("near"), field: format!("sysctl.{index}"), a, b: string("2") }
        };
        let many = RunComparison {
            cells: (0..40).map(cell).collect(),
            differences: (0..900).map(difference).collect(),
            notes: (0..30).map(|index| format!("note {index}").into()).collect(),
            unpaired: (0..99).map(|_| left("a", "fi")).collect(),
            ..found
        };
        let text = super::comparison(&many, Layout { columns: 80, ..Layout::default() }, false);
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("35 more cells: `-v`"), "{text}");
        assert!(text.contains("895 facts that were not recorded of A"), "{text}");
        assert!(text.contains("  +39 % (-5.0 % to -1.0 %)  worse\n"), "{text}");
        assert!(text.find("+39 %").unwrap() < text.find("+35 %").unwrap() && !text.contains("+34 %"), "{text}");
        let whole = super::comparison(&many, Layout::default(), true);
        assert!(whole.contains("1.0100") && whole.contains("note 29"), "{whole}");
    }
}

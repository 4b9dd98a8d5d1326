//! Stored runs against each other, for a terminal.

use comfy_table::{CellAlignment, Table};
use model::{CellComparison, RunComparison, RunName};

use crate::words;

/// The comparison as text: the runs, a line for each cell, in what the sides differ, and what to know.
#[must_use]
pub fn comparison(found: &RunComparison) -> String {
    let mut text = format!("A: {}\nB: {}\n\n", runs(&found.a), runs(&found.b));
    let mut table = Table::new();
    table.load_style(words::TABLE);
    table.set_header(["pattern", "block", "A", "B", "B/A", "95 % interval", "p (Holm)", "answer"]);
    table.add_rows(found.cells.iter().map(row));
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    text.push_str(&format!("{}\n", table.trim_fmt()));
    if found.unmatched > 0 {
        text.push_str(&format!("{} more on one side only.\n", found.unmatched));
    }
    if found.differences.is_empty() {
        text.push_str("\nHosts, programs and specs are the same on both sides.\n");
    } else {
        text.push_str("\nWhat differs beside the figures\n");
        for one in &found.differences {
            let line = format!("- {} {}: {} -> {}", one.of, one.field, one.a, one.b);
            text.push_str(&format!("{}\n", words::plain(&line)));
        }
    }
    text.push_str("\nTo know\n");
    found.notes.iter().for_each(|note| text.push_str(&format!("- {}\n", words::plain(note))));
    text
}

fn runs(names: &[RunName]) -> String {
    let one = |run: &RunName| {
        let name = run.name.as_ref().map(|name| format!("{} ", words::plain(name))).unwrap_or_default();
        format!("{name}{} ({})", words::plain(&run.id), words::when(run.started_unix_ns))
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn row(cell: &CellComparison) -> Vec<String> {
    let interval = match (cell.ratio.low, cell.ratio.high) {
        (Some(low), Some(high)) => format!("{low:.4} to {high:.4}"),
        _ => "-".to_owned(),
    };
    let p = match cell.comparison.p_value {
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
        None => "-".to_owned(),
    };
    vec![
        words::plain(&cell.pattern),
        words::block(cell.block),
        words::quantity(cell.a, &cell.unit),
        words::quantity(cell.b, &cell.unit),
        format!("{:.4}", cell.ratio.value),
        interval,
        p,
        words::answer(cell.comparison.answer).to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Answer, Comparison, Difference, Estimate};

    #[test]
    fn figures_differences_and_notes_are_all_there() {
        let words = |text: &str| text.to_owned();
        let ratio = Estimate {
            statistic: words("ratio"),
            unit: words("ratio"),
            value: 0.97,
            low: Some(0.96),
            high: Some(0.98),
            confidence: 0.95,
            method: words("t"),
            n: 12,
        };
        let comparison = Comparison {
            answer: Answer::Worse,
            tolerance: 0.01,
            higher_is_better: true,
            p_value: Some(0.0004),
            judged_low: None,
            judged_high: None,
            ratios: Vec::new(),
        };
        let name = |id: &str| RunName { id: id.into(), name: Some("x\u{1b}[2J".into()), started_unix_ns: 0 };
        let found = RunComparison {
            schema: RunComparison::SCHEMA.into(),
            a: vec![name("one")],
            b: vec![name("two"), name("three")],
            answer: Answer::Worse,
            cells: vec![CellComparison {
                pattern: words("stream"),
                block: 65_536,
                unit: words("bit/s"),
                a: 1e9,
                b: 0.97e9,
                ratio,
                comparison,
            }],
            unmatched: 3,
            differences: vec![Difference {
                of: words("far"),
                field: words("kernel"),
                a: words("6.1"),
                b: words("6.2"),
            }],
            notes: vec![words("not paired")],
        };
        let text = super::comparison(&found);
        for part in ["64 KiB", "0.9600 to 0.9800", "< 0.001", "worse", "3 more", "far kernel: 6.1 -> 6.2", "not paired"]
        {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.contains("three") && !text.contains('\u{1b}'), "{text:?}");
    }
}

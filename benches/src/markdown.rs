//! The table of a stored run for the manual.

use crate::goal_record::GoalRecord;
use crate::peer::OURS;
use crate::record::{Record, WorkRecord};
use crate::table::{interval, reached, word};
use crate::verdict::Ratio;

/// A Markdown table with a row for each work, below a line on the run.
pub fn render(record: &Record) -> String {
    let mut text = format!(
        "Run of {} with {}, Linux {}, {}, {} cores, commit {}; {} rounds; {}.\n\n\
         | work | thru | thru / tool (interval), thru is | goals |\n| --- | --- | --- | --- |\n",
        record.started,
        record.tools.iter().map(|tool| named(&tool.name, tool.version.as_deref())).collect::<Vec<_>>().join(", "),
        record.machine.kernel,
        record.machine.cpu,
        record.machine.cores,
        record.source.text(),
        record.rounds,
        record.confidence.text(),
    );
    for work in &record.works {
        text += &row(work);
    }
    text.trim_end().to_owned()
}

fn named(name: &str, version: Option<&str>) -> String {
    version.map_or(name.to_owned(), |version| format!("{name} {version}"))
}

fn row(work: &WorkRecord) -> String {
    let ours = work.tools.iter().find(|shown| shown.tool == OURS).and_then(|shown| shown.median);
    let number = ours.map_or("none".to_owned(), |value| work.unit.text(value));
    let ratios: Vec<String> = work.ratios.iter().map(ratio).collect();
    let goals: Vec<String> = work.goals.iter().map(|record| goal(work, record)).collect();
    format!("| `{}`: {} | {number} | {} | {} |\n", work.id, work.title, ratios.join("; "), goals.join("; "))
}

fn ratio(ratio: &Ratio) -> String {
    let interval = interval(ratio);
    let interval = if interval.is_empty() { String::new() } else { format!(" ({interval})") };
    let word = word(ratio);
    let word = if word.is_empty() { String::new() } else { format!(" {word}") };
    format!("{} {:.3}{interval}{word}", ratio.peer, ratio.median)
}

fn goal(work: &WorkRecord, goal: &GoalRecord) -> String {
    format!("{}: {}", goal.text(work.unit), reached(goal.reached))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::record;

    #[test]
    fn each_work_is_a_row_with_its_peers_and_goals() {
        let text = render(&record());
        let row = text.lines().last().unwrap();
        assert_eq!(row.matches(" | ").count(), 3);
        assert!(row.starts_with("| `stream`: TCP stream, 128 KiB blocks, 1 flow | 2.20 Gbit/s | "), "{row}");
        assert!(row.contains("bare 1.100 (1.100 .. 1.100) ahead; iperf3 1.100 (0.733 .. 2.200) level"), "{row}");
        assert!(row.contains(">= 0.98 x bare: 1.100, 1.100 .. 1.100: met"), "{row}");
        assert!(text.contains("97.500 % each (Bonferroni), which takes 7 rounds"), "{text}");
    }
}

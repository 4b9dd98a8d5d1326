//! What a lab's links did, as tables for people.

use std::fmt::Write as _;

use model::units::seconds;
use model::{EmulatedWay, LabReport, ShapedWay};

/// Both ways of each emulated link: segments, where those ended that did not arrive, and how late packets were handed over; and
/// each way that a token bucket shapes. Empty for a lab that has neither.
#[must_use]
pub fn lab_report(report: &LabReport) -> String {
    let mut text = String::new();
    if !report.ways.is_empty() {
        let _ = writeln!(text, "Emulated links of {}, in segments; how late packets were handed over:", report.lab);
        let head = ["from", "to", "arrived", "delivered", "late p50", "late p99", "latest", "dropped"];
        table(&mut text, head, report.ways.iter().map(row));
    }
    if report.ways.iter().any(|way| !way.realtime) {
        text += "The emulator had no real-time priority.\n";
    }
    if !report.shaped.is_empty() {
        let _ = writeln!(text, "Shaped links of {}, in segments sent and packets that found no room:", report.lab);
        let row = |way: &ShapedWay| [way.from.clone(), way.to.clone(), way.sent.to_string(), way.dropped.to_string()];
        table(&mut text, ["from", "to", "sent", "dropped"], report.shaped.iter().map(row));
    }
    text
}

/// Rows below their heading: two columns of names, figures, and what stands last as it is.
fn table<const N: usize>(text: &mut String, head: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    let rows: Vec<[String; N]> = [head.map(String::from)].into_iter().chain(rows).collect();
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or_default());
    for row in &rows {
        let _ = write!(text, " ");
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match column {
                0 | 1 => write!(text, " {cell:<width$}"),
                _ if column + 1 == N => write!(text, "  {cell}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
}

fn row(way: &EmulatedWay) -> [String; 8] {
    let late = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| seconds(ns as f64));
    [
        way.from.clone(),
        way.to.clone(),
        way.arrived.to_string(),
        way.delivered.to_string(),
        late(way.late_p50_ns),
        late(way.late_p99_ns),
        late(way.late_max_ns),
        drops(way),
    ]
}

/// Where segments ended, and what else happened to some.
fn drops(way: &EmulatedWay) -> String {
    let places: Vec<String> = way.dropped.iter().map(|(place, segments)| format!("{place} {segments}")).collect();
    let dropped = if places.is_empty() { "none".into() } else { places.join(", ") };
    let others = [
        ("marked", way.marked),
        ("corrupted", way.corrupted),
        ("duplicated", way.duplicated),
        ("reordered", way.reordered),
    ];
    let others = others.iter().filter(|(_, segments)| *segments > 0);
    let others: String = others.map(|(what, segments)| format!("; {what} {segments}")).collect();
    dropped + &others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_a_row_and_a_lab_without_emulated_links_is_silent() {
        assert_eq!(lab_report(&LabReport::default()), "");
        let forward = EmulatedWay {
            from: "sunnyvale".into(),
            to: "geneva".into(),
            arrived: 1_000,
            delivered: 990,
            dropped: [("loss".into(), 3), ("queue".into(), 7)].into(),
            marked: 2,
            corrupted: 0,
            duplicated: 0,
            reordered: 5,
            realtime: true,
            late_packets: 500,
            late_p50_ns: Some(8_200),
            late_p99_ns: Some(41_000),
            late_max_ns: Some(1_200_000),
        };
        let back = EmulatedWay { from: "geneva".into(), to: "sunnyvale".into(), ..EmulatedWay::default() };
        let report =
            LabReport { lab: "wan-1".into(), topology: "wan".into(), ways: vec![forward, back], shaped: Vec::new() };
        let text = lab_report(&report);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2][..4], ["sunnyvale", "geneva", "1000", "990"]);
        assert_eq!(lines[2][10..].join(" "), "loss 3, queue 7; marked 2; reordered 5");
        assert_eq!(lines[3][2..], ["0", "0", "-", "-", "-", "none"]);
        assert!(text.ends_with("no real-time priority.\n"));
        let way = ShapedWay { from: "a".into(), to: "b".into(), sent: 10, dropped: 2 };
        let text = lab_report(&LabReport { shaped: vec![way], ..LabReport::default() });
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["  from to  sent  dropped", "  a    b     10  2"]);
    }
}

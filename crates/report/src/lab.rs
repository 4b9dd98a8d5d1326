//! What a lab's emulated links did, as a table for people.

use std::fmt::Write as _;

use model::units::seconds;
use model::{EmulatedWay, LabReport};

/// Both ways of each emulated link: segments, where those ended that did not arrive, and how late packets were handed over. Empty
/// for a lab without emulated links.
#[must_use]
pub fn lab_report(report: &LabReport) -> String {
    if report.ways.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 7]> = report.ways.iter().map(row).collect();
    let head = ["from", "to", "arrived", "delivered", "late p50", "late p99", "latest"].map(String::from);
    let width = |column: usize| rows.iter().chain([&head]).map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = format!("Emulated links of {}, in segments; how late packets were handed over:\n", report.lab);
    let mut line = |row: &[String; 7], drops: &str| {
        let _ = write!(text, " ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column < 2 { write!(text, " {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        let _ = writeln!(text, "  {drops}");
    };
    line(&head, "dropped");
    for (row, way) in rows.iter().zip(&report.ways) {
        line(row, &drops(way));
    }
    if report.ways.iter().any(|way| !way.realtime) {
        text += "The emulator had no real-time priority.\n";
    }
    text
}

fn row(way: &EmulatedWay) -> [String; 7] {
    let late = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| seconds(ns as f64));
    [
        way.from.clone(),
        way.to.clone(),
        way.arrived.to_string(),
        way.delivered.to_string(),
        late(way.late_p50_ns),
        late(way.late_p99_ns),
        late(way.late_max_ns),
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
        let report = LabReport { lab: "wan-1".into(), topology: "wan".into(), ways: vec![forward, back] };
        let text = lab_report(&report);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2][..4], ["sunnyvale", "geneva", "1000", "990"]);
        assert_eq!(lines[2][10..].join(" "), "loss 3, queue 7; marked 2; reordered 5");
        assert_eq!(lines[3][2..], ["0", "0", "-", "-", "-", "none"]);
        assert!(text.ends_with("no real-time priority.\n"));
    }
}

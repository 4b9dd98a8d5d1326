//! The counters of a lab's links as text tables.

use std::fmt::Write as _;

use model::units::seconds;
use model::{EmulatedDirection, LabReport, ShapedDirection};

/// Both directions of each emulated link: segments, drops by location, and how late packets were delivered; and each direction that
/// a token bucket shapes. Empty for a lab without either.
#[must_use]
pub fn lab_report(report: &LabReport) -> String {
    let mut text = String::new();
    if !report.directions.is_empty() {
        let _ = writeln!(text, "Emulated links of {}: segments, and delay beyond the emulated one:", report.lab);
        let head = ["from", "to", "arrived", "delivered", "late p50", "late p99", "latest", "dropped"];
        table(&mut text, head, report.directions.iter().map(row));
    }
    if report.directions.iter().any(|direction| !direction.realtime) {
        text += "The emulator had no real-time priority.\n";
    }
    if !report.shaped.is_empty() {
        let _ = writeln!(text, "Shaped links of {}: segments sent, and packets dropped by the full queue:", report.lab);
        let row = |direction: &ShapedDirection| {
            [direction.from.clone(), direction.to.clone(), direction.sent.to_string(), direction.dropped.to_string()]
        };
        table(&mut text, ["from", "to", "sent", "dropped"], report.shaped.iter().map(row));
    }
    text
}

/// Rows below a heading: two left-aligned columns of names, right-aligned figures, and a last column as it is.
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

fn row(direction: &EmulatedDirection) -> [String; 8] {
    let late = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| seconds(ns as f64));
    [
        direction.from.clone(),
        direction.to.clone(),
        direction.arrived.to_string(),
        direction.delivered.to_string(),
        late(direction.late_p50_ns),
        late(direction.late_p99_ns),
        late(direction.late_max_ns),
        drops(direction),
    ]
}

/// Drops by location, and other impairments.
fn drops(direction: &EmulatedDirection) -> String {
    let locations: Vec<String> =
        direction.dropped.iter().map(|(location, segments)| format!("{location} {segments}")).collect();
    let dropped = if locations.is_empty() { "none".into() } else { locations.join(", ") };
    let others = [
        ("marked", direction.marked),
        ("corrupted", direction.corrupted),
        ("duplicated", direction.duplicated),
        ("reordered", direction.reordered),
    ];
    let others = others.iter().filter(|(_, segments)| *segments > 0);
    let others: String = others.map(|(what, segments)| format!("; {what} {segments}")).collect();
    dropped + &others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_is_a_row_and_a_lab_without_links_has_no_text() {
        assert_eq!(lab_report(&LabReport::default()), "");
        let forward = EmulatedDirection {
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
        let reverse =
            EmulatedDirection { from: "geneva".into(), to: "sunnyvale".into(), ..EmulatedDirection::default() };
        let report = LabReport {
            lab: "wan-1".into(),
            topology: "wan".into(),
            directions: vec![forward, reverse],
            shaped: Vec::new(),
        };
        let text = lab_report(&report);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2][..4], ["sunnyvale", "geneva", "1000", "990"]);
        assert_eq!(lines[2][10..].join(" "), "loss 3, queue 7; marked 2; reordered 5");
        assert_eq!(lines[3][2..], ["0", "0", "-", "-", "-", "none"]);
        assert!(text.ends_with("no real-time priority.\n"));
        let direction = ShapedDirection { from: "a".into(), to: "b".into(), sent: 10, dropped: 2 };
        let text = lab_report(&LabReport { shaped: vec![direction], ..LabReport::default() });
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["  from to  sent  dropped", "  a    b     10  2"]);
    }
}

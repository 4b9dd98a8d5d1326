//! A table of the flows: the newest values of all together and of each.

use model::{Direction, units};
use ratatui::layout::Constraint;
use ratatui::widgets::{Row, Table};
use report::LivePoint;

use crate::parts::ViewLook;

/// A column: its head, its width, and its text; a column without any text is left out.
struct Column {
    head: &'static str,
    width: u16,
    text: fn(&LivePoint, ViewLook) -> Option<String>,
}

const fn column(head: &'static str, width: u16, text: fn(&LivePoint, ViewLook) -> Option<String>) -> Column {
    Column { head, width, text }
}

/// The columns after the flow's name; those behind give way where there is no room.
const COLUMNS: [Column; 6] = [
    column("rate", 12, |point, look| match (point.bits_per_s, point.transactions_per_s) {
        (Some(bits), _) => Some(look.rate(bits)),
        (None, trips) => trips.map(|trips| format!("{}/s", units::count(trips))),
    }),
    column("RTT", 8, |point, _| point.rtt_ns.map(units::seconds)),
    column("lost", 8, |point, _| point.lost.map(|share| format!("{:.3} %", 100.0 * share))),
    column("jitter", 8, |point, _| point.jitter_ns.map(units::seconds)),
    column("retransmits", 11, |point, _| point.retransmits.map(|count| count.to_string())),
    column("cwnd", 8, |point, _| point.cwnd_bytes.map(|bytes| units::amount(bytes as f64))),
];

/// The rows, each with its name, in a table of at most this width, and its height; `None` without a row.
pub(super) fn table(rows: &[(String, &LivePoint)], look: ViewLook, width: u16) -> Option<(Table<'static>, u16)> {
    let both =
        [Direction::Send, Direction::Reverse].iter().all(|way| rows.iter().any(|(_, point)| point.direction == *way));
    let name = |(name, point): &(String, &LivePoint)| {
        if both { format!("{name} {}", point.direction.way()) } else { name.clone() }
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let longest = names.iter().map(|name| name.chars().count()).max()?;
    let mut widths = vec![u16::try_from(longest.max("flow".len())).unwrap_or(u16::MAX)];
    let has_text = |column: &&Column| rows.iter().any(|(_, point)| (column.text)(point, look).is_some());
    let mut columns: Vec<&Column> = Vec::new();
    for column in COLUMNS.iter().filter(has_text) {
        let used: u16 = widths.iter().map(|width| width + 1).sum();
        if columns.is_empty() || used + column.width <= width {
            widths.push(column.width);
            columns.push(column);
        }
    }
    let row = |(name, (_, point)): (String, &(String, &LivePoint))| {
        let texts = columns.iter().map(|column| (column.text)(point, look).unwrap_or_else(|| "-".to_owned()));
        Row::new(std::iter::once(name).chain(texts))
    };
    let shown: Vec<Row<'static>> = names.into_iter().zip(rows).map(row).collect();
    let height = u16::try_from(shown.len() + 1).unwrap_or(u16::MAX);
    let heads = std::iter::once("flow").chain(columns.iter().map(|column| column.head));
    let table = Table::new(shown, widths.into_iter().map(Constraint::Length));
    Some((table.header(Row::new(heads).style(look.weak())).column_spacing(1), height))
}

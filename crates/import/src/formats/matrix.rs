//! A matrix of hosts as CSV: senders down, receivers across, and the unit in the corner.
//!
//! Columns are separated by commas, semicolons or tabs; `-` and empty cells were not measured.

use std::collections::BTreeSet;

use model::{Factor, Plan, Spec, Verdict};

use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row};
use crate::text::{lines, number, rate_unit, resolution, time_unit};

/// Matrices.
pub(super) const FORMAT: Format =
    Format { name: "matrix", help: "a matrix of hosts as CSV, its unit in the corner", detect, read };

/// The largest number of hosts.
const MAX_HOSTS: usize = 200;
/// Values with a larger relative rounding error are flagged.
const COARSE: f64 = 0.05;

fn detect(text: &str) -> Confidence {
    let all: Vec<(u32, &str)> = lines(text).collect();
    let found = |index: usize| table(&all[index..]).is_some();
    if (0..all.len()).any(found) { Confidence::Possible } else { Confidence::No }
}

/// The cells of a line.
fn cells(line: &str) -> Option<Vec<&str>> {
    let separator = ['\t', ';', ','].into_iter().find(|separator| line.contains(*separator))?;
    Some(line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect())
}

/// A head of receivers' names, and rows of a sender's name and figures.
struct Table<'a> {
    corner: &'a str,
    names: Vec<&'a str>,
    rows: Vec<(u32, &'a str, Vec<&'a str>)>,
}

fn table<'a>(all: &[(u32, &'a str)]) -> Option<Table<'a>> {
    let head = cells(all.first()?.1)?;
    let (corner, names) = head.split_first()?;
    let names: Vec<&str> = names.to_vec();
    let named = |name: &&str| !name.is_empty() && number(name).is_none();
    let several = (2..=MAX_HOSTS).contains(&names.len()) && names.iter().all(named);
    let corner_fits = corner.is_empty() || unit(corner).is_some();
    (several && corner_fits).then_some(())?;
    let row = |(at, line): &(u32, &'a str)| {
        let cells = cells(line)?;
        let value = |cell: &&str| number(cell).is_some();
        let absent = |cell: &str| cell.is_empty() || cell == "-";
        let fits = cells[1..].iter().any(value) || cells[1..].iter().all(|cell| absent(cell));
        (fits && cells.len() > 1 && named(&cells[0])).then_some((*at, *line, cells))
    };
    let rows: Vec<_> = all[1..].iter().map_while(row).take(MAX_HOSTS).collect();
    let some = rows.iter().any(|(.., cells)| cells[1..].iter().any(|cell| number(cell).is_some()));
    (rows.len() >= 2 && some).then_some(Table { corner, names, rows })
}

/// The unit in a corner such as `Mbit/s` or `from \ to, Mbit/s`: whether it is a rate, and its size in bit/s or ns.
fn unit(corner: &str) -> Option<(bool, f64)> {
    let word = corner.split([' ', ',', '(', ')']).rfind(|word| !word.is_empty())?;
    rate_unit(word).map(|scale| (true, scale)).or_else(|| time_unit(word).map(|scale| (false, scale)))
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let all: Vec<(u32, &str)> = lines(text).collect();
    let mut index = 0;
    while index < all.len() {
        let Some(table) = table(&all[index..]) else {
            index += 1;
            continue;
        };
        let at = all[index].0;
        index += table.rows.len() + 1;
        match unit(table.corner) {
            Some((rate, scale)) => of_table(&table, rate, scale, &mut reading),
            None => reading.refuse(at, "the matrix has no unit: write it into the first cell, such as Mbit/s or ms"),
        }
    }
    reading
}

fn of_table(table: &Table<'_>, rate: bool, scale: f64, reading: &mut Reading) {
    let mut rows: Vec<Row> = Vec::new();
    let mut remark_columns = BTreeSet::new();
    for (at, line, cells) in &table.rows {
        let from = cells[0];
        for (to, cell) in table.names.iter().zip(&cells[1..]) {
            if cell.is_empty() || *cell == "-" {
                continue;
            }
            let Some(value) = number(cell).filter(|value| *value > 0.0) else {
                // A column of words is a remark on the row, not a host.
                if table.rows.iter().any(|(.., cells)| cells.first() == Some(to)) {
                    reading.refuse(*at, format!("'{cell}' from {from} to {to} is not a number"));
                } else {
                    remark_columns.insert(*to);
                }
                continue;
            };
            let spec = Spec::new(if rate { "tcp" } else { "icmp" }, if rate { "stream" } else { "pingpong" });
            let mut row = Row::new(spec, value * scale, *at, line);
            row.levels.insert(Factor::FROM.into(), from.to_owned());
            row.levels.insert(Factor::TO.into(), (*to).to_owned());
            row.figure(if rate { "rate_bps" } else { "round_trip_ns" }, value * scale);
            if resolution(cell) > COARSE {
                row.flag(Verdict::ResolutionLimited, "the value has too few digits for an accuracy of 5 %");
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return;
    }
    let level = |name: &str, names: Vec<&str>| -> Vec<String> {
        let has = |level: &&str| rows.iter().any(|row| row.levels.get(name).is_some_and(|own| own == level));
        names.into_iter().filter(has).map(str::to_owned).collect()
    };
    let from = level(Factor::FROM, table.rows.iter().map(|(.., cells)| cells[0]).collect());
    let plan = Plan { from, to: level(Factor::TO, table.names.clone()), ..Plan::default() };
    let assumed = if rate { "TCP streams are assumed" } else { "ICMP echoes are assumed" };
    reading.imported.push(Imported {
        tool: "matrix".into(),
        kind: "run".into(),
        rows,
        plan: Some(plan),
        assumed: vec!["transport", "block", "stop"],
        notes: vec![format!("rows are senders, columns are receivers; {assumed}")],
        unknown: remark_columns.into_iter().map(str::to_owned).collect(),
        ..Imported::default()
    });
}

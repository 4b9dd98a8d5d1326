//! A table of two factors as CSV: a level of one in each row, of the other in each column, and the unit in the first cell.
//!
//! The first cell names the factors (`MTU \ system, Mbit/s`). Without names they are hosts: senders down, receivers across. Columns are
//! separated by commas, semicolons or tabs; `-` and empty cells were not measured.

use std::collections::BTreeSet;

use model::{Factor, FactorKind, Pattern, Plan, RunKind, Shared, Spec, Verdict};

use super::ImportFormat;
use crate::error::DocumentError;
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{lines, number, rate_unit, resolution, time_unit};

/// Tables of two factors.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "matrix",
    help: "a table of hosts or of two other factors as CSV, its unit in the first cell",
    detect,
    read,
};

/// The largest number of rows and of columns. A larger table is refused as a whole.
const MOST: usize = 2_000;
/// Values with a larger relative rounding error are flagged.
const COARSE: f64 = 0.05;
/// The name of the columns' factor if the first cell does not have it.
const UNNAMED: &str = "column";

fn detect(text: &str) -> Certainty {
    let all: Vec<(u32, &str)> = lines(text).collect();
    let found = |index: usize| table(&all[index..]).is_some();
    if (0..all.len()).any(found) { Certainty::Possible } else { Certainty::No }
}

/// The cells of a line. Within quotes a separator is text.
fn cells(line: &str) -> Option<Vec<&str>> {
    let outside = |separator: char| {
        let mut quoted = false;
        move |c: char| {
            quoted ^= c == '"';
            c == separator && !quoted
        }
    };
    let separator = ['\t', ';', ','].into_iter().find(|separator| line.contains(outside(*separator)))?;
    Some(line.split(outside(separator)).map(|cell| cell.trim().trim_matches('"').trim()).collect())
}

/// What the first cell says: `MTU \ system, Mbit/s`, `from \ to, Mbit/s`, `MTU (Mbit/s)` or `Mbit/s`.
#[derive(Debug, PartialEq)]
struct Corner {
    /// The factors of rows and columns; `None` for hosts.
    factors: Option<[String; 2]>,
    /// Whether it is a rate, and its size in bit/s or ns.
    unit: Option<(bool, f64)>,
}

impl Corner {
    fn of(text: &str) -> Self {
        let edge = |c: char| c.is_whitespace() || ",()[]".contains(c);
        let word = text.split(edge).rfind(|word| !word.is_empty()).unwrap_or_default();
        let unit = rate_unit(word).map(|scale| (true, scale)).or_else(|| time_unit(word).map(|scale| (false, scale)));
        let names = match unit {
            Some(_) => text.rsplit_once(word).map_or("", |(names, _)| names),
            None => text,
        };
        // A name is compared with those of plans, which are in small letters.
        let name = |text: &str| text.trim_matches(edge).to_lowercase();
        let factors = match names.split_once('\\') {
            Some((row, column)) => Some([name(row), name(column)]),
            None => Some([name(names), UNNAMED.to_owned()]),
        };
        let hosts = |[row, column]: &[String; 2]| row.is_empty() || (row == Factor::FROM && column == Factor::TO);
        Self { factors: factors.filter(|factors| !hosts(factors)), unit }
    }
}

/// A head with the levels of the columns, and rows of a level and figures.
struct Table<'a> {
    corner: Corner,
    names: Vec<&'a str>,
    rows: Vec<(u32, Vec<&'a str>)>,
}

fn table<'a>(all: &[(u32, &'a str)]) -> Option<Table<'a>> {
    let head = cells(all.first()?.1)?;
    let (corner, names) = head.split_first()?;
    let corner = Corner::of(corner);
    let names: Vec<&str> = names.to_vec();
    // A host's name is no number; a level may be one where the first cell says of what.
    let named = |name: &&str| !name.is_empty() && (number(name).is_none() || corner.factors.is_some());
    let several = names.len() >= 2 && names.iter().all(named);
    // Without a unit, levels across are words: a line of numbers is no head.
    let words = corner.unit.is_some() || names.iter().all(|name| number(name).is_none());
    (several && words).then_some(())?;
    let row = |(at, line): &(u32, &'a str)| {
        let cells = cells(line)?;
        let value = |cell: &&str| number(cell).is_some();
        let absent = |cell: &str| cell.is_empty() || cell == "-";
        let fits = match corner.unit {
            Some(_) => cells[1..].iter().any(value) || cells[1..].iter().all(|cell| absent(cell)),
            None => cells[1..].iter().all(|cell| value(cell) || absent(cell)),
        };
        (fits && cells.len() > 1 && named(&cells[0])).then_some((*at, cells))
    };
    let rows: Vec<_> = all[1..].iter().map_while(row).collect();
    let some = rows.iter().any(|(.., cells)| cells[1..].iter().any(|cell| number(cell).is_some()));
    (rows.len() >= 2 && some).then_some(Table { corner, names, rows })
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let all: Vec<(u32, &str)> = lines(text).collect();
    let mut index = 0;
    while index < all.len() {
        let Some(table) = table(&all[index..]) else {
            index += 1;
            continue;
        };
        let at = all[index].0;
        index += table.rows.len() + 1;
        let (down, across) = (table.rows.len(), table.names.len());
        if down.max(across) > MOST {
            reading.refuse(at, DocumentError::TooLarge { rows: down, columns: across, most: MOST });
            continue;
        }
        match table.corner.unit {
            Some((rate, scale)) => of_table(&table, rate, scale, &mut reading),
            None => {
                let [row, column] = table.corner.factors.unwrap_or([Factor::FROM, Factor::TO].map(str::to_owned));
                let column = if column == UNNAMED { "system".to_owned() } else { column };
                reading.refuse(at, DocumentError::NoUnitOfTable { row, column });
            }
        }
    }
    reading
}

fn of_table(table: &Table<'_>, rate: bool, scale: f64, reading: &mut TextReading) {
    let hosts = table.corner.factors.is_none();
    let factors = table.corner.factors.clone().unwrap_or([Factor::FROM, Factor::TO].map(str::to_owned));
    let [down, across] = &factors;
    let spec = Spec::new(if rate { "tcp" } else { "icmp" }, if rate { Pattern::Stream } else { Pattern::Pingpong });
    let spec = Shared::from(spec);
    let mut rows: Vec<Row> = Vec::new();
    let mut remark_columns = BTreeSet::new();
    let senders: BTreeSet<&str> = table.rows.iter().map(|(.., cells)| cells[0]).collect();
    let has_number = |column: usize| {
        table.rows.iter().any(|(.., cells)| cells.get(column).is_some_and(|cell| number(cell).is_some()))
    };
    let numbered: Vec<bool> = (0..=table.names.len()).map(has_number).collect();
    for (at, cells) in &table.rows {
        let level = cells[0];
        if !hosts && cells.len() != table.names.len() + 1 {
            reading.refuse(*at, DocumentError::Cells { cells: cells.len(), head: table.names.len() + 1 });
            continue;
        }
        for (column, (other, cell)) in (1..).zip(table.names.iter().zip(&cells[1..])) {
            if cell.is_empty() || *cell == "-" {
                continue;
            }
            let Some(value) = number(cell).filter(|value| *value > 0.0) else {
                // A column of words is a remark on the row, not a host or a level.
                let measured = if hosts { senders.contains(other) } else { numbered[column] };
                if measured {
                    let place = [[down.as_str(), level], [across.as_str(), other]];
                    let place = Box::new(place.map(|names| names.map(str::to_owned)));
                    reading.refuse(*at, DocumentError::Cell { text: (*cell).to_owned(), at: place });
                } else {
                    remark_columns.insert(*other);
                }
                continue;
            };
            let mut row = Row::new(spec.clone(), value * scale, *at, &format!("{level}, {other}: {cell}"));
            row.levels.insert(down.clone(), level.to_owned());
            row.levels.insert(across.clone(), (*other).to_owned());
            if resolution(cell) > COARSE {
                row.flag(Verdict::ResolutionLimited, "the value has too few digits for an accuracy of 5 %");
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return;
    }
    let levels = |name: &String, all: Vec<&str>| -> Vec<String> {
        let mut present: BTreeSet<&str> =
            rows.iter().filter_map(|row| row.levels.get(name)).map(String::as_str).collect();
        all.into_iter().filter(|level| present.remove(level)).map(str::to_owned).collect()
    };
    let down_levels = levels(down, table.rows.iter().map(|(_, cells)| cells[0]).collect());
    let across_levels = levels(across, table.names.clone());
    let plan = if hosts {
        Plan { from: down_levels, to: across_levels, ..Plan::default() }
    } else {
        // The table does not say which fields and settings a level stands for.
        let factor = |name: &String, levels| Factor {
            name: name.clone(),
            key: name.clone(),
            kind: FactorKind::Set,
            levels,
            ..Factor::default()
        };
        Plan { factors: vec![factor(down, down_levels), factor(across, across_levels)], ..Plan::default() }
    };
    let assumed = if rate { "TCP streams are assumed" } else { "ICMP echoes are assumed" };
    let [rows_are, columns_are] = if hosts { ["senders".to_owned(), "receivers".to_owned()] } else { factors };
    let mut notes = vec![format!("rows are {rows_are}, columns are {columns_are}; {assumed}")];
    if columns_are == UNNAMED {
        notes.push(format!("the first cell does not name the columns: '{rows_are} \\ NAME' would"));
    }
    reading.imported.push(Imported {
        tool: "matrix".into(),
        kind: RunKind::Run,
        rows,
        plan: Some(plan),
        assumed: vec!["transport", "block", "stop"],
        notes,
        unknown: remark_columns.into_iter().map(str::to_owned).collect(),
        ..Imported::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cell_names_factors_and_unit() {
        let named = |text: &str| (Corner::of(text).factors, Corner::of(text).unit);
        let factors = |row: &str, column: &str| Some([row.to_owned(), column.to_owned()]);
        for text in ["MTU \\ System, Mbit/s", "MTU\\system (Mbit/s)", "mtu \\ system [Mbit/s]"] {
            assert_eq!(named(text), (factors("mtu", "system"), Some((true, 1e6))), "{text}");
        }
        assert_eq!(named("MTU (ms)"), (factors("mtu", UNNAMED), Some((false, 1e6))));
        assert_eq!(named("MTU"), (factors("mtu", UNNAMED), None));
        for text in ["Mbit/s", "from \\ to, Mbit/s"] {
            assert_eq!(named(text), (None, Some((true, 1e6))), "{text}");
        }
        assert_eq!(cells("\"a, b\",c"), Some(vec!["a, b", "c"]));
    }
}

//! The sheets of outcomes, one for each kind of run, and the sheet of trials.

use std::collections::HashMap;

use model::Run;
use rust_xlsxwriter::XlsxError;

use super::book::{Book, MOST_ROWS};
use crate::formats::outcome_columns::OutcomeRows;
use crate::formats::trial_columns::TrialRows;
use crate::formats::value::Value;

/// The columns that name an outcome and its result come first.
const FIRST: &[&str] =
    &["run", "name", "block", "flows", "estimate_value", "estimate_low", "estimate_high", "estimate_unit", "trust"];

/// Where the outcomes of cells stand: sheet and row of the first one, by the run's id and the cell.
#[derive(Default)]
pub(super) struct Places(HashMap<(String, u32), (String, u32)>);

impl Places {
    /// The place of a cell's first outcome.
    pub(super) fn of(&self, run: &Run, cell: u32) -> Option<(&str, u32)> {
        self.0.get(&(run.header.id.clone(), cell)).map(|(sheet, row)| (sheet.as_str(), *row))
    }
}

/// A sheet for each kind of run, with the columns that have a value. Returns where the outcomes are.
pub(super) fn outcomes(book: &mut Book, runs: &[Run]) -> Result<Places, XlsxError> {
    let mut places = Places::default();
    let mut kinds: Vec<&str> = Vec::new();
    for run in runs.iter().filter(|run| !run.outcomes.is_empty()) {
        if !kinds.contains(&kind(run)) {
            kinds.push(kind(run));
        }
    }
    let table = OutcomeRows::new(runs);
    let head = table.head();
    for of in kinds {
        let rows: Vec<_> = table.rows().filter(|(run, _, _)| kind(run) == of).collect();
        let mut columns: Vec<usize> =
            (0..head.len()).filter(|column| rows.iter().any(|(_, _, row)| row[*column].is_some())).collect();
        columns.sort_by_key(|column| match FIRST.iter().position(|name| *name == head[*column]) {
            Some(at) if at < 2 => at,
            _ if head[*column].starts_with("level_") => 2,
            Some(at) => at + 1,
            None => FIRST.len() + 1,
        });
        let mut sheet = book.sheet(of, "one line for each outcome")?;
        sheet.head(2, columns.iter().map(|column| titled(&head[*column])))?;
        for (run, outcome, mut row) in rows {
            let at = sheet.line(columns.iter().map(|column| row[*column].take()))?;
            let cell = (run.header.id.clone(), outcome.cell);
            places.0.entry(cell).or_insert_with(|| (sheet.name.clone(), at));
        }
        book.push(sheet);
    }
    Ok(places)
}

/// The kind of a run's outcomes.
fn kind(run: &Run) -> &'static str {
    if run.header.plan.is_some() { "plan cells" } else { run.header.kind.name() }
}

/// The sheet of all trials, with the columns that have a value.
pub(super) fn trials(book: &mut Book, runs: &[Run]) -> Result<(), XlsxError> {
    let table = TrialRows::new(runs);
    let head = table.head();
    let mut used = vec![false; head.len()];
    let mut all = 0;
    for row in table.rows() {
        all += 1;
        used.iter_mut().zip(table.values(&row)).for_each(|(used, value)| *used |= value.is_some());
    }
    if all == 0 {
        return Ok(());
    }
    let about = if all > MOST_ROWS {
        format!("the first {MOST_ROWS} of {all} trials")
    } else {
        "one line for each trial".to_owned()
    };
    let mut sheet = book.sheet("trials", &about)?;
    sheet.head(2, head.iter().zip(&used).filter(|(_, used)| **used).map(|((name, _), _)| titled(name)))?;
    for row in table.rows().take(MOST_ROWS) {
        let values: Vec<Option<Value>> =
            table.values(&row).zip(&used).filter(|(_, used)| **used).map(|(value, _)| value).collect();
        sheet.line(values)?;
    }
    book.push(sheet);
    Ok(())
}

/// Endings of names, and the units that they stand for.
const UNITS: &[(&str, &str)] = &[
    ("_ns_per_transaction", "ns per transaction"),
    ("_s_per_gb", "s/GB"),
    ("_cycles_per_byte", "cycles/B"),
    ("_per_s", "1/s"),
    ("_bps", "bit/s"),
    ("_bytes", "B"),
    ("_ns", "ns"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
];
/// Names without an ending, and their units.
const NAMED: &[(&str, &str)] = &[
    ("block", "B"),
    ("reply", "B"),
    ("bytes_sent", "B"),
    ("bytes_received", "B"),
    ("bytes_retransmitted", "B"),
    ("started", "UTC"),
    ("pass_started", "UTC"),
    ("near_sndbuf", "B"),
    ("far_sndbuf", "B"),
    ("near_rcvbuf", "B"),
    ("far_rcvbuf", "B"),
    ("near_mss", "B"),
    ("far_mss", "B"),
    ("near_notsent_lowat", "B"),
    ("far_notsent_lowat", "B"),
];

/// A column's name in words, with its unit in brackets.
fn titled(name: &str) -> String {
    if let Some(level) = name.strip_prefix("level_") {
        return level.to_owned();
    }
    let words = |name: &str| name.replace('_', " ");
    if let Some((_, unit)) = NAMED.iter().find(|(known, _)| *known == name) {
        return format!("{} ({unit})", words(name));
    }
    UNITS
        .iter()
        .find_map(|(ending, unit)| Some(format!("{} ({unit})", words(name.strip_suffix(ending)?))))
        .unwrap_or_else(|| words(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_in_the_head() {
        for (name, expected) in [
            ("goodput_bps", "goodput (bit/s)"),
            ("near_process_ns_per_transaction", "near process (ns per transaction)"),
            ("transactions_per_s", "transactions (1/s)"),
            ("block", "block (B)"),
            ("started", "started (UTC)"),
            ("flows", "flows"),
            ("level_my_size", "my_size"),
        ] {
            assert_eq!(titled(name), expected);
        }
    }
}

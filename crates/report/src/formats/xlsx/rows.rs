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
        let mut columns = Columns::new(&head);
        rows.iter().for_each(|(_, _, row)| columns.see(row));
        let mut order = columns.kept();
        order.sort_by_key(|column| match FIRST.iter().position(|name| *name == head[*column]) {
            Some(at) if at < 2 => at,
            _ if head[*column].starts_with(LEVEL) => 2,
            Some(at) => at + 1,
            None => FIRST.len() + 1,
        });
        let mut sheet = book.sheet(of, "one line for each outcome")?;
        let first = sheet.head(2, order.iter().map(|column| columns.title(*column)))?;
        for (run, outcome, mut row) in rows {
            let at = sheet.line(order.iter().map(|column| columns.value(*column, row[*column].take())))?;
            let cell = (run.header.id.clone(), outcome.cell);
            places.0.entry(cell).or_insert_with(|| (sheet.name.clone(), at));
        }
        sheet.filter(first, order.len())?;
        book.push(sheet);
    }
    Ok(places)
}

/// What the name of a level's column begins with.
const LEVEL: &str = "level_";

/// Which columns have values, and what the levels are.
struct Columns<'a> {
    names: &'a [String],
    used: Vec<bool>,
    /// Whether all values of a level's column are numbers.
    numbers: Vec<bool>,
    /// The column with the same title as a level's column, and whether it has the same values.
    twins: Vec<Option<(usize, bool)>>,
}

impl<'a> Columns<'a> {
    fn new(names: &'a [String]) -> Self {
        let twin = |name: &String| {
            let title = name.strip_prefix(LEVEL)?;
            let other = names.iter().position(|other| !other.starts_with(LEVEL) && titled(other) == title)?;
            Some((other, true))
        };
        let is_level = |name: &String| name.starts_with(LEVEL);
        Self {
            used: vec![false; names.len()],
            numbers: names.iter().map(is_level).collect(),
            twins: names.iter().map(twin).collect(),
            names,
        }
    }

    /// Takes a row into account.
    fn see(&mut self, row: &[Option<Value>]) {
        for (column, value) in row.iter().enumerate() {
            let Some(value) = value else { continue };
            self.used[column] = true;
            self.numbers[column] &= as_number(value).is_some();
            if let Some((other, is_same)) = &mut self.twins[column] {
                let other = row[*other].clone().map(Value::into_text);
                *is_same &= other == Some(value.clone().into_text());
            }
        }
    }

    /// The columns that have a value and do not repeat another one.
    fn kept(&self) -> Vec<usize> {
        let repeats = |column: usize| self.twins[column].is_some_and(|(_, is_same)| is_same);
        (0..self.names.len()).filter(|column| self.used[*column] && !repeats(*column)).collect()
    }

    /// The title of a column; no other one has it.
    fn title(&self, column: usize) -> String {
        let title = titled(&self.names[column]);
        if self.twins[column].is_some() { format!("{title} (level)") } else { title }
    }

    fn value(&self, column: usize, value: Option<Value>) -> Option<Value> {
        match value {
            Some(value) if self.numbers[column] => as_number(&value).map(Value::Number),
            value => value,
        }
    }
}

fn as_number(value: &Value) -> Option<f64> {
    let Value::Text(text) = value else { return None };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The kind of a run's outcomes.
fn kind(run: &Run) -> &'static str {
    if run.header.plan.is_some() { "plan cells" } else { run.header.kind.name() }
}

/// The sheet of all trials, with the columns that have a value.
pub(super) fn trials(book: &mut Book, runs: &[Run]) -> Result<(), XlsxError> {
    let table = TrialRows::new(runs);
    let names: Vec<String> = table.head().into_iter().map(|(name, _)| name).collect();
    let mut columns = Columns::new(&names);
    let mut all = 0;
    for row in table.rows() {
        all += 1;
        columns.see(&table.values(&row).collect::<Vec<_>>());
    }
    if all == 0 {
        return Ok(());
    }
    let about = if all > MOST_ROWS {
        format!("the first {MOST_ROWS} of {all} trials")
    } else {
        "one line for each trial".to_owned()
    };
    let kept = columns.kept();
    let mut sheet = book.sheet("trials", &about)?;
    let first = sheet.head(2, kept.iter().map(|column| columns.title(*column)))?;
    for row in table.rows().take(MOST_ROWS) {
        let mut values: Vec<Option<Value>> = table.values(&row).collect();
        sheet.line(kept.iter().map(|column| columns.value(*column, values[*column].take())))?;
    }
    sheet.filter(first, kept.len())?;
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
    if let Some(level) = name.strip_prefix(LEVEL) {
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
    use crate::formats::value::{count, text};

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

    #[test]
    fn levels_are_numbers_and_no_two_columns_have_one_name() {
        let names = ["flows", "trials", "level_flows", "level_trials", "level_cc", "level_rtt"].map(str::to_owned);
        let mut columns = Columns::new(&names);
        let row = |flows: u64, trials: &str, rtt: &str| {
            vec![count(flows), count(9_u64), text(flows.to_string()), text(trials), text("bbr"), text(rtt)]
        };
        for (flows, trials, rtt) in [(1, "9", "10"), (4, "8", "20")] {
            columns.see(&row(flows, trials, rtt));
        }
        let kept = columns.kept();
        let titles: Vec<String> = kept.iter().map(|column| columns.title(*column)).collect();
        assert_eq!(titles, ["flows", "trials", "trials (level)", "cc", "rtt"], "the level flows repeats a column");
        let shown: Vec<Option<Value>> =
            row(4, "8", "20").into_iter().enumerate().map(|(at, value)| columns.value(at, value)).collect();
        assert_eq!(shown[3..], [Some(Value::Number(8.0)), text("bbr"), Some(Value::Number(20.0))]);
    }
}

//! The tables of the page: of a plan, of the outcomes, of the raw trials, and of the hosts' counters.

use std::collections::BTreeSet;

use model::{Outcome, Run, Trial, units};
use serde::Serialize;
use text::Text;

use crate::formats::table::OutcomeTable;
use crate::screens::plan;
use crate::sections::host_activity::{self, Host};
use crate::sections::{limiter, outcome_line, plan_answer, sides};
use crate::{Layout, labels};

/// More trials are not listed.
const MOST_TRIALS: usize = 5_000;

/// A table of texts.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    title: String,
    head: Vec<String>,
    /// Whether a column is numeric, and so right-aligned.
    numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
    /// A line below it; may be empty.
    note: String,
}

impl Table {
    /// A table without numeric columns.
    pub(super) fn words(title: &str, head: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        Self { title: title.to_owned(), numeric: vec![false; head.len()], head, rows, note: String::new() }
    }

    /// Its head and its rows.
    #[cfg(feature = "xlsx")]
    pub(super) fn into_rows(self) -> (Vec<String>, Vec<Vec<String>>) {
        (self.head, self.rows)
    }
}

/// The tables of a plan; none of other runs.
pub(super) fn of_plan(run: &Run, layout: Layout) -> Vec<Table> {
    let tables = if run.header.plan.is_some() { plan::text_tables(run) } else { Vec::new() };
    let curves = plan_answer::curves(run).map(|curves| Table {
        numeric: (0..curves.head.len()).map(|column| column >= curves.names).collect(),
        title: curves.title.to_owned(),
        head: curves.head,
        rows: layout.rows(&curves.rows),
        note: String::new(),
    });
    let table = |table: plan::TextTable| Table {
        numeric: (0..table.head.len()).map(|column| column > 0).collect(),
        title: table.title,
        head: table.head,
        rows: layout.rows(&table.rows),
        note: String::new(),
    };
    curves.into_iter().chain(tables.into_iter().map(table)).collect()
}

/// The outcomes.
pub(super) fn outcomes(run: &Run, layout: Layout) -> Table {
    let OutcomeTable { head, numeric, rows, shared, .. } = OutcomeTable::new(run);
    let note = if shared.is_empty() { String::new() } else { format!("All outcomes: {}", labels::verdicts(&shared)) };
    Table { title: "Outcomes".to_owned(), head, numeric, rows: layout.rows(&rows), note }
}

/// Every trial with its value and its bytes.
pub(super) fn trials(run: &Run, layout: Layout) -> Table {
    let shown = sides::shown(run);
    let several = shown.len() > 1;
    let all: usize = shown.iter().map(|outcome| outcome.trials.len()).sum();
    let row = |outcome: &Outcome, trial: &Trial| {
        let unit = outcome.estimate.as_ref().map_or("", |estimate| estimate.unit.as_str());
        let value = trial.value.map_or("-".to_owned(), |value| layout.shown(&labels::quantity(value, unit)));
        let bytes = |count: u64| if trial.ledger.is_unknown() { "-".to_owned() } else { count.to_string() };
        let place = [trial.pass.to_string(), trial.position.to_string(), value];
        let ledger = [bytes(trial.ledger.sent), bytes(trial.ledger.received), labels::verdicts(&trial.verdicts)];
        let name = several.then(|| layout.shown(&name(run, outcome)));
        name.into_iter().chain(place).chain(ledger).collect()
    };
    let rows = shown.iter().flat_map(|outcome| outcome.trials.iter().map(move |trial| (*outcome, trial)));
    let rows = rows.take(MOST_TRIALS).map(|(outcome, trial)| row(outcome, trial)).collect();
    let columns = [
        ("pass", true),
        ("position", true),
        ("value", true),
        ("bytes sent", true),
        ("bytes received", true),
        ("verdicts", false),
    ];
    let (head, numeric) = several
        .then_some(("outcome", false))
        .into_iter()
        .chain(columns)
        .map(|(head, is)| (head.to_owned(), is))
        .unzip();
    let note = if all > MOST_TRIALS { format!("The first {MOST_TRIALS} of {all} trials.") } else { String::new() };
    Table { title: "Trials".to_owned(), head, numeric, rows, note }
}

/// What an outcome is called among those of its run.
fn name(run: &Run, outcome: &Outcome) -> Text {
    limiter::name_of(run, outcome).unwrap_or_else(|| outcome_line::label(&outcome.spec))
}

/// Every counter that changed; `None` without an observed host.
pub(super) fn counters(run: &Run) -> Option<Table> {
    let hosts = host_activity::hosts(run);
    if hosts.is_empty() {
        return None;
    }
    let names: BTreeSet<&str> = hosts.iter().flat_map(Host::changed).collect();
    let cell = |host: &Host<'_>, name: &str| host.grew(name).map_or("-".to_owned(), |by| by.to_string());
    let row =
        |name: &&str| std::iter::once(labels::plain(name)).chain(hosts.iter().map(|host| cell(host, name))).collect();
    let cost = hosts.iter().filter_map(|host| {
        let (share, ns) = host.cost()?;
        Some(format!(
            " Reading took {:.2} % of a core over {} ({}).",
            100.0 * share,
            units::seconds(ns as f64),
            host.name
        ))
    });
    let missing = hosts.iter().flat_map(|host| {
        host.missing().into_iter().map(move |what| format!(" {}: not read: {}.", host.name, labels::plain(what)))
    });
    let what = "Sums over the passes. Each name is the source and the kernel's name; - means unknown at that end.";
    Some(Table {
        title: "Counters that changed".to_owned(),
        head: std::iter::once("counter".to_owned()).chain(hosts.iter().map(|host| host.name.to_owned())).collect(),
        numeric: std::iter::once(false).chain(hosts.iter().map(|_| true)).collect(),
        rows: names.iter().map(row).collect(),
        note: std::iter::once(what.to_owned()).chain(cost).chain(missing).collect(),
    })
}

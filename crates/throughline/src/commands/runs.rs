//! `thru runs`: the list of stored runs.

use std::cmp::Ordering;
use std::path::PathBuf;

use clap::Args;
use command::Failure;
use command::setup::{read_store, store_path};
use model::RunKind;
use report::Layout;
use store::RunRow;

use crate::registries::one_of;
use crate::{console, output};

/// Flags of `thru runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Number of runs to list.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = options::values::whole(1..=usize::MAX))]
    limit: usize,

    /// Order of the list. The first N of all runs are listed.
    #[arg(long, value_name = "KEY", value_parser = one_of(&SORTS), default_value = WHEN)]
    sort: String,

    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,

    /// Delete a run instead: its id or the id's first characters, its name, or `last`.
    #[arg(long, value_name = "RUN")]
    delete: Option<String>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// The order in which the store lists runs.
const WHEN: &str = "when";
/// The orders of the list.
const SORTS: [(&str, &str); 5] = [
    (WHEN, "Newest first"),
    ("name", "By name; runs without one last"),
    ("what", "By command, transport and far end"),
    ("result", "By the figure, largest first; each unit by itself"),
    ("trust", "Lowest trust first"),
];

/// Columns of the table that is not on a terminal.
const COLUMNS: u16 = 80;

/// Runs it.
pub fn run(args: &RunsArgs) -> Result<u8, Failure> {
    let path = store_path(args.store.as_deref())?;
    if let Some(reference) = &args.delete {
        outln!("deleted {}", read_store(Some(&path))?.delete(reference)?);
        return Ok(0);
    }
    let (rows, all) = if path.exists() { list(args, &path)? } else { (Vec::new(), 0) };
    if args.json {
        for row in rows {
            outln!("{}", serde_json::to_string(&row)?);
        }
        return Ok(0);
    }
    if rows.is_empty() {
        outln!("no runs in {} yet: try `thru curve HOST` or `thru demo`", path.display());
        return Ok(0);
    }
    let more = all.saturating_sub(rows.len());
    let sort = if args.sort == WHEN { String::new() } else { format!(" --sort {}", args.sort) };
    let store = args.store.as_ref().map_or(String::new(), |store| format!(" --store {}", store.display()));
    let everything = format!("thru runs -n {all}{sort}{store}");
    let rows: Vec<report::ListedRun> = rows.into_iter().map(line).collect();
    let layout = Layout { columns: output::terminal_columns().unwrap_or(COLUMNS), ..output::layout() };
    console::screen(&report::run_list(&rows, more, &everything, layout));
    Ok(0)
}

/// The runs to list, and how many there are.
fn list(args: &RunsArgs, path: &std::path::Path) -> Result<(Vec<RunRow>, usize), Failure> {
    let store = read_store(Some(path))?;
    let all = store.count()?;
    if args.sort == WHEN {
        return Ok((store.list(args.limit)?, all));
    }
    let mut rows = store.list(usize::MAX)?;
    rows.sort_by(|a, b| by(&args.sort, a, b));
    rows.truncate(args.limit);
    Ok((rows, all))
}

/// How two runs are ordered by a key. Equal ones stay in the order of the store.
fn by(key: &str, a: &RunRow, b: &RunRow) -> Ordering {
    let is_named = |row: &RunRow| row.name.is_none();
    let what = |row: &RunRow| (row.kind.map(RunKind::name), row.transport.clone(), row.target.clone());
    let trust = |row: &RunRow| row.summary.as_ref().and_then(|summary| summary.trust);
    let figure = |row: &RunRow| {
        let estimate = row.summary.as_ref().and_then(|summary| summary.estimate.as_ref());
        estimate.map(|estimate| (estimate.unit.clone(), estimate.value))
    };
    match key {
        "name" => (is_named(a), &a.name).cmp(&(is_named(b), &b.name)),
        "what" => what(a).cmp(&what(b)),
        "trust" => trust(b).cmp(&trust(a)),
        "result" => match (figure(a), figure(b)) {
            (Some(a), Some(b)) => a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        },
        _ => Ordering::Equal,
    }
}

fn line(row: RunRow) -> report::ListedRun {
    report::ListedRun {
        id: row.id,
        name: row.name,
        started_unix_ns: row.started_unix_ns,
        kind: row.kind.map_or("unknown", RunKind::name).to_owned(),
        target: row.target,
        transport: row.transport,
        ending: row.ending,
        summary: row.summary,
    }
}

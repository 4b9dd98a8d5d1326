//! `thru runs`: the list of stored runs.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use command::setup::{read_store, store_path};
use model::RunKind;
use text::{Text, User, say};

use crate::console;

/// Flags of `thru runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Number of runs to list, newest first.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = options::values::whole(1..=usize::MAX))]
    limit: usize,

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

/// Runs it.
pub fn run(args: &RunsArgs) -> Result<u8, Failure> {
    let path = store_path(args.store.as_deref())?;
    if let Some(reference) = &args.delete {
        outln!("deleted {}", read_store(Some(&path))?.delete(reference)?);
        return Ok(0);
    }
    let rows = if path.exists() { read_store(Some(&path))?.list(args.limit)? } else { Vec::new() };
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
    let alike = rows.iter().map(|row| ((row.kind, row.transport.as_str()), row.spec.as_ref()));
    let measured = analysis::compare::distinguishing(alike);
    let rows: Vec<report::ListedRun> =
        rows.into_iter().zip(measured).map(|(row, measured)| line(row, measured)).collect();
    out!("{}", report::run_list(&rows, console::spelling().rates));
    Ok(0)
}

fn line(row: store::RunRow, measured: String) -> report::ListedRun {
    let mut words: Vec<Text> = row.name.iter().map(|name| say!("{}:", User(name))).collect();
    words.push(row.summary.map_or_else(|| "not finished".into(), |summary| summary.headline));
    report::ListedRun {
        id: row.id,
        started_unix_ns: row.started_unix_ns,
        kind: row.kind.map_or("unknown", RunKind::name).to_owned(),
        target: row.target,
        transport: row.transport,
        measured,
        headline: Text::join(words, " "),
    }
}

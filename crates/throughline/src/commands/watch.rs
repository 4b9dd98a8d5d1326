//! `thru watch`: live counters of a host, without a measurement.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use command::{Failure, values};
use model::{Nanos, Watched};
use options::values::{at_least, whole};
use session::facts;

use crate::console;

/// Intervals after which the column heads are repeated.
const HEAD_EVERY: u64 = 20;

/// Flags of `thru watch`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/watch.txt").trim_end())]
pub struct WatchArgs {
    /// A host that runs `thru serve`: a name or address, with :PORT if not 6280 [default: this host].
    #[arg(value_parser = values::host)]
    host: Option<String>,

    /// Length of an interval, at least 100ms, to keep the cost of reading low.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = at_least(Nanos(100_000_000)))]
    interval: Nanos,

    /// Exit after this many intervals [default: run until Ctrl-C].
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,

    /// File with the agent's token.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &WatchArgs) -> Result<u8, Failure> {
    let interval = Duration::from_nanos(args.interval.0);
    let note = |line: &str| errln!("thru: {line}");
    facts::watch(args.host.as_deref(), args.token_file.as_deref(), interval, note, |seen, shown| {
        let more = args.count.is_none_or(|count| shown + 1 < count);
        Ok(print_now(&text(seen, shown, args.json)?)? && more)
    })?;
    Ok(0)
}

fn text(seen: &Watched, shown: u64, json: bool) -> Result<String, Failure> {
    if json {
        return Ok(serde_json::to_string(seen)? + "\n");
    }
    let head = match shown {
        0 => report::watch_head(seen),
        shown if shown % HEAD_EVERY == 0 => report::watch_columns(),
        _ => String::new(),
    };
    Ok(head + &report::watch_lines(seen, console::spelling()))
}

/// Prints and flushes; false after the reader has closed its end (`thru watch | head`).
fn print_now(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(model::plain_lines(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) => console::failed(&error).map(|()| false),
    }
}

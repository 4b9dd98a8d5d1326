//! `thru watch`: how a host does, without a measurement.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use control::agent::Agent;
use control::coordinator::{End, Target};
use model::{Family, Nanos, Watched};

use crate::console;
use crate::failure::Failure;
use crate::measure;
use crate::signals::Signals;

/// Lines after which the heads of the columns come again.
const HEAD_EVERY: u64 = 20;

/// Flags of `thru watch`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru watch                              this host, every second, until Ctrl-C
  thru watch HOST --token-file FILE       the host of an agent, while something else measures there
  thru watch --interval 5s --count 12     a minute of it
  thru watch HOST --json                  an object a line, for programs")]
pub struct WatchArgs {
    /// A host running `thru serve`: a name or address, with :PORT if not 6280; left out for this host.
    host: Option<String>,

    /// Length of an interval, at least 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Nanos,

    /// End after this many intervals.
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// One JSON object a line.
    #[arg(long)]
    json: bool,

    /// File with the secret that the agent was started with.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &WatchArgs) -> Result<u8, Failure> {
    if args.interval.0 < 100_000_000 {
        return Err(Failure::usage("--interval below 100ms would watch itself: use 100ms or more"));
    }
    if args.count == Some(0) {
        return Err(Failure::usage("--count 0 would show nothing: use 1 or more"));
    }
    let token = measure::token(args.token_file.as_deref())?;
    let mut signals = Signals::catch()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let directory = measure::socket_directory()?;
        let here = Agent::local(measure::local_options(directory.path())?);
        let target = match &args.host {
            Some(host) => Target::Remote { host, token: token.as_ref(), family: Family::Any },
            None => Target::Local(&here),
        };
        let watched = async {
            let mut end = End::connect(target).await?;
            let shown = show(&mut end, args).await;
            end.release().await;
            shown
        };
        // Ctrl-C is how one ends it: no failure.
        tokio::select! {
            watched = watched => watched.map(|()| 0),
            _ = signals.next() => Ok(0),
        }
    })
}

async fn show(end: &mut End, args: &WatchArgs) -> Result<(), Failure> {
    end.watch(Duration::from_nanos(args.interval.0)).await?;
    let mut shown = 0;
    while args.count.is_none_or(|count| shown < count) {
        let seen = end.watched().await?;
        if !say(&text(&seen, shown, args.json)?)? {
            break;
        }
        shown += 1;
    }
    Ok(())
}

fn text(seen: &Watched, shown: u64, json: bool) -> Result<String, Failure> {
    if json {
        return Ok(serde_json::to_string(seen).map_err(Failure::other)? + "\n");
    }
    let head = match shown {
        0 => report::watch_head(seen),
        shown if shown % HEAD_EVERY == 0 => report::watch_columns(),
        _ => String::new(),
    };
    Ok(head + &report::watch_lines(seen))
}

/// Prints at once; false where nobody reads any more (`thru watch | head`).
fn say(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(model::plain_lines(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) => console::failed(&error).map(|()| false),
    }
}

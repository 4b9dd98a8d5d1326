//! `thru top`: the counters of a host, full-screen.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use command::{Failure, values};
use model::Nanos;
use options::values::at_least;
use session::facts;
use tui::{HostView, TerminalScreen, Wish};

use crate::sinks::screen::{end, look, no_terminal};

/// Flags of `thru top`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/top.txt").trim_end())]
pub struct TopArgs {
    /// A host that runs `thru serve`: a name or address, with :PORT if not 6280 [default: this host].
    #[arg(value_parser = values::host)]
    host: Option<String>,

    /// Time between two readings, at least 100ms, to keep the cost of reading low.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = at_least(Nanos(100_000_000)))]
    interval: Nanos,

    /// File with the agent's token.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    let title = format!("thru top {}", args.host.as_deref().unwrap_or("(this host)"));
    let on_wish = |wish| {
        if wish == Wish::Quit {
            end();
        }
    };
    let screen =
        TerminalScreen::open(HostView::new(title, look()), on_wish).map_err(|error| no_terminal(&error, "thru top"))?;
    let mut notes = Vec::new();
    let interval = Duration::from_nanos(args.interval.0);
    let note = std::cell::RefCell::new(&mut notes);
    let watched = facts::watch(
        args.host.as_deref(),
        args.token_file.as_deref(),
        interval,
        |line| note.borrow_mut().push(line.to_owned()),
        |seen, _| {
            screen.tell(seen.clone());
            Ok(true)
        },
    );
    // The last picture stays.
    screen.close().picture.iter().for_each(|line| outln!("{line}"));
    notes.iter().for_each(|line| errln!("thru: {line}"));
    watched.map(|()| 0)
}

//! `thru selftest`: the accuracy of this program on this host.

use std::path::{Path, PathBuf};

use clap::Args;
use command::failure::{self, Failure};
use command::{files, setup};
use session::selftest::{self, SelfTestEvent, SelfTestOptions};

use crate::{console, flags};

/// Flags of `thru selftest`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/selftest.txt").trim_end())]
pub struct SelftestArgs {
    /// Check one rate with shorter trials; the tolerance of the rate is then 1 % instead of 0.2 %.
    #[arg(long)]
    quick: bool,

    /// As root, skip the checks that need root.
    #[arg(long)]
    loopback: bool,

    /// Write the result as JSON to a file; `-` prints it instead of the table.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// Database file for the result [default: the one for runs].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,

    /// Do not store the result.
    #[arg(long)]
    no_store: bool,
}

/// Runs it.
pub fn run(args: &SelftestArgs) -> Result<u8, Failure> {
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = args.json.as_deref().filter(|_| !to_stdout) {
        files::check_writable(path)?;
    }
    let store = if args.no_store { None } else { Some(setup::open_store(args.store.as_deref())?) };
    let program = setup::own_program()?;
    let started_unix_ns = engine::unix_ns();
    let options = SelfTestOptions {
        program,
        version: command::VERSION.into(),
        quick: args.quick,
        loopback: args.loopback,
        exit: flags::at_once,
    };
    let found = selftest::run(&options, started_unix_ns, &mut |on_event| match on_event {
        SelfTestEvent::Check(check) if !to_stdout => outln!("{}", report::check_line(check, console::spelling())),
        SelfTestEvent::Check(_) => {}
        SelfTestEvent::Activity(what) => errln!("thru: testing {what}"),
    })?;
    if let Some(store) = store {
        store.keep_selftest(&found)?;
    }
    match &args.json {
        Some(_) if to_stdout => console::json(&found)?,
        Some(path) => files::write_json(path, &found)?,
        None => {}
    }
    if !to_stdout {
        out!("\n{}", report::selftest_summary(&found));
    }
    Ok(if found.passed() { 0 } else { failure::UNTRUSTED })
}

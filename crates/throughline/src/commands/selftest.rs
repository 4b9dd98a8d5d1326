//! `thru selftest`: the accuracy of this program on this host.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use session::failure::{self, Failure};
use session::files;
use session::selftest::{self, Options, SelfTestEvent};
use session::setup;

use crate::{console, flags};

/// Flags of `thru selftest`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru selftest                links of known rate and delay, about 5 minutes
  sudo thru selftest --quick        one rate, 40 seconds, for continuous integration
  thru selftest                     without root: the checks that loopback allows
  thru selftest --json result.json  the same, and write the result as JSON

Exit codes: 0 all checks passed, 8 a check failed. Other codes are as in `thru --help`.")]
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

    /// Database file of the result [default: that of the runs].
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
    let started_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let options = Options {
        program,
        version: session::VERSION.into(),
        quick: args.quick,
        loopback: args.loopback,
        exit: flags::at_once,
    };
    let found = selftest::run(&options, started_unix_ns, &mut |on_event| match on_event {
        SelfTestEvent::Check(check) if !to_stdout => outln!("{}", report::check_line(check)),
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

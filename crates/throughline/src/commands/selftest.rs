//! `thru selftest`: how far off this program is on this host.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use control::experiment::selftest::{self, Options, SelfTestEvent};

use crate::failure::{self, Failure};
use crate::output;

/// Flags of `thru selftest`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru selftest                  links of known rate and delay, about three minutes
  sudo thru selftest --quick          one rate, half a minute, for continuous integration
  thru selftest                       without root: what loopback allows
  thru selftest --json result.json    the same, and a document of it

Exit codes: 0 every check passed, 8 a check failed, others as everywhere.")]
pub struct SelftestArgs {
    /// One rate and shorter times; a rate may then be 1 % off instead of 0.2 %.
    #[arg(long)]
    quick: bool,

    /// Leave out what needs root, although this is root.
    #[arg(long)]
    loopback: bool,

    /// Write the result as JSON; `-` writes it to standard output in place of the table.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// The file in which the result is kept [default: where runs are kept].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,

    /// Do not keep the result.
    #[arg(long)]
    no_store: bool,
}

/// Runs it.
pub fn run(args: &SelftestArgs) -> Result<u8, Failure> {
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = args.json.as_deref().filter(|_| !to_stdout) {
        output::check_writable(path)?;
    }
    let store = if args.no_store { None } else { Some(crate::measure::open_store(args.store.as_deref())?) };
    let program = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))?;
    let started_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let options = Options { program, version: crate::VERSION.into(), quick: args.quick, loopback: args.loopback };
    let found = selftest::run(&options, started_unix_ns, &mut |on_event| match on_event {
        SelfTestEvent::Check(check) if !to_stdout => outln!("{}", report::check_line(check)),
        SelfTestEvent::Check(_) => {}
        SelfTestEvent::Activity(what) => errln!("thru: testing {what}"),
    })?;
    if let Some(store) = store {
        store.keep_selftest(&found)?;
    }
    let text = serde_json::to_string_pretty(&found).map_err(Failure::other)? + "\n";
    match &args.json {
        Some(_) if to_stdout => out!("{text}"),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::output(format!("cannot write {}: {error}", path.display())))?,
        None => {}
    }
    if !to_stdout {
        out!("\n{}", report::selftest_summary(&found));
    }
    Ok(if found.passed() { 0 } else { failure::UNTRUSTED })
}

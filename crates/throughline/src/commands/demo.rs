//! `thru demo`: a measurement between two emulated hosts on one machine.

use std::path::{Path, PathBuf};

use clap::Args;
use command::failure::{self, Failure};
use command::setup::own_program;
use model::Run;
use report::View;
use session::labs::demo::Demo;
use store::Store;

use crate::output;

/// Flags of `thru demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "demo-report")]
    report: PathBuf,

    /// Measure over loopback even as root.
    #[arg(long)]
    loopback: bool,

    /// Flags of `thru curve` for both curves, after `--` [default: --budget 8s].
    #[arg(last = true)]
    curve: Vec<String>,
}

/// The names of the two curves: waits that sleep, as in most programs, and waits that spin.
const CURVES: [(&str, &[&str]); 2] = [("blocking", &[]), ("spinning", &["--spin"])];

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let demo = Demo::build(args.loopback.then_some("--loopback is given"), |line| outln!("{line}"))?;
    let store = args.report.join("runs.sqlite");
    let earlier = count(&store)?;
    let codes = demo.measure(&store, &curves(&args.curve))?;
    let code = codes.iter().copied().max().unwrap_or_default();
    // A curve that is interrupted before its first trial is not stored.
    let new = count(&store)?.saturating_sub(earlier);
    if new > 0 && [0, failure::UNTRUSTED, failure::INTERRUPTED].contains(&code) {
        write_report(&store, &args.report, new)?;
    }
    Ok(code)
}

/// How many runs a database has that may not exist yet.
fn count(store: &Path) -> Result<usize, Failure> {
    if store.exists() { Ok(Store::open(store)?.count()?) } else { Ok(0) }
}

/// The flags of each curve.
fn curves(given: &[String]) -> Vec<(&'static str, Vec<String>)> {
    let common = if given.is_empty() { vec!["--budget".to_owned(), "8s".to_owned()] } else { given.to_vec() };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let flags = |own: &[&str]| {
        let own = own.iter().map(ToString::to_string).filter(|flag| !common.contains(flag));
        let mut all: Vec<String> = common.iter().cloned().chain(own).collect();
        // Two threads that spin on one core wait for each other.
        if cores > 1 && all.iter().any(|flag| flag == "--spin") && !all.iter().any(|flag| flag.starts_with("--pin")) {
            all.extend(["--pin".to_owned(), "1,0".to_owned()]);
        }
        all
    };
    CURVES.iter().map(|(name, own)| (*name, flags(own))).collect()
}

/// Prints the answers of the last `count` runs and writes the report on them.
fn write_report(store: &Path, folder: &Path, count: usize) -> Result<(), Failure> {
    let of = |back: usize| super::show::load(&format!("last~{back}"), Some(store));
    let runs = (0..count).rev().map(of).collect::<Result<Vec<Run>, Failure>>()?;
    output::print(None, &runs, false, None, Some(&output::Stored(Some(store))))?;
    out!("\nThe report:\n");
    for (format, target) in [("html", folder.join("curve.html")), ("png", folder.to_owned()), ("np", folder.to_owned())]
    {
        for path in output::write_pieces(format, View::new(&runs), &target)? {
            outln!("  {}", path.display());
        }
    }
    out!("\nNext, on two real hosts: run `thru serve --invite` on one and the line that it prints on the\n");
    outln!("other, then `thru curve HOST` ({}).", own_program()?.display());
    Ok(())
}

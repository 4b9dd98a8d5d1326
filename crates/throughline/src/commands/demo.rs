//! `thru demo`: a measurement between two emulated hosts on one machine.

use std::path::{Path, PathBuf};

use clap::Args;
use session::demo::Demo;
use session::failure::{self, Failure};
use session::setup::own_program;

/// Flags of `thru demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Folder of the report.
    #[arg(long, value_name = "FOLDER", default_value = "demo-report")]
    report: PathBuf,

    /// Measure over loopback, also as root.
    #[arg(long)]
    loopback: bool,

    /// Flags of `thru curve`, after `--`.
    #[arg(last = true)]
    curve: Vec<String>,
}

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let demo = Demo::build(args.loopback.then_some("--loopback is given"), |line| outln!("{line}"))?;
    let store = args.report.join("runs.sqlite");
    let code = demo.measure(&store, &args.curve)?;
    if [0, failure::UNTRUSTED, failure::INTERRUPTED].contains(&code) {
        write_report(&store, &args.report)?;
    }
    Ok(code)
}

fn write_report(store: &Path, folder: &Path) -> Result<(), Failure> {
    let run = super::show::load("last", Some(store))?;
    out!("\nThe report:\n");
    let runs = std::slice::from_ref(&run);
    for (format, target) in
        [("html", folder.join("curve.html")), ("png", folder.to_owned()), ("np", folder.join("np.out"))]
    {
        for path in crate::output::write_pieces(format, runs, Some(&target), None)? {
            outln!("  {}", path.display());
        }
    }
    out!("\nNext, on two real hosts: run `thru serve --listen 0.0.0.0 --token-file FILE` on one\n");
    outln!("and `thru curve HOST --token-file FILE` on the other ({}).", own_program()?.display());
    Ok(())
}

//! `thru lab down`: removes labs.

use clap::Args;
use command::Failure;
use lab::reap_stale;
use session::labs::removable;

/// Flags of `thru lab down`.
#[derive(Debug, Args)]
pub struct DownArgs {
    /// The labs to remove [default: all that `thru lab up` made].
    #[arg(value_name = "LAB")]
    labs: Vec<String>,

    /// Do not print the counters of the emulated links.
    #[arg(long, short)]
    quiet: bool,
}

/// Runs it.
pub fn run(args: &DownArgs) -> Result<u8, Failure> {
    for lab in removable(&args.labs)? {
        let report = lab.take_down()?;
        outln!("lab {} removed", lab.name);
        if !args.quiet {
            out!("{}", report::lab_report(&report));
        }
    }
    for name in reap_stale()? {
        outln!("remains of crashed lab {name} removed");
    }
    Ok(0)
}

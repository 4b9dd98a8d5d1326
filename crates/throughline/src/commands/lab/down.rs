//! `thru lab down`: removes labs.

use clap::Args;
use lab::{ExistingLab, labs, reap_stale};

use session::Failure;

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
    let standing = labs()?;
    let mut chosen: Vec<&ExistingLab> = Vec::new();
    for name in &args.labs {
        let Some(lab) = standing.iter().find(|lab| lab.name == *name) else {
            return Err(ExistingLab::find(Some(name))
                .err()
                .map_or_else(|| Failure::usage(format!("lab {name} has just been made: try again")), Failure::from));
        };
        if lab.lives && lab.topology.is_none() {
            return Err(Failure::usage(format!(
                "lab {name} belongs to process {}, which removes it when it ends",
                lab.owner_pid
            )));
        }
        chosen.push(lab);
    }
    if args.labs.is_empty() {
        chosen.extend(standing.iter().filter(|lab| lab.stays));
    }
    for lab in chosen.into_iter().filter(|lab| lab.lives) {
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

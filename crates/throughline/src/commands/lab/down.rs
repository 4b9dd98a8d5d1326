//! `thru lab down`: labs that are to go.

use clap::Args;
use lab::{ExistingLab, labs, reap_stale};

use crate::failure::Failure;

/// Flags of `thru lab down`.
#[derive(Debug, Args)]
pub struct DownArgs {
    /// The labs [default: all that `thru lab up` made].
    #[arg(value_name = "LAB")]
    labs: Vec<String>,

    /// Do not say what the emulated links did.
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
                .map_or_else(|| Failure::usage("it has just appeared"), Failure::from));
        };
        if lab.lives && lab.topology.is_none() {
            return Err(Failure::usage(format!(
                "lab {name} belongs to process {}, which removes it itself when it ends",
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
        outln!("lab {} is gone", lab.name);
        if !args.quiet {
            out!("{}", report::lab_report(&report));
        }
    }
    for name in reap_stale()? {
        outln!("what a crash had left of lab {name} is gone");
    }
    Ok(0)
}

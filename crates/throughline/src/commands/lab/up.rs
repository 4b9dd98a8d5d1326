//! `thru lab up`: a lab that stays up. A background process holds it and carries the emulated links.

use clap::Args;
use command::Failure;
use session::labs::{self, Raised, raise};

use super::Build;

/// Flags of `thru lab up`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/lab-up.txt").trim_end())]
pub struct UpArgs {
    #[command(flatten)]
    build: Build,
}

/// Runs it.
pub fn run(args: &UpArgs) -> Result<u8, Failure> {
    // Errors in the topology are reported here, not by the background process.
    args.build.topology()?.check()?;
    match raise(std::env::args_os().skip_while(|word| word != "up").skip(1))? {
        Raised::Up(name) => {
            outln!("lab {name} is up");
            Ok(0)
        }
        Raised::Failed { errors, code } => {
            err!("{errors}");
            Ok(code)
        }
    }
}

/// Holds a lab until its removal is requested.
pub fn hold(args: &UpArgs) -> Result<u8, Failure> {
    let Build { name, no_agents, .. } = &args.build;
    let note = |line: &str| errln!("thru: {line}");
    labs::hold(&args.build.topology()?, name.as_deref(), !no_agents, |line| outln!("{line}"), note)?;
    Ok(0)
}

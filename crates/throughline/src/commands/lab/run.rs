//! `thru lab run`: a lab for the time of one command.

use std::path::PathBuf;

use clap::Args;
use command::{Failure, files};
use session::labs::{LabJob, within};

use super::{Build, print_report, tell};

/// Flags of `thru lab run`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/lab-run.txt").trim_end())]
pub struct RunArgs {
    #[command(flatten)]
    build: Build,

    /// Host to run the command on [default: the first].
    #[arg(long, value_name = "HOST")]
    on: Option<String>,

    /// Write the counters of the emulated links to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print only the output of the command.
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs it.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let topology = args.build.topology()?;
    if let Some(path) = &args.json {
        files::check_writable(path)?;
    }
    let job = LabJob {
        topology: &topology,
        name: args.build.name.as_deref(),
        agents: !args.build.no_agents,
        on: args.on.as_deref(),
        command: &args.command,
    };
    let (report, code) = within(&job, &tell(&args.command, args.quiet))?;
    print_report(&report, args.quiet);
    if let Some(path) = &args.json {
        files::write_json(path, &report)?;
    }
    Ok(code)
}

//! `thru lab exec`: a command on a host of a lab that stands.

use std::os::unix::process::CommandExt;

use clap::Args;
use lab::ExistingLab;

use super::held::dress;
use super::program;
use crate::failure::Failure;

/// Flags of `thru lab exec`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru lab exec a -- thru stream b
  sudo thru lab exec --lab wan geneva -- ss -ti")]
pub struct ExecArgs {
    /// The lab [default: the only one].
    #[arg(long, value_name = "LAB")]
    lab: Option<String>,

    /// The host.
    #[arg(value_name = "HOST")]
    host: String,

    /// The command and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Becomes the command; returns only where that fails.
pub fn run(args: &ExecArgs) -> Result<u8, Failure> {
    let lab = ExistingLab::find(args.lab.as_deref())?;
    let (program, words) = program(&args.command)?;
    let mut command = lab.command(&args.host, program)?;
    command.args(words);
    dress(&mut command, &lab.name, &args.host, |end| lab.file(end).into());
    Err(Failure::host(format!("cannot start `ip netns exec`: {}", command.exec())))
}

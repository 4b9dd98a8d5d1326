//! `thru lab exec`: a command on a host of a lab that is up.

use clap::Args;
use command::Failure;
use session::labs::replace;

/// Flags of `thru lab exec`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru lab exec a -- thru stream b
  sudo thru lab exec --lab wan geneva -- ss -ti")]
pub struct ExecArgs {
    /// Name of the lab [default: the only lab that is up].
    #[arg(long, value_name = "LAB")]
    lab: Option<String>,

    /// Host of the lab.
    #[arg(value_name = "HOST")]
    host: String,

    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Replaces this process with the command; returns only on failure.
pub fn run(args: &ExecArgs) -> Result<u8, Failure> {
    Err(replace(args.lab.as_deref(), &args.host, &args.command))
}

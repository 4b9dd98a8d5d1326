//! `thru launched`: the agent of a far end that a launcher started. Internal.

use clap::Args;
use command::Failure;
use session::launch;

/// Flags of `thru launched`.
#[derive(Debug, Args)]
pub struct LaunchedArgs {
    /// Listen on all addresses instead of loopback: the near end is on another host.
    #[arg(long)]
    anywhere: bool,

    /// Run as a PVM task, for a parent with this network identity (boot and network namespace).
    #[arg(long, value_name = "IDENTITY", conflicts_with = "anywhere")]
    pvm: Option<String>,
}

/// Runs it.
pub fn run(args: &LaunchedArgs) -> Result<u8, Failure> {
    if let Some(identity) = &args.pvm {
        return launch::pvm::serve(identity);
    }
    launch::mpi::serve(args.anywhere)
}

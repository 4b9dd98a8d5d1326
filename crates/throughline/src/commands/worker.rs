//! `thru worker`: a measuring process of an agent. Internal.

use clap::Args;
use command::Failure;
use control::agent::WorkerLimits;
use options::values::whole;

/// Flags of `thru worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Largest memory of its own, bytes.
    #[arg(long, value_name = "BYTES", value_parser = whole(1..=u64::MAX))]
    memory: Option<u64>,

    /// Largest number of threads of its user.
    #[arg(long, value_name = "N", requires = "memory", value_parser = whole(1..=u64::MAX))]
    tasks: Option<u64>,
}

/// Runs it.
pub fn run(args: &WorkerArgs) -> Result<u8, Failure> {
    if let Some(memory_bytes) = args.memory {
        WorkerLimits { memory_bytes, tasks: args.tasks }.apply().map_err(Failure::other)?;
    }
    control::worker::serve_stdio().map(|()| 0).map_err(Failure::other)
}

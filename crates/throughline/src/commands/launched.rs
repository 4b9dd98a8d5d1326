//! `thru launched`: the agent of a far end that a launcher started. Internal.

use std::io::Write;
use std::os::fd::AsFd;

use clap::Args;

use session::Failure;
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

/// Runs it. Under MPI, its worker is at the other end of standard input, to which it first writes its offer.
pub fn run(args: &LaunchedArgs) -> Result<u8, Failure> {
    if let Some(identity) = &args.pvm {
        return launch::pvm::serve(identity);
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| Failure::other(format!("cannot connect to the measuring process: {error}")))?;
    let socket = std::os::unix::net::UnixStream::from(socket);
    let publish = move |offer: &launch::Offer| {
        // If the write fails, the process has ended, which is noticed elsewhere.
        let _ = (&socket).write_all(offer.line().as_bytes());
    };
    launch::far::serve(launch::waiting_worker()?, args.anywhere, publish, || false)
}

//! `thru launched`: the agent of a far end that a launcher started; not for people.

use std::io::Write;
use std::os::fd::AsFd;

use clap::Args;

use crate::failure::Failure;
use crate::launch;

/// Flags of `thru launched`.
#[derive(Debug, Args)]
pub struct LaunchedArgs {
    /// Listen on all addresses instead of loopback: the near end is on another host.
    #[arg(long)]
    anywhere: bool,

    /// As a PVM task, for a parent that runs in this place (boot and network namespace).
    #[arg(long, value_name = "PLACE", conflicts_with = "anywhere")]
    pvm: Option<String>,
}

/// Runs it. Under MPI its worker waits at the other end of standard input, where its offer goes first.
pub fn run(args: &LaunchedArgs) -> Result<u8, Failure> {
    if let Some(place) = &args.pvm {
        return launch::pvm::serve(place);
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| Failure::other(format!("cannot speak to the measuring process: {error}")))?;
    let socket = std::os::unix::net::UnixStream::from(socket);
    let tell = move |offer: &launch::Offer| {
        // A process that cannot be told is gone, which is noticed by itself.
        let _ = (&socket).write_all(offer.line().as_bytes());
    };
    launch::far::serve(launch::waiting_worker()?, args.anywhere, tell, || false)
}

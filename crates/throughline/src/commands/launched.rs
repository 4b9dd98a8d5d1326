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
}

/// Runs it. Its worker waits at the other end of standard input, where its offer goes first.
pub fn run(args: &LaunchedArgs) -> Result<u8, Failure> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| Failure::other(format!("cannot speak to the measuring process: {error}")))?;
    let socket = std::os::unix::net::UnixStream::from(socket);
    launch::far::serve(launch::waiting_worker()?, args.anywhere, move |offer| {
        // A process that cannot be told is gone, which is noticed by itself.
        let _ = (&socket).write_all(offer.line().as_bytes());
    })
}

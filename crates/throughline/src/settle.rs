//! A process that puts back what another one has set, should that one be killed: the journal's next reader, without waiting for one.

use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use control::agent::recover;
use host::tune::Journal;

use crate::failure::Failure;
use crate::flags;
use crate::values::whole;

/// What it is told.
#[derive(Debug, Args)]
pub struct SettleArgs {
    /// The process that set something.
    #[arg(value_parser = whole(1..=u32::MAX))]
    owner: u32,
}

/// How long a process that is being killed may take.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A process that waits for the end of this one. It has nothing to do any more when this is dropped.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start() -> Result<Self, Failure> {
        // The kernel closes the other end of its input with this process.
        spawn(Stdio::piped()).map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has what this process has set put back after its end, which is now.
pub fn leave() {
    // Where it cannot be started the next one that reads the journal does it.
    let _ = spawn(Stdio::null());
}

/// In a group of its own, so that what ends this process at a terminal does not reach it.
fn spawn(input: Stdio) -> Result<Child, Failure> {
    let failed = |error: io::Error| Failure::other(format!("cannot start `thru settle`: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["settle", &std::process::id().to_string()]);
    command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().map_err(failed)
}

/// Waits for the owner's end and puts back what it left.
pub fn run(args: &SettleArgs) -> Result<u8, Failure> {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let deadline = Instant::now() + END_LIMIT;
    // Its locks go with it, after its pipes or before.
    while parent_id() == args.owner && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    recover(&Journal::open(flags::journal().as_deref())?)?;
    Ok(0)
}

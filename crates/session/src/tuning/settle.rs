//! A process that restores the settings of another one that was killed, without waiting for the next command that reads the journal.

use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command::Failure;
use command::setup::journal;
use control::helper::recover;
use host::tune::Journal;

/// Time that the owner has to end.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A process that waits for the end of this one. Dropping the guard ends it.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start() -> Result<Self, Failure> {
        // The kernel closes the other end of its input when this process ends.
        spawn(Stdio::piped()).map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process that restores the settings of this one after its end, which is now.
pub fn restore_after_exit() {
    // If it cannot be started, the next command that reads the journal restores them.
    let _ = spawn(Stdio::null());
}

/// In its own process group, so that signals of the terminal do not reach it.
fn spawn(input: Stdio) -> Result<Child, Failure> {
    let failed = |error: io::Error| Failure::other(format!("cannot start `thru settle`: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["settle", &std::process::id().to_string()]);
    command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().map_err(failed)
}

/// Waits for the end of the process `owner` and restores the settings that it left.
pub fn run(owner: u32) -> Result<u8, Failure> {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let deadline = Instant::now() + END_LIMIT;
    // The kernel releases its locks before or after its pipes.
    while parent_id() == owner && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    recover(&Journal::open(journal().as_deref())?)?;
    Ok(0)
}

//! A process of this program, and what it says.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Killed when dropped.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(arguments: &[String]) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            anyhow::bail!("a process without pipes");
        };
        let (say, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
        });
        Ok(Self { child, input, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn go(&mut self) -> anyhow::Result<()> {
        Ok(self.input.write_all(b"go\n")?)
    }

    /// The next line; `None` if there is none in this time.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn line(&self, limit: Duration) -> anyhow::Result<Option<String>> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("a process of this test has ended by itself"),
        }
    }

    /// Waits for this line.
    pub(crate) fn until(&self, wanted: &str, limit: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if self.line(deadline.saturating_duration_since(Instant::now()))?.is_some_and(|line| line == wanted) {
                return Ok(());
            }
        }
        anyhow::bail!("a process did not say '{wanted}' within {limit:?}")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The most memory that a process has had, MiB.
pub(crate) fn peak_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|text| text.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

//! This program's own agent and clients, as processes, here or on a host of a lab.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::Run;

use crate::ControlError;

/// What `thru` is started with that is to end when its starter does, however that one ends: the other end of its standard input is
/// closed then.
pub const LEASH: &str = "--until-input-ends";

/// How long an agent may take to end in order: to remove its sockets and to put settings back.
const END_LIMIT: Duration = Duration::from_secs(5);

/// An agent in a process of its own. It ends when this is dropped, or with this process.
#[derive(Debug)]
pub struct OwnAgent {
    child: Child,
    /// Address and port that it listens on.
    pub target: String,
}

impl OwnAgent {
    /// Starts `thru serve --open` on any free port of `address`; `command` runs `thru`, with no flags yet.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it listens.
    pub fn start(command: Command, address: &str) -> Result<Self, ControlError> {
        Self::serving(command, &["--open".into(), "--listen".into(), format!("{address}:0").into()], address)
    }

    /// Starts `thru serve` with these flags; `place` says where for errors. It is out of reach of Ctrl-C, so that whoever measures
    /// can end the measurement with it.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it listens.
    pub fn serving(mut command: Command, flags: &[OsString], place: &str) -> Result<Self, ControlError> {
        let failed = |source| ControlError::io(format!("start an agent on {place}"), source);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.args([LEASH, "serve"]).args(flags);
        let mut child = command.spawn().map_err(failed)?;
        let errors = child.stderr.take();
        let mut agent = Self { child, target: String::new() };
        let mut said = String::new();
        if let Some(errors) = errors {
            let mut lines = BufReader::new(errors).lines();
            for line in lines.by_ref() {
                let line = line.map_err(failed)?;
                if let Some(rest) = line.split("listening on ").nth(1) {
                    agent.target = rest.split_whitespace().next().unwrap_or_default().to_owned();
                    // What else it says would only stand in the way, but it must not block on a full pipe.
                    std::thread::spawn(move || lines.for_each(drop));
                    return Ok(agent);
                }
                said = line;
            }
        }
        Err(failed(std::io::Error::other(format!("it ended before it listened: {said}"))))
    }
}

impl Drop for OwnAgent {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + END_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a measuring command of `thru` (`command` runs `thru` with nothing yet) and returns its run. Nothing is stored.
///
/// # Errors
/// When it cannot be started, ends with a code other than 0 and 8, or prints no run.
pub fn measure(mut command: Command, args: &[&str]) -> Result<Run, ControlError> {
    let doing = || format!("run `thru {}`", args.join(" "));
    command.arg(LEASH).args(args).args(["--no-store", "--quiet", "--json", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = |mut command: Command| {
        let mut child = command.spawn()?;
        let _leash = child.stdin.take();
        child.wait_with_output()
    };
    let output = run(command).map_err(|source| ControlError::io(doing(), source))?;
    let failed = |why: String| ControlError::io(doing(), std::io::Error::other(why));
    // A run that is not to be trusted is still a run; the checks see why.
    if !matches!(output.status.code(), Some(0 | 8)) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("it ended with {}: {}", output.status, said.trim())));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(format!("what it printed is no run: {error}")))
}

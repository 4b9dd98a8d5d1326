//! This program's own agent and clients, as processes, here or on a host of a lab.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command::Failure;
use command::config::UNTIL_INPUT_ENDS;
use command::setup::own_program;
use model::Run;

/// Time limit for an agent to end in order: to remove its sockets and to revert settings.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The environment variable with the clients' token file. A client of [`OwnAgent::start`] must not have it, because that agent
/// requires no token.
const TOKEN_VARIABLE: &str = "THRU_TOKEN_FILE";

/// An agent in its own process. It ends when this is dropped, or with this process.
#[derive(Debug)]
pub struct OwnAgent {
    child: Child,
    /// Address and port that it listens on.
    pub target: String,
}

impl OwnAgent {
    /// Starts `thru serve --open` on a free port of `address`; `command` runs `thru`, without flags.
    ///
    /// # Errors
    /// If it cannot be started, or ends before it listens.
    pub fn start(command: Command, address: &str) -> Result<Self, Failure> {
        Self::serving(command, &["--open".into(), "--listen".into(), format!("{address}:0").into()], address)
    }

    /// Starts `thru serve` with these flags; `location` is for errors. Ctrl-C does not reach it, so that the client ends the
    /// measurement.
    ///
    /// # Errors
    /// If it cannot be started, or ends before it listens.
    pub fn serving(mut command: Command, flags: &[OsString], location: &str) -> Result<Self, Failure> {
        let failed = |source| failure_of(format!("start an agent on {location}"), source);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.args([UNTIL_INPUT_ENDS, "serve", "--announce"]).args(flags);
        let mut child = command.spawn().map_err(failed)?;
        let (announced, errors) = (child.stdout.take(), child.stderr.take());
        let mut agent = Self { child, target: String::new() };
        // Its log is read all the time, so that it does not block on a full pipe.
        let log = std::thread::spawn(move || {
            errors.and_then(|errors| BufReader::new(errors).lines().map_while(Result::ok).last())
        });
        if let Some(announced) = announced {
            BufReader::new(announced).read_line(&mut agent.target).map_err(failed)?;
        }
        agent.target.truncate(agent.target.trim_end().len());
        if agent.target.is_empty() {
            let last_line = log.join().ok().flatten().unwrap_or_default();
            return Err(failed(std::io::Error::other(format!("it exited before it listened: {last_line}"))));
        }
        Ok(agent)
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

/// Runs a measuring command of `thru` (`command` runs `thru`, without arguments) and returns its run. Nothing is stored.
///
/// # Errors
/// If it cannot be started, ends with a code other than 0 and 8, or prints no run.
pub fn measure(mut command: Command, args: &[&str]) -> Result<Run, Failure> {
    let operation = || format!("run `thru {}`", args.join(" "));
    command.arg(UNTIL_INPUT_ENDS).args(args).args(["--no-store", "--quiet", "--json", "-"]).env_remove(TOKEN_VARIABLE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = |mut command: Command| {
        let mut child = command.spawn()?;
        // The command runs until this end of its standard input is closed.
        let _stdin = child.stdin.take();
        child.wait_with_output()
    };
    let output = run(command).map_err(|source| failure_of(operation(), source))?;
    let failed = |why: String| failure_of(operation(), std::io::Error::other(why));
    // Code 8 is a run that cannot be trusted; its verdicts give the reasons.
    if !matches!(output.status.code(), Some(0 | 8)) {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("it exited with {}: {}", output.status, errors.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).map_err(|error| failed(format!("its output is not a run: {error}")))
}

/// Measures a curve to the agent at `target` into the database `store`, with this name and the flags of a user, and returns its exit
/// code. `command` runs `thru`, without arguments; it shows its progress but not its result.
///
/// # Errors
/// If it cannot be started.
pub fn curve(mut command: Command, target: &str, store: &Path, name: &str, flags: &[String]) -> Result<u8, Failure> {
    command.args([UNTIL_INPUT_ENDS, "curve", target, "--name", name, "--store"]).arg(store).args(flags);
    command.env_remove(TOKEN_VARIABLE).stdin(Stdio::piped()).stdout(Stdio::null());
    let program = own_program()?;
    let failed = |error: io::Error| Failure::other(format!("cannot start {}: {error}", program.display()));
    let mut child = command.spawn().map_err(failed)?;
    let _input = child.stdin.take();
    let ended = child.wait().map_err(failed)?;
    // Ctrl-C reaches it, too, perhaps before it can handle it.
    let code = ended.code().or_else(|| Some(128 + ended.signal()?));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The failure of an operation.
pub(crate) fn failure_of(operation: impl Display, source: impl Display) -> Failure {
    Failure::other(format!("{operation}: {source}"))
}

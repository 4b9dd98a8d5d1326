//! Labs that stay up: a background process holds each of them and carries its emulated links.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use command::signals::{CaughtSignals, StopRequest};
use command::{Failure, setup};
use lab::{ExistingLab, Topology, labs};

use super::{RunningLab, program, set_lab_environment};

/// The line that the holder prints when the lab is up begins with this.
const READY: &str = "ready ";

/// A lab that should stay up.
#[derive(Debug)]
pub enum Raised {
    /// It is up, with this name.
    Up(String),
    /// Its process ended.
    Failed {
        /// What the process printed.
        errors: String,
        /// Its exit code.
        code: u8,
    },
}

/// Starts the process that holds a lab: `thru lab hold` with these words.
///
/// # Errors
/// It cannot be started.
pub fn raise(words: impl Iterator<Item = OsString>) -> Result<Raised, Failure> {
    let failed = |error| Failure::other(format!("cannot start the process that holds the lab: {error}"));
    let mut holder = Command::new(setup::own_program()?);
    holder.args(["lab", "hold"]).args(words);
    holder.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut holder = holder.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(output) = holder.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
    }
    if let Some(name) = line.trim_end().strip_prefix(READY) {
        return Ok(Raised::Up(name.to_owned()));
    }
    let mut errors = String::new();
    if let Some(mut output) = holder.stderr.take() {
        output.read_to_string(&mut errors).map_err(failed)?;
    }
    let code = holder.wait().map_err(failed)?.code().and_then(|code| u8::try_from(code).ok());
    Ok(Raised::Failed { errors, code: code.filter(|code| *code != 0).unwrap_or(1) })
}

/// Holds a lab until its removal is requested. `ready` gets the line for the process that waits for the lab, `note` what must be
/// seen.
///
/// # Errors
/// The lab cannot be made or removed.
pub fn hold(
    topology: &Topology,
    name: Option<&str>,
    agents: bool,
    ready: impl FnOnce(&str),
    note: impl Fn(&str),
) -> Result<(), Failure> {
    let runtime = setup::runtime()?;
    let mut signals = CaughtSignals::catch()?;
    let lab = RunningLab::build(topology, name, agents, true)?;
    let line = format!("{READY}{}", lab.network().name());
    runtime.block_on(lab.serve_while(async {
        // The process that waits for this line may connect at once.
        ready(&line);
        tokio::select! {
            () = ended(&mut signals) => {}
            () = lab.removal_requested() => {}
        }
    }))?;
    lab.close(note)?;
    Ok(())
}

/// Ends at the first signal other than SIGHUP: the lab outlives its terminal.
async fn ended(signals: &mut CaughtSignals) {
    while signals.next().await == StopRequest::Hangup {}
}

/// The labs with these names that live, or all that were made to stay up.
///
/// # Errors
/// There is no such lab, or it belongs to a command that removes it.
pub fn removable(names: &[String]) -> Result<Vec<ExistingLab>, Failure> {
    let standing = labs()?;
    let mut chosen: Vec<ExistingLab> = Vec::new();
    for name in names {
        let Some(lab) = standing.iter().find(|lab| lab.name == *name) else {
            return Err(ExistingLab::find(Some(name))
                .err()
                .map_or_else(|| Failure::usage(format!("lab {name} has just been made: try again")), Failure::from));
        };
        if lab.lives && lab.topology.is_none() {
            return Err(Failure::usage(format!(
                "lab {name} belongs to process {}, which removes it when it exits",
                lab.owner_pid
            )));
        }
        chosen.push(lab.clone());
    }
    if names.is_empty() {
        chosen.extend(standing.into_iter().filter(|lab| lab.stays));
    }
    chosen.retain(|lab| lab.lives);
    Ok(chosen)
}

/// Replaces this process with a command on a host of a lab that is up; returns only on failure.
pub fn replace(lab: Option<&str>, host: &str, command: &[String]) -> Failure {
    let replaced = || -> Result<std::io::Error, Failure> {
        let lab = ExistingLab::find(lab)?;
        let (program, words) = program(command)?;
        let mut command = lab.command(host, program)?;
        command.args(words);
        set_lab_environment(&mut command, &lab.name, host, |end| lab.file(end).into());
        Ok(command.exec())
    };
    replaced().map_or_else(|failure| failure, |error| Failure::host(format!("cannot start `ip netns exec`: {error}")))
}

//! Namespaces that are removed with their owner, however it ends.
//!
//! One script, `reaper.sh`, removes everything, in three situations: the scope is closed or dropped; the owner died
//! and the script, which waits as its child, notices; both died and a later process finds the journal's record.

use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::LabError;
use crate::ip::Ip;
use crate::journal::{Entry, Journal, Record};

const SCRIPT: &str = include_str!("reaper.sh");

/// Namespaces that are certain to be removed.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) ip: Ip,
    entry: Entry,
    /// The write end of the reaper's standard input and the reaper; taken when the scope ends.
    reaper: Option<(PipeWriter, Child)>,
}

impl Scope {
    /// Writes the record and starts the reaper. Makes no namespace yet; those named in the record may be made from
    /// here on.
    pub(crate) fn open(ip: Ip, journal: &Journal, record: Record) -> Result<Self, LabError> {
        let entry = journal.enter(record)?;
        match start_reaper(&ip, &entry) {
            Ok(reaper) => Ok(Self { ip, entry, reaper: Some(reaper) }),
            Err(source) => {
                let _ = std::fs::remove_file(&entry.path); // nothing was made; a leftover record does no harm
                Err(LabError::Run { command: "sh".into(), source })
            }
        }
    }

    /// Runs `ip` with arguments and returns what it printed.
    ///
    /// The command gets the write end of the reaper's pipe as its standard input. If the owner is killed while the
    /// command runs, the reaper waits for the command too, and cannot miss a namespace that is being made.
    pub(crate) fn run(&self, args: &[&str]) -> Result<String, LabError> {
        let lease = match &self.reaper {
            Some((lease, _)) => {
                let copy = lease.try_clone();
                Stdio::from(OwnedFd::from(copy.map_err(|source| LabError::Run { command: "ip".into(), source })?))
            }
            None => Stdio::null(),
        };
        self.ip.run(args, lease)
    }

    /// Removes everything and reports whether that worked. Processes that still run in the namespaces are killed.
    pub(crate) fn close(mut self) -> Result<(), LabError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), LabError> {
        let Some((lease, mut reaper)) = self.reaper.take() else { return Ok(()) };
        drop(lease);
        match reaper.wait() {
            Ok(status) if status.success() => Ok(()),
            // The reaper was killed, or failed.
            _ => sweep(&self.ip, &self.entry),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let _ = self.end(); // close() reports failures; the journal keeps what is left
    }
}

/// Removes the labs whose owner has died, and returns their names.
///
/// Every new lab does this first; it is public for a command that cleans up. Only what the journal names is touched.
///
/// # Errors
/// If there is no `ip` command, the journal cannot be read, or a namespace could not be removed; the others are then
/// removed all the same.
pub fn reap_stale() -> Result<Vec<String>, LabError> {
    let journal = Journal::open()?;
    let stale = journal.stale()?;
    if stale.is_empty() {
        return Ok(Vec::new());
    }
    let ip = Ip::find()?;
    let swept: Vec<_> = stale.iter().map(|entry| sweep(&ip, entry).map(|()| entry.record.lab.clone())).collect();
    swept.into_iter().collect()
}

/// Starts the script that waits for the owner's end.
fn start_reaper(ip: &Ip, entry: &Entry) -> io::Result<(PipeWriter, Child)> {
    // Both ends close on exec, so no other child of the owner keeps the pipe open.
    let (wait, lease) = io::pipe()?;
    let reaper = script(ip, entry).stdin(wait).spawn()?;
    Ok((lease, reaper))
}

/// Runs the script now.
fn sweep(ip: &Ip, entry: &Entry) -> Result<(), LabError> {
    let status = script(ip, entry)
        .stdin(Stdio::null())
        .status()
        .map_err(|source| LabError::Run { command: "sh".into(), source })?;
    if status.success() {
        return Ok(());
    }
    Err(LabError::LeftBehind { namespaces: entry.record.namespaces.join(" and ") })
}

/// The script with its arguments. It has its own process group, so that Ctrl-C on the owner's terminal does not reach
/// it; it inherits no output, so that nothing waits for it to close a pipe.
fn script(ip: &Ip, entry: &Entry) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", SCRIPT, "lab-reaper"])
        .arg(&ip.program)
        .arg(&entry.path)
        .args(&entry.record.namespaces)
        .current_dir("/")
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

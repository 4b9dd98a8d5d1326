//! The `ip` command of iproute2.
//!
//! A command instead of netlink, because a named namespace is more than a kernel object: it is a mount below
//! /run/netns with iproute2's conventions. With iproute2's own command, the user's `ip netns` also sees and enters the
//! lab's hosts, and `ip netns exec` gives the program a /sys that shows the namespace. Every distribution with network
//! tools has it, and every failure has a command line that a person can repeat.

use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::LabError;

/// Where the command may be if PATH does not have it: an ordinary user's PATH often lacks the sbin directories.
const USUAL: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

/// The `ip` command.
#[derive(Debug, Clone)]
pub(crate) struct Ip {
    /// Absolute path of the program.
    pub(crate) program: PathBuf,
}

impl Ip {
    /// Finds the command in PATH or in the usual directories.
    pub(crate) fn find() -> Result<Self, LabError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_in(&[path.as_os_str(), OsStr::new(USUAL)])
    }

    fn find_in(paths: &[&OsStr]) -> Result<Self, LabError> {
        // A relative entry would name another file once a command runs in another directory.
        let mut directories = paths.iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute());
        let found = directories.find_map(|directory| Some(directory.join("ip")).filter(|program| program.is_file()));
        found.map(|program| Self { program }).ok_or(LabError::NoIp { usual: USUAL })
    }

    /// Runs the command and returns what it printed.
    ///
    /// `stdin` is not read; the child only keeps it open while it runs.
    pub(crate) fn run(&self, args: &[&str], stdin: Stdio) -> Result<String, LabError> {
        let line = || format!("ip {}", args.join(" "));
        let failed = |source| LabError::Run { command: line(), source };
        let mut command = Command::new(&self.program);
        // Ctrl-C at a terminal ends what called this, once nothing is half done.
        command.args(args).stdin(stdin).process_group(0);
        let mut output = command.output().map_err(failed)?;
        if output.status.signal() == Some(Signal::INT.as_raw()) {
            // It came before the child had left this process's group, so that nothing was done.
            output = command.output().map_err(failed)?;
        }
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        // Some failures take two lines; an error takes one.
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        let reason = if said.is_empty() { output.status.to_string() } else { said };
        Err(LabError::Command { command: line(), reason })
    }

    /// A command that runs `program` in a namespace.
    pub(crate) fn exec(&self, namespace: &str, program: &OsStr) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["netns", "exec", namespace]).arg(program);
        command
    }
}

/// The list that an `ip -j` command printed; it prints nothing for an empty one.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(args: &[&str], text: &str) -> Result<Vec<T>, LabError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(text)
        .map_err(|error| LabError::Run { command: format!("ip {}", args.join(" ")), source: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_command_names_what_to_install() {
        let empty = tempfile::tempdir().unwrap();
        let error = Ip::find_in(&[empty.path().as_os_str(), OsStr::new(".")]).unwrap_err().to_string();
        assert!(error.contains("PATH") && error.contains("install iproute2"), "{error}");
    }

    #[test]
    fn a_failing_command_is_named_with_its_message() {
        let Ok(ip) = Ip::find() else {
            eprintln!("SKIPPED: a_failing_command_is_named_with_its_message: there is no ip command");
            return;
        };
        let error = ip.run(&["link", "show", "dev", "thru-no-such"], Stdio::null()).unwrap_err().to_string();
        assert!(error.starts_with("`ip link show dev thru-no-such` failed: "), "{error}");
        assert!(error.contains("does not exist") || error.contains("can't find"), "{error}");
    }
}

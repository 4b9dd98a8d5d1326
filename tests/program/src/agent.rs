//! `thru serve` for tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::binary::thru;
use crate::client::Sandbox;
use crate::process::{LIMIT, Process, Signal, eventually, runs};
use crate::tls::key_in;

/// An agent that ends with its test.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    addresses: Vec<String>,
    /// Its sockets and temporary folder: an agent that is killed leaves them behind.
    folder: tempfile::TempDir,
}

impl Agent {
    /// On a free port of loopback, IPv4 and IPv6.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// The same with more flags.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn with(flags: &[&str]) -> Self {
        let addresses = ["--listen", "127.0.0.1:0", "--listen", "[::1]:0"];
        Self::spawn(Command::new(thru()), &[addresses.as_slice(), flags].concat())
    }

    /// The same with the token of a sandbox, which `--allow-tuning`, `--allow-capture` and `--allow-stacks` need.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn with_token(sandbox: &Sandbox, flags: &[&str]) -> Self {
        Self::with(&[sandbox.token_flags().as_slice(), flags].concat())
    }

    /// Runs `command` (`thru`, here or on a host of a lab) with all flags after `serve`.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn spawn(mut command: Command, flags: &[&str]) -> Self {
        command.arg("serve").args(flags).args(user_for(flags));
        let listens = || flags.windows(2).filter(|pair| pair[0] == "--listen").map(|pair| pair[1]);
        // A wildcard stands for both IP versions.
        let any = |address: &&str| address.starts_with("0.0.0.0") || address.starts_with("[::]");
        let wanted = listens().count() + listens().filter(any).count();
        // An agent of root becomes another user, which makes its folder here.
        let folder = tempfile::Builder::new().prefix("thru-test-").tempdir().expect("a folder");
        let open = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(folder.path(), open).expect("it is ours");
        if !command.get_envs().any(|(name, _)| name == "TMPDIR") {
            command.env("TMPDIR", folder.path());
        }
        if !command.get_envs().any(|(name, _)| name == "THRU_AGENT_KEY") {
            command.env("THRU_AGENT_KEY", key_in(folder.path()));
        }
        // On a bus it keeps results there.
        command.env("STATE_DIRECTORY", state_in(folder.path()));
        let mut agent = Self { process: Process::spawn(command), addresses: Vec::new(), folder };
        eventually("the agent listens", || {
            let log = agent.process.stderr();
            assert!(agent.process.ended().is_none(), "the agent ended: {log}");
            agent.addresses = log.lines().filter_map(address).collect();
            agent.addresses.len() == wanted
        });
        agent
    }

    /// The first address and port that it listens on, as a HOST argument.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.addresses[0]
    }

    /// The second address: of an agent from [`start`](Self::start), IPv6.
    #[must_use]
    pub fn host_v6(&self) -> &str {
        &self.addresses[1]
    }

    /// Its port.
    ///
    /// # Panics
    /// Never: it came up.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.host().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    /// The code that `serve --invite` has printed.
    ///
    /// # Panics
    /// It prints none.
    #[must_use]
    pub fn code(&self) -> String {
        let mut code = None;
        eventually("the agent prints a code", || {
            let printed = self.process.stdout();
            let mut words = printed.split_whitespace().skip_while(|word| *word != "--code").skip(1);
            code = words.next().map(str::to_owned);
            code.is_some()
        });
        code.expect("it is printed")
    }

    /// The folder where one on a bus keeps results.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        state_in(self.folder.path())
    }

    /// Its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.stderr()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait(LIMIT)
    }

    /// Process numbers of its measuring processes.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        // An agent of root has a helper, too.
        children_called(self.pid(), "worker")
    }

    /// Open descriptors (proc(5), fd).
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the agent runs").count()
    }

    /// Resident memory in KiB (proc(5), status).
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the agent runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

/// The running children of a process.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|number| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            // State and parent (proc_pid_stat(5)).
            fields.next() != Some("Z") && fields.next() == Some(&pid.to_string())
        })
        .collect()
}

/// The children of a process that have ended and that it has not waited for.
#[must_use]
pub fn zombies(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let numbers = list.split_whitespace().filter_map(|number| number.parse().ok());
    numbers.filter(|number| !runs(*number)).collect()
}

/// A user for an agent of root that may change the host: it is not nobody then.
#[must_use]
pub fn user_for(flags: &[&str]) -> Vec<&'static str> {
    let changes = ["--allow-tuning", "--allow-stacks", "--allow-capture"];
    let may = flags.iter().any(|flag| changes.contains(&flag.split('=').next().unwrap_or(flag)));
    let named = flags.contains(&"--user") || !rustix::process::geteuid().is_root();
    if may && !named { vec!["--user", OTHER_USER] } else { Vec::new() }
}

/// A user of each system that runs nothing.
pub const OTHER_USER: &str = "daemon";

/// An agent's helper: the process that starts it, also again, and the one that serves.
#[must_use]
pub fn helpers(agent: u32) -> Vec<u32> {
    let starting = children_called(agent, "helper");
    let serving = starting.iter().flat_map(|pid| children_called(*pid, "helper")).collect::<Vec<_>>();
    [starting, serving].concat()
}

/// The running children of a process that are this subcommand of `thru`.
#[must_use]
pub fn children_called(pid: u32, subcommand: &str) -> Vec<u32> {
    let called = |pid: &u32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split('\0').nth(1) == Some(subcommand)
    };
    children(pid).into_iter().filter(called).collect()
}

/// All running processes below one.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    let of = children(pid);
    of.iter().flat_map(|child| descendants(*child)).chain(of.iter().copied()).collect()
}

/// The address in a line of an agent's log that says where it listens.
fn address(line: &str) -> Option<String> {
    line.split("listening on ").nth(1)?.split_whitespace().next().map(str::to_owned)
}

fn state_in(folder: &Path) -> PathBuf {
    folder.join("state")
}

//! Commands on hosts of the lab, from threads that have no world.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::counts::Counts;

/// A command that takes longer has lost its agent, and would be a fault.
const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const SACK: &str = "far:sysctl.net.ipv4.tcp_sack=0";
pub(crate) const RMEM: &str = "sysctl.net.ipv4.tcp_rmem=4096 200000 8000000";

/// What a command line is made of, so that threads need no world.
#[derive(Clone)]
pub(crate) struct Station {
    pub(crate) root: String,
    pub(crate) open: String,
    pub(crate) agents: [u32; 2],
    pub(crate) programs: lab::NetworkHost,
    pub(crate) lost: lab::NetworkHost,
    pub(crate) folder: PathBuf,
    pub(crate) counts: Counts,
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Station {
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while self.goes_on() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn spawn(&self, host: &lab::NetworkHost, open: bool, args: &[&str]) -> Child {
        use std::os::unix::process::CommandExt;
        let mut command: Command = host.command(program::binary::thru());
        command.args(args).process_group(0).current_dir(&self.folder).env("TMPDIR", &self.folder);
        command.env("THRU_KNOWN_AGENTS", self.folder.join("known_agents"));
        command.env("THRU_STORE", self.folder.join("runs.sqlite")).env("THRU_JOURNAL", self.folder.join("journal"));
        if !open {
            command.env("THRU_TOKEN_FILE", self.folder.join("token"));
        }
        self.running.fetch_add(1, Ordering::SeqCst);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("thru starts")
    }

    /// Waits for its end; a soak that ends kills it. Its exit code.
    pub(crate) fn wait(&self, mut child: Child) -> Option<i32> {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > LIMIT || !self.goes_on() {
                let _ = child.kill();
            }
            if begun.elapsed() > LIMIT {
                self.counts.add("commands that did not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        status.code()
    }

    pub(crate) fn kill(&self, mut child: Child) {
        let _ = child.kill();
        let _ = child.wait();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

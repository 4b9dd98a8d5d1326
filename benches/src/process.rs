//! Programs that run on given cores and end with this process.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::guard::{END_LIMIT, Report};

/// Polling interval.
const STEP: Duration = Duration::from_millis(5);
/// Time limit for a server to listen.
const START: Duration = Duration::from_secs(10);

/// A program and its environment.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Its command line.
    pub argv: Vec<String>,
    /// Variables of its environment beside ours.
    pub env: Vec<(&'static str, String)>,
}

/// A program's output and report.
#[derive(Debug, Default)]
pub struct Ended {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How it ended and what it used.
    pub report: Report,
}

/// How to detect that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// It listens on this TCP port or has bound this UDP port.
    Port(u16),
    /// This file exists.
    File(PathBuf),
}

/// A program under a guard (`guard.rs`), pinned to cores; it ends when this is dropped or when we are killed.
#[derive(Debug)]
pub struct Running {
    guard: Child,
    line: Option<ChildStdin>,
    folder: TempDir,
}

impl Running {
    /// Starts the program on `cores`. `capture` keeps its output for [`run`]; a server's output is discarded.
    pub fn start(cores: &[u32], program: &Program, capture: bool) -> Result<Self> {
        let out = || if capture { Stdio::piped() } else { Stdio::null() };
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
        let mut guard = Command::new(std::env::current_exe().context("cannot find this program's path")?)
            .args(["guard", &cores.join(",")])
            .arg(folder.path().join("report"))
            .args(&program.argv)
            .envs(program.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(out())
            .stderr(out())
            // Ctrl-C goes only to us; the guard notices the end of its input.
            .process_group(0)
            .spawn()
            .context("cannot start a guard")?;
        let line = guard.stdin.take();
        Ok(Self { guard, line, folder })
    }

    /// Waits until the server is ready.
    pub fn wait_for(&mut self, ready: &Ready) -> Result<()> {
        let start = Instant::now();
        while !is_ready(ready) {
            if let Some(status) = self.guard.try_wait()? {
                bail!(
                    "the server ended before it listened ({})",
                    self.report().map_or(status.to_string(), |report| {
                        report.code.map_or("by a signal".to_owned(), |code| format!("exit code {code}"))
                    })
                );
            }
            if start.elapsed() > START {
                bail!("the server did not listen within {} s", START.as_secs());
            }
            thread::sleep(STEP);
        }
        Ok(())
    }

    /// Ends the program and everything that it started; returns what they used.
    pub fn stop(mut self) -> Result<Report> {
        self.end();
        self.report()
    }

    fn report(&self) -> Result<Report> {
        let text = fs::read_to_string(self.folder.path().join("report")).context("the guard wrote no report")?;
        Ok(serde_json::from_str(&text)?)
    }

    fn end(&mut self) {
        self.line = None;
        let start = Instant::now();
        // The guard terminates the program, waits, kills it, and does the same with its descendants.
        while start.elapsed() < 4 * END_LIMIT {
            match self.guard.try_wait() {
                Ok(None) => thread::sleep(STEP),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs the program on `cores` until it ends or reaches `limit`.
pub fn run(cores: &[u32], program: &Program, limit: Duration) -> Result<Ended> {
    let start = Instant::now();
    let mut running = Running::start(cores, program, true)?;
    let (reported, end) = mpsc::channel();
    let readers = [pipe(running.guard.stdout.take(), reported.clone()), pipe(running.guard.stderr.take(), reported)];
    // Both pipes are closed when the guard is done; it may end shortly afterwards.
    for _ in &readers {
        if end.recv_timeout(limit.saturating_sub(start.elapsed())).is_err() {
            bail!("{} took longer than {} s and was ended", program.argv.join(" "), limit.as_secs());
        }
    }
    running.guard.wait()?;
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap_or_default());
    let report = running.report().with_context(|| format!("{}: {}", program.argv.join(" "), stderr.trim()))?;
    Ok(Ended { stdout, stderr, report })
}

/// Reads a pipe to its end in a thread, so that neither pipe blocks the program.
fn pipe(source: Option<impl Read + Send + 'static>, reported: mpsc::Sender<()>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            let _ = source.read_to_end(&mut bytes);
        }
        let _ = reported.send(());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn is_ready(ready: &Ready) -> bool {
    match ready {
        Ready::Port(port) => listening(*port),
        Ready::File(path) => path.exists(),
    }
}

/// Whether a socket of this network namespace listens on the TCP port or is bound to the UDP one. Read from
/// /proc, because NPtcp's receiver takes the first connection for its peer.
fn listening(port: u16) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .any(|table| table.lines().skip(1).any(|line| listens(line, port)))
}

/// A line is `sl local_address:port remote_address:port state ...` in hexadecimal; state 0A is LISTEN, and 07 is that of a UDP
/// socket without a peer (a TCP socket in that state, CLOSE, is in no table).
fn listens(line: &str, port: u16) -> bool {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local =
        fields.next().and_then(|local| local.rsplit(':').next()).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    local == Some(port) && fields.nth(1).is_some_and(|state| state == "0A" || state == "07")
}

/// A free TCP port.
pub fn free_port() -> Result<u16> {
    let probe = std::net::TcpListener::bind(("127.0.0.1", 0)).context("cannot find a free port")?;
    Ok(probe.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen_and_a_connection_is_not_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(listening(port));
        assert!(!listening(client.local_addr().unwrap().port()));
    }

    #[test]
    fn a_bound_udp_socket_is_a_server_that_is_ready() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(is_ready(&Ready::Port(socket.local_addr().unwrap().port())));
    }
}

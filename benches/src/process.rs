//! Programs that are started on a core, and do not outlive us.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two looks at something that has no event to wait for.
const STEP: Duration = Duration::from_millis(5);

/// What a program left behind.
#[derive(Debug, Default)]
pub struct Ended {
    /// Its exit code, `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
}

/// A program in a process group of its own, pinned to a core; the group ends when this is dropped, the program also when we
/// are killed.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts `argv` on `core`. `heard` keeps what it prints for [`run`]; a server's words go nowhere.
    pub fn start(core: u32, argv: &[String], heard: bool) -> Result<Self> {
        let out = || if heard { Stdio::piped() } else { Stdio::null() };
        // A group of its own keeps Ctrl-C from reaching it, so the kernel is asked to end it with us.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "taskset", "-c", &core.to_string()])
            .args(argv)
            .stdin(Stdio::null())
            .stdout(out())
            .stderr(out())
            .process_group(0)
            .spawn()
            .context("cannot start setpriv (Debian's util-linux has it, and taskset)")?;
        Ok(Self(child))
    }

    /// Waits until something listens on the TCP port.
    pub fn wait_for(&mut self, port: u16) -> Result<()> {
        let start = Instant::now();
        while !listening(port) {
            if let Some(status) = self.0.try_wait()? {
                bail!("the server ended before it listened ({status})");
            }
            if start.elapsed() > Duration::from_secs(5) {
                bail!("the server did not listen within 5 s");
            }
            thread::sleep(STEP);
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // A group that is gone needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    fn ended_within(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        loop {
            match self.0.try_wait() {
                Ok(None) if start.elapsed() < limit => thread::sleep(STEP),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Not reaped yet, so that its number cannot be another group's by now.
        self.signal(Signal::TERM);
        if !self.ended_within(PATIENCE) {
            self.signal(Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// Runs `argv` on `core` to its end, or ends it at `limit`.
pub fn run(core: u32, argv: &[String], limit: Duration) -> Result<Ended> {
    let start = Instant::now();
    let mut running = Running::start(core, argv, true)?;
    let (told, end) = mpsc::channel();
    let readers = [pipe(running.0.stdout.take(), told.clone()), pipe(running.0.stderr.take(), told)];
    // Both pipes are closed when the program is done with them; it may still have to end then.
    for _ in &readers {
        if end.recv_timeout(limit.saturating_sub(start.elapsed())).is_err() {
            bail!("{} took longer than {} s and was ended", argv.join(" "), limit.as_secs());
        }
    }
    let status: ExitStatus = running.0.wait()?;
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap_or_default());
    Ok(Ended { code: status.code(), stdout, stderr, elapsed_ns })
}

/// Reads a pipe to its end in a thread, so that neither pipe blocks the program.
fn pipe(source: Option<impl Read + Send + 'static>, told: mpsc::Sender<()>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            let _ = source.read_to_end(&mut bytes);
        }
        let _ = told.send(());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether a socket of this network namespace listens on the TCP port, or is bound to the UDP one. Looked up instead of tried: NPtcp's receiver takes the
/// first connection for its peer.
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

/// A TCP port that nothing uses right now.
pub fn free_port() -> Result<u16> {
    let probe = std::net::TcpListener::bind(("127.0.0.1", 0)).context("cannot find a free port")?;
    Ok(probe.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_listener_is_seen_and_a_connection_is_not_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(listening(port));
        assert!(!listening(client.local_addr().unwrap().port()));
    }

    #[test]
    fn what_a_program_says_and_how_it_ends_come_back() {
        let ended = run(0, &words(&["sh", "-c", "echo out; echo err >&2; exit 7"]), Duration::from_secs(60)).unwrap();
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(7), "out\n", "err\n"));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_its_children() {
        let error = run(0, &words(&["sh", "-c", "sleep 1000 & sleep 1000"]), Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("was ended"), "{error}");
    }

    #[test]
    fn a_server_that_cannot_start_is_no_server() {
        let mut server = Running::start(0, &words(&["false"]), false).unwrap();
        assert!(server.wait_for(free_port().unwrap()).unwrap_err().to_string().contains("before it listened"));
    }
}

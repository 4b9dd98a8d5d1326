//! Child processes that cannot outlive or block their test.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// Longer than any command of these tests takes on a busy machine. A test that reaches it fails.
pub const LIMIT: Duration = Duration::from_secs(90);

/// Waits until `holds`, or fails with `what` after [`LIMIT`].
///
/// # Panics
/// Then.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    within(LIMIT, what, holds);
}

/// Waits until `holds`, or fails with `what` after `limit`.
///
/// # Panics
/// Then.
pub fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A child with its output, killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdout: Capture,
    stderr: Capture,
    line: String,
}

impl Process {
    /// Starts `command` with no input.
    ///
    /// # Panics
    /// The program cannot be started.
    pub fn spawn(mut command: Command) -> Self {
        let line = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut child = loop {
            match command.spawn() {
                Ok(child) => break child,
                // A child that another thread just forked still has a script of this test open for writing, until its exec.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{line}: {error}"),
            }
        };
        let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        Self { child, stdout: Capture::of(stdout), stderr: Capture::of(stderr), line }
    }

    /// Its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed on standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has printed on standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// It has already been waited for.
    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Whether it has ended, without waiting.
    ///
    /// # Panics
    /// waitpid fails.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits for its end and for all it printed; it fails the test when that takes longer than `limit`.
    ///
    /// # Panics
    /// Then.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                self.stdout.finish();
                self.stderr.finish();
                return status;
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                panic!("{} did not end within {limit:?}; its output:\n{}", self.line, self.stderr());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process of this test.
///
/// # Panics
/// There is no such process.
pub fn send(pid: u32, signal: Signal) {
    assert!(reaches(pid, signal), "the process {pid} is there");
}

/// Sends a signal to a process that may just have ended; whether it was there.
///
/// # Panics
/// `pid` is no process number.
#[must_use]
pub fn reaches(pid: u32, signal: Signal) -> bool {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process number")).expect("not 0");
    kill_process(pid, signal).is_ok()
}

/// Whether a process runs; a zombie does not.
#[must_use]
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The output of a pipe, collected by a thread so that the writer never blocks.
#[derive(Debug)]
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                sink.lock().expect("no panic while it was held").extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no panic while it was held")).into_owned()
    }

    /// Waits for the end of the pipe. A grandchild may keep it open a little longer than the child lives.
    fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            let deadline = Instant::now() + Duration::from_secs(5);
            while !reader.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

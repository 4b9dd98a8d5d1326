//! `thru` commands with their own store and folder.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Doc;
use crate::binary::thru;
use crate::process::{LIMIT, Process, Signal, eventually};
use crate::tls::{key_in, private_file};

/// A folder with a store; removed when dropped.
#[derive(Debug)]
pub struct Sandbox {
    folder: tempfile::TempDir,
    /// The token that its commands use.
    token: Option<PathBuf>,
}

/// The token of tests, 256 bits that are not random.
pub const TOKEN: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running(Process);

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// An empty one.
    ///
    /// # Panics
    /// No folder can be made.
    #[must_use]
    pub fn new() -> Self {
        // An agent of root becomes another user, which makes its folders here.
        let folder = tempfile::Builder::new().prefix("thru-test-").tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(folder.path(), open).expect("it is ours");
        key_in(folder.path());
        Self { folder, token: None }
    }

    /// A sandbox whose commands use a token, for [`Agent::with_token`](crate::Agent::with_token).
    ///
    /// # Panics
    /// It cannot be written.
    #[must_use]
    pub fn with_token() -> Self {
        let sandbox = Self::new();
        let file = sandbox.secret("token", TOKEN);
        Self { token: Some(file), ..sandbox }
    }

    /// A file that only its owner can read.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn secret(&self, name: &str, text: &str) -> PathBuf {
        private_file(&self.path(name), text)
    }

    /// The flags of an agent that requires the token of this sandbox.
    ///
    /// # Panics
    /// It has none.
    #[must_use]
    pub fn token_flags(&self) -> [&str; 2] {
        ["--token-file", self.token.as_ref().and_then(|file| file.to_str()).expect("a sandbox with a token")]
    }

    /// A path in its folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path("runs.sqlite")
    }

    /// `thru` with arguments, keeping runs here.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> Command {
        self.prepare(Command::new(thru()), args)
    }

    /// The same for a command that runs `thru` elsewhere, for example on a host of a lab.
    pub fn prepare<S: AsRef<str>>(&self, mut command: Command, args: &[S]) -> Command {
        command.args(args.iter().map(AsRef::as_ref)).env("THRU_STORE", self.store()).current_dir(self.folder.path());
        command.env("THRU_CONFIG", "");
        // A client that is killed leaves the folder of its sockets behind.
        command.env("TMPDIR", self.folder.path());
        // Agents of this test have this key; those with another one are kept here.
        if !command.get_envs().any(|(name, _)| name == "THRU_AGENT_KEY") {
            command.env("THRU_AGENT_KEY", self.path("agent.key"));
        }
        command.env("THRU_KNOWN_AGENTS", self.path("known_agents"));
        if let Some(token) = &self.token {
            command.env("THRU_TOKEN_FILE", token);
        }
        command
    }

    /// Starts `thru`.
    pub fn start<S: AsRef<str>>(&self, args: &[S]) -> Running {
        Running(Process::spawn(self.command(args)))
    }

    /// Runs `thru` to its end.
    pub fn run<S: AsRef<str>>(&self, args: &[S]) -> Finished {
        self.start(args).wait()
    }

    /// Measures and returns the document.
    ///
    /// # Panics
    /// The exit code is not 0.
    pub fn measure<S: AsRef<str>>(&self, args: &[S]) -> Doc {
        let args: Vec<&str> = args.iter().map(AsRef::as_ref).chain(["--json", "-"]).collect();
        self.run(&args).ok().doc()
    }

    /// Runs something else in the folder.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn tool(&self, program: impl AsRef<Path>, args: &[&str]) -> Finished {
        let mut command = Command::new(program.as_ref());
        command.args(args).current_dir(self.folder.path());
        Running::of(command).wait()
    }
}

impl Running {
    /// Starts any command.
    #[must_use]
    pub fn of(command: Command) -> Self {
        Self(Process::spawn(command))
    }

    /// Its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.0.ended().is_none()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.0.signal(signal);
    }

    /// What it has printed on standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.0.stdout()
    }

    /// What it has printed on standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.0.stderr()
    }

    /// Waits until it has printed `text` on either output.
    ///
    /// # Panics
    /// It ends without printing it.
    pub fn until_printed(&mut self, text: &str) {
        eventually(&format!("it prints '{text}'"), || {
            let over = !self.runs();
            let printed = self.stdout().contains(text) || self.stderr().contains(text);
            assert!(printed || !over, "it ended without printing '{text}':\n{}\n{}", self.stdout(), self.stderr());
            printed
        });
    }

    /// Waits for its end.
    #[must_use]
    pub fn wait(self) -> Finished {
        self.wait_at_most(LIMIT)
    }

    /// Waits for its end, at most this long.
    #[must_use]
    pub fn wait_at_most(mut self, limit: Duration) -> Finished {
        let status = self.0.wait(limit);
        Finished { code: status.code(), stdout: self.0.stdout(), stderr: self.0.stderr() }
    }
}

impl Finished {
    /// Checks that the exit code is 0.
    ///
    /// # Panics
    /// It is not.
    pub fn ok(self) -> Self {
        self.ended_with(0)
    }

    /// Checks the exit code.
    ///
    /// # Panics
    /// It is another one.
    pub fn ended_with(self, code: i32) -> Self {
        let verdicts = Doc::try_parse(&self.stdout).map(|doc| doc.remarks()).unwrap_or_default();
        assert_eq!(self.code, Some(code), "exit code; {verdicts}\nstandard error:\n{}", self.stderr);
        self
    }

    /// The document on its standard output.
    ///
    /// # Panics
    /// There is none.
    #[must_use]
    pub fn doc(&self) -> Doc {
        Doc::try_parse(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }

    /// The error message of a command that failed, without the progress lines before it.
    ///
    /// # Panics
    /// There is not exactly one.
    #[must_use]
    pub fn message(&self) -> String {
        let messages: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("thru: ")).collect();
        assert_eq!(messages.len(), 1, "expected one message:\n{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        messages[0].to_owned()
    }
}

//! A machine of its own for the commands of a page, with far hosts that have agents.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use program::process::within;
use program::{agent, binary};

/// How long a command has to end after Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(25);
/// The code of timeout(1) if the time was over, and if the command did not end then.
const OVER: i32 = 124;
const KILLED: i32 = 137;
/// A line on a terminal, where the key q ends it.
const ON_TERMINAL: &str =
    "#!/bin/bash\n{ sleep 4; printf q; sleep 4; } | script -qec \"stty rows 40 cols 120; $1\" /dev/null\n";

/// Namespaces that end with it.
pub(super) struct Machine {
    holder: Child,
    /// Closed when the test ends, however it ends; the machine ends with it.
    _open: ChildStdin,
    /// Its first process.
    first: u32,
    folder: PathBuf,
}

/// What a line did.
pub(super) struct Ended {
    /// Ctrl-C ended it.
    pub(super) is_interrupted: bool,
    /// It had to be killed, some time after Ctrl-C.
    pub(super) is_killed: bool,
    /// The codes and arguments of each `thru` that the line started.
    pub(super) thru: Vec<(i32, String)>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Machine {
    /// A machine whose user's files are in a folder.
    pub(super) fn new(folder: &Path) -> Self {
        for name in ["home", "work", "programs", "far"] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o1777)).unwrap();
        }
        let shim = "#!/bin/bash\n# Its code is noted, also in a pipe.\ntrap : INT TERM\nTHRU \"$@\"\ncode=$?\n\
                    echo \"$code $*\" >>CODES\nexit $code\n";
        let shim = shim.replace("THRU", &binary::thru().display().to_string());
        program_in(folder, "thru", &shim.replace("CODES", &folder.join("codes").display().to_string()));
        program_in(folder, "sudo", "#!/bin/sh\nexec \"$@\"\n");
        program_in(folder, "my-old-script", "#!/bin/sh\ncat >/dev/null\n");
        program_in(folder, "on-terminal", ON_TERMINAL);
        let script = binary::workspace().join("tests/program/tests/manual/machine.sh");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash"]).arg(script);
        command.arg(binary::thru()).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = user(command, folder).spawn().unwrap();
        let open = holder.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the machine is built");
        let first = agent::children(holder.id())[0];
        Self { holder, _open: open, first, folder: folder.to_owned() }
    }

    /// Where the user works.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The code of the invitation that host b has for somebody.
    pub(super) fn invitation(&self) -> String {
        let printed = fs::read_to_string(self.folder.join("b.out")).unwrap();
        printed.split_whitespace().skip_while(|word| *word != "--code").nth(1).unwrap().to_owned()
    }

    /// Runs a line that a page prints: on a host of its own if it starts an agent, and on a terminal if it needs one.
    pub(super) fn run_printed(&self, line: &str, time: Duration) -> Ended {
        let is_on_terminal = line.contains("thru top") || line.contains("--tui");
        let quoted = is_on_terminal.then(|| format!("on-terminal {}", shlex::try_quote(line).unwrap()));
        let place: &[&str] = if line.contains("thru serve") { &["ip", "netns", "exec", "apart"] } else { &[] };
        let ended = self.run_at(place, quoted.as_deref().unwrap_or(line), time * if is_on_terminal { 3 } else { 1 });
        Ended { is_interrupted: ended.is_interrupted || is_on_terminal, ..ended }
    }

    /// Runs a line of a shell, and ends it with Ctrl-C after a time.
    pub(super) fn run(&self, line: &str, time: Duration) -> Ended {
        self.run_at(&[], line, time)
    }

    fn run_at(&self, place: &[&str], line: &str, time: Duration) -> Ended {
        let (out, err, codes) = (self.folder.join("out"), self.folder.join("err"), self.folder.join("codes"));
        fs::write(&codes, "").unwrap();
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first.to_string(), "--mount", "--net", "--pid"]);
        command.args(place);
        command.args(["timeout", "--signal=INT", &format!("--kill-after={}", PATIENCE.as_secs())]);
        command.args([&time.as_secs_f64().to_string(), "bash", "-c", "cd \"$0\" && eval \"$1\""]);
        command.arg(self.work()).arg(line).stdin(Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut child = user(command, &self.folder).spawn().unwrap();
        let mut status = None;
        within(time + PATIENCE * 2, line, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        let code = status.and_then(|status| status.code());
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let noted = text(&codes);
        let thru = noted.lines().filter_map(|line| line.split_once(' '));
        Ended {
            is_interrupted: code == Some(OVER),
            // It kills itself with the others.
            is_killed: code.is_none_or(|code| code == KILLED),
            thru: thru.map(|(code, words)| (code.parse().unwrap(), words.to_owned())).collect(),
            stdout: text(&out),
            stderr: text(&err),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn program_in(folder: &Path, name: &str, text: &str) {
    let path = folder.join("programs").join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A command of a user whose files are in a folder, and nowhere else.
fn user(mut command: Command, folder: &Path) -> Command {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRU_") || name.starts_with("XDG_")) {
        command.env_remove(name);
    }
    let path = format!("{}:{}", folder.join("programs").display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("HOME", folder.join("home")).env("TMPDIR", folder.join("far"));
    command.env("TERM", "xterm");
    command
}

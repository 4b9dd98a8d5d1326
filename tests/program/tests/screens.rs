//! Full-screen views in a terminal of tmux: `--tui` and `thru top`.

use std::process::Command;
use std::time::Duration;

use program::process::{Signal, eventually, send};
use program::{Agent, Sandbox, binary, skip};

/// A terminal of 80 columns and 24 rows with a shell in it; it ends with its test.
struct Terminal {
    sandbox: Sandbox,
    socket: String,
}

impl Terminal {
    /// `None`, after it said so, where there is no tmux.
    fn open(test: &str) -> Option<Self> {
        if !skip::program(test, "tmux", "tmux") {
            return None;
        }
        let terminal = Self { sandbox: Sandbox::new(), socket: format!("{test}-{}", std::process::id()) };
        // The shell has the environment of the sandbox's commands.
        let mut server = terminal.sandbox.prepare(Command::new("tmux"), &["-L", &terminal.socket, "-f", "/dev/null"]);
        server.args(["new-session", "-d", "-x", "80", "-y", "24", "env PS1='$ ' TERM=screen-256color sh"]);
        assert!(server.status().unwrap().success());
        terminal.wait("a prompt", |screen| screen.contains('$'));
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// All that the terminal has shown since it was opened.
    fn history(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-2000"])
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn command(&self, line: &str) {
        self.keys(&[&line.replace("thru", &binary::thru().display().to_string()), "Enter"]);
    }

    fn wait(&self, what: &str, seen: impl Fn(&str) -> bool) {
        eventually(what, || {
            let screen = self.screen();
            seen(&screen) || {
                std::thread::sleep(Duration::from_millis(50));
                false
            }
        });
    }

    /// The terminal echoes and edits lines again, and shows its first screen.
    fn assert_restored(&self) {
        self.command("echo settings-$(stty -a | tr ' ;' '\\n\\n' | grep -cxE 'icanon|echo')");
        self.wait("the terminal's settings", |screen| screen.contains("settings-2"));
        assert_eq!(self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(), "0 1");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_stream_is_followed_paused_resized_and_ended() {
    let Some(terminal) = Terminal::open("a_stream_is_followed_paused_resized_and_ended") else { return };
    let agent = Agent::start();
    terminal.command(&format!("thru stream {} --time 3s --trials 9 --flows 2 --tui", agent.host()));
    terminal.wait("readings of each flow", |screen| {
        ["all ", "1 "].iter().all(|flow| screen.lines().any(|line| line.starts_with(flow)))
    });
    let screen = terminal.screen();
    assert!(screen.contains("goodput") && screen.contains("q quit") && screen.contains("RTT"), "{screen}");
    // The clock goes on; a pause holds the picture, not the clock.
    terminal.keys(&["p"]);
    terminal.wait("the pause", |screen| screen.contains("paused"));
    terminal.keys(&["p"]);
    terminal.wait("the end of the pause", |screen| !screen.contains("paused"));
    terminal.keys(&["u"]);
    terminal.wait("bytes", |screen| screen.contains("B/s"));
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    terminal.wait("the wider screen", |screen| screen.lines().any(|line| line.chars().count() > 100));
    terminal.keys(&["q"]);
    terminal.wait("the answer below the last picture", |screen| screen.contains("Goodput"));
    let history = terminal.history();
    let at = |text: &str| history.rfind(text).unwrap_or_else(|| panic!("{text} in:\n{history}"));
    assert!(at("\nall ") < at("Goodput") && !history.contains("q quit"), "{history}");
    terminal.assert_restored();
    assert!(terminal.sandbox.run(&["runs"]).ok().stdout.contains("interrupted"));
}

#[test]
fn a_result_has_colours_on_a_terminal_unless_the_user_wants_none() {
    let Some(terminal) = Terminal::open("a_result_has_colours_on_a_terminal_unless_the_user_wants_none") else {
        return;
    };
    let rr = ["rr", "--transport", "unix", "--time", "20ms", "--trials", "3", "--quiet", "--name", "c"];
    terminal.sandbox.run(&rr).ok();
    let bold = |line: &str, end: u32| {
        // What is typed differs from what it prints, so that neither the line nor an older screen is taken for its end.
        terminal.command(&format!("clear; {line}; echo end $(({end} + 0))"));
        terminal.wait("the end", |screen| screen.contains(&format!("end {end}")));
        let coloured = terminal.tmux(&["capture-pane", "-p", "-e"]);
        let row = coloured.lines().find(|line| line.contains("Transactions ")).expect("the answer").to_owned();
        row.contains("\u{1b}[1m")
    };
    assert!(bold("thru show c", 1));
    assert!(!bold("NO_COLOR=1 thru show c", 2));
    let text = terminal.sandbox.run(&["show", "c"]).ok().stdout;
    assert!(!text.contains('\u{1b}'), "a pipe has no escapes: {text}");
}

#[test]
fn a_terminal_that_is_closed_ends_the_measurement() {
    let test = "a_terminal_that_is_closed_ends_the_measurement";
    let Some(terminal) = Terminal::open(test) else { return };
    let views =
        [("thru rr --transport unix --time 1500ms --trials 9 --name closed --tui", "all  "), ("thru top", "core")];
    for (view, seen) in views {
        terminal.tmux(&["new-window", "sh"]);
        terminal.wait("a prompt", |screen| screen.contains('$') || screen.contains('#'));
        terminal.command(&format!("exec {view}"));
        terminal.wait("the view", |screen| screen.contains("q quit") && screen.contains(seen));
        let process: i32 = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap();
        terminal.tmux(&["kill-window"]);
        let stat = format!("/proc/{process}/stat");
        eventually("the end of the process", || {
            // A zombie has ended.
            std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
        });
    }
    let runs = terminal.sandbox.run(&["runs"]).ok().stdout;
    assert!(runs.contains("closed") && runs.contains("interrupted"), "{runs}");
}

#[test]
fn a_measurement_starts_again_in_place() {
    let Some(terminal) = Terminal::open("a_measurement_starts_again_in_place") else { return };
    terminal.command("thru rr --transport unix --time 1500ms --trials 9 --name again --tui");
    let clock =
        |screen: &str| screen.lines().next()?.trim_end().strip_suffix(" s")?.rsplit(' ').next()?.parse::<u64>().ok();
    terminal.wait("four seconds", |screen| clock(screen).is_some_and(|seconds| seconds >= 4));
    terminal.keys(&["r"]);
    terminal.wait("a new clock", |screen| clock(screen).is_some_and(|seconds| seconds <= 1));
    assert!(terminal.sandbox.run(&["runs"]).ok().stdout.contains("interrupted"), "the first run is kept");
    terminal.wait("a trial of the second", |screen| screen.contains("trial 2"));
    terminal.keys(&["C-c"]);
    terminal.wait("the answer", |screen| screen.contains("Caveats"));
    terminal.assert_restored();
    let runs = terminal.sandbox.run(&["runs", "--json"]).ok().stdout;
    assert_eq!(runs.lines().count(), 2, "{runs}");
}

#[test]
fn the_terminal_is_put_back_however_it_ends() {
    let Some(terminal) = Terminal::open("the_terminal_is_put_back_however_it_ends") else { return };
    // A host that is not there, a signal, and the end of a measurement.
    terminal.command("thru stream 127.0.0.1:9 --tui");
    terminal.wait("the refusal", |screen| screen.contains("refused"));
    terminal.assert_restored();
    terminal.keys(&["clear", "Enter"]);
    terminal.command("sh -c 'echo $$ > pid; exec thru top'; echo ended");
    terminal.wait("the screen", |screen| screen.contains("core 0"));
    let pid = std::fs::read_to_string(terminal.sandbox.path("pid")).unwrap().trim().parse().unwrap();
    send(pid, Signal::TERM);
    terminal.wait("the end", |screen| screen.lines().any(|line| line == "ended"));
    terminal.assert_restored();
    terminal.keys(&["clear", "Enter"]);
    terminal.command("thru curve --transport unix --to 64 --trials 3 --tui");
    terminal.wait("the answer", |screen| screen.contains("Every row"));
    terminal.assert_restored();
}

#[test]
fn a_host_is_watched() {
    let Some(terminal) = Terminal::open("a_host_is_watched") else { return };
    let agent = Agent::start();
    terminal.command(&format!("NO_COLOR=1 thru top {} --interval 200ms", agent.host()));
    terminal.wait("cores and interfaces", |screen| {
        screen.contains("core 0") && screen.lines().any(|line| line.starts_with("lo"))
    });
    let styled = terminal.tmux(&["capture-pane", "-p", "-e"]);
    // 39 is the terminal's own colour.
    let coloured = (b'0'..=b'7').any(|digit| styled.contains(&format!("\u{1b}[3{}m", char::from(digit))));
    assert!(!coloured, "{styled:?}");
    terminal.keys(&["q"]);
    terminal.wait("the prompt", |screen| screen.trim_end().ends_with('$'));
    terminal.assert_restored();
}

#[test]
fn without_a_terminal_it_is_refused() {
    let sandbox = Sandbox::new();
    for args in [&["top"][..], &["stream", "--transport", "shm", "--tui"]] {
        let refused = sandbox.run(args).ended_with(2).message();
        assert!(refused.contains("terminal"), "{refused}");
    }
    sandbox.run(&["stream", "--transport", "shm", "--tui", "--quiet"]).ended_with(2);
}

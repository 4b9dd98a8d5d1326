//! Outputs that are closed, full or read in part, and text of others on a terminal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it saw"
)]

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use program::wire::{Wire, agent, hello};
use program::{Agent, Running, Sandbox, binary};
use serde_json::json;

/// Subcommands that print nothing, last as long as they are wanted, or build labs: what they print goes the same way.
const ELSEWHERE: [&str; 12] =
    ["help", "check", "serve", "helper", "web", "top", "demo", "selftest", "generate", "lab", "advise", "ab"];

fn recorded(file: &str) -> String {
    binary::workspace().join("crates/import/tests/data").join(file).display().to_string()
}

/// Command lines that print, of every subcommand.
fn lines() -> Vec<Vec<String>> {
    let (ping, plan) = (recorded("2003-rapid-ping-traceroute.txt"), binary::workspace().join("plans/mtu.toml"));
    let plan = plan.display().to_string();
    let (key, set) = ("sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_sack=1");
    let short = ["--transport", "unix", "--time", "10ms", "--trials", "1"];
    let lines: Vec<Vec<&str>> = vec![
        vec!["--help"],
        vec!["--version"],
        vec!["stream", "--help"],
        vec!["runs"],
        vec!["runs", "--json"],
        vec!["show", "first"],
        vec!["show", "first", "--json"],
        vec!["why", "first"],
        vec!["why", "first", "--json"],
        vec!["explain"],
        vec!["explain", "few-trials"],
        vec!["compare", "first", "second"],
        vec!["compare", "first", "second", "--json"],
        vec!["export", "first", "--format", "csv"],
        vec!["export", "first", "--format", "csv", "-o", "out.csv"],
        vec!["report", "first", "-o", "out.html"],
        vec!["import", &ping],
        vec!["token", "new"],
        vec!["agent", "fingerprint"],
        vec!["host"],
        vec!["host", "--json"],
        vec!["config", "show"],
        vec!["config", "show", "--json"],
        vec!["tune", "show"],
        vec!["tune", "show", "--json", key],
        vec!["tune", "set", "--dry-run", set],
        vec!["tune", "journal"],
        vec!["tune", "revert"],
        vec!["stacks", "list"],
        vec!["stacks", "info", "fast"],
        vec!["stacks", "info", "fast", "--source"],
        vec!["lab", "list", "--ready"],
        vec!["run", &plan, "--var", "host=127.0.0.1", "--var", "device=lo", "--dry-run"],
        vec!["fleet", "show", "slurm:node[1-3]"],
        vec!["fleet", "history", "slurm:node[1-3]"],
        vec!["mesh", "slurm:node[1-3]", "--plan"],
        vec!["mesh", "slurm:node[1-3]", "--dry-run"],
        vec!["watch", "--count", "2", "--interval", "100ms"],
        [&["stream"][..], &short].concat(),
        [&["rr", "--json", "-"][..], &short].concat(),
        vec!["transfer", "--transport", "unix", "--count", "10"],
        vec!["curve", "--to", "1", "--trials", "3", "--time", "1ms", "--no-ceiling", "--transport", "unix"],
    ];
    lines.into_iter().map(|line| line.into_iter().map(str::to_owned).collect()).collect()
}

/// A store with two runs, and no settings of anybody's.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["first", "second"] {
        let flags = ["stream", "--transport", "shm", "--time", "50ms", "--trials", "3", "--name", name];
        sandbox.run(&flags).ok();
    }
    sandbox
}

/// Runs a command with that standard output; its exit code and standard error.
fn into(sandbox: &Sandbox, line: &[String], output: impl Into<Stdio>) -> (Option<i32>, String) {
    let mut command = sandbox.command(line);
    command.env("THRU_JOURNAL", sandbox.path("journal"));
    if line[0] == "import" {
        // A store takes a listing once.
        command.env("THRU_STORE", tempfile::tempdir_in(sandbox.path("")).unwrap().keep().join("runs.sqlite"));
    }
    let ended =
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn every_subcommand_is_looked_at() {
    let help = Sandbox::new().run(&["help", "all"]).ok().stdout;
    let listed = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    // A description's second line is further in.
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let there: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    let looked: Vec<String> = lines().into_iter().map(|line| line[0].clone()).collect();
    let missing: Vec<&&str> =
        there.iter().filter(|name| !ELSEWHERE.contains(name) && !looked.iter().any(|one| one == **name)).collect();
    assert!(there.len() > 15 && missing.is_empty(), "{missing:?}");
}

#[test]
fn a_closed_pipe_is_a_quiet_end_and_a_full_disk_code_6() {
    let sandbox = sandbox();
    for line in lines() {
        let what = line.join(" ");
        let plain = into(&sandbox, &line, Stdio::null());
        assert!(matches!(plain.0, Some(0 | 4 | 8)), "{what}: {plain:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, said) = into(&sandbox, &line, writer);
        assert_eq!(code, plain.0, "{what} | true: {said}");
        assert!(!said.contains("panicked") && !said.contains("standard output"), "{what}: {said}");
        let Ok(full) = File::options().write(true).open("/dev/full") else { continue };
        let (code, said) = into(&sandbox, &line, full);
        assert_eq!(code, Some(6), "{what} > /dev/full: {said}");
        assert!(said.contains("cannot write to standard output: No space left on device"), "{what}: {said}");
        assert!(!said.contains("panicked"), "{what}: {said}");
    }
    // Without a pipe even those that measure print as the others do.
    for line in lines().into_iter().filter(|line| !["stream", "rr", "transfer", "curve", "watch"].contains(&&*line[0]))
    {
        let mut words =
            vec!["-c".to_owned(), "exec \"$0\" \"$@\" >&- 2>&-".to_owned(), binary::thru().display().to_string()];
        words.extend(line.clone());
        let mut command = std::process::Command::new("sh");
        command.env("THRU_JOURNAL", sandbox.path("journal"));
        let ended = Running::of(sandbox.prepare(command, &words)).wait();
        assert!(matches!(ended.code, Some(0 | 4 | 6 | 8)), "{} >&-: {ended:?}", line.join(" "));
    }
}

#[test]
fn a_terminal_that_is_gone_ends_nothing() {
    // Standard error is written to as well: a full one must not end a measurement.
    let (sandbox, agent) = (Sandbox::new(), Agent::start());
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = sandbox.command(&["stream", agent.host(), "--time", "50ms", "--trials", "1"]);
    let ended = command.stdout(Stdio::null()).stderr(full()).status().unwrap();
    assert_eq!(ended.code(), Some(0));
    let refused = sandbox.command(&["show", "nothing"]).stdout(Stdio::null()).stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(6));
}

/// What a terminal acts upon, and what would make a line of its own.
const HOSTILE: &str =
    "\u{1b}]52;c;cm0gLXJmIH4=\u{7}\u{1b}[2J\u{9b}31m\rthru: all is well\nthru: measured\u{202e}x\u{7f}";

fn harmless(text: &str) {
    let acts = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!text.contains(acts), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("thru: measured")), "{text:?}");
}

#[test]
fn what_an_agent_says_cannot_order_the_terminal() {
    let sandbox = Sandbox::new();
    let refusing = agent(|wire| {
        let _ = wire.try_send(&json!({"refused": {"reason": {"statement": HOSTILE, "spans": [{"code": HOSTILE}]}}}));
        std::thread::spawn(move || while wire.next_message().is_some() {});
    });
    let newer = agent(|wire| {
        let mut theirs = hello(99);
        theirs["hello"]["version"] = json!(HOSTILE);
        let _ = wire.try_send(&theirs);
        std::thread::spawn(move || while wire.next_message().is_some() {});
    });
    for host in [&refusing, &newer] {
        for args in [&["tune", "show", "cc.default", host][..], &["stream", host], &["host", host]] {
            let ended = sandbox.run(args);
            assert!(ended.code != Some(0) && !ended.stderr.is_empty(), "{args:?}: {ended:?}");
            harmless(&ended.stderr);
            harmless(&ended.stdout);
        }
    }
}

#[test]
fn what_a_coordinator_says_is_one_line_of_the_agents_log() {
    let agent = Agent::start();
    let wire = Wire::dial(agent.host());
    wire.greet();
    wire.send(&json!({"acquire": {"purpose": HOSTILE}}));
    assert_eq!(wire.receive().unwrap().name, "granted");
    drop(wire);
    program::eventually("it says so", || agent.log().contains("all is well"));
    harmless(&agent.log());
}

#[test]
fn names_in_imported_files_and_runs_are_plain() {
    let sandbox = Sandbox::new();
    let file: PathBuf = sandbox.path("out.csv");
    sandbox.run(&["stream", "--transport", "shm", "--time", "20ms", "--trials", "1", "--name", HOSTILE]).ok();
    for args in [&["runs"][..], &["show", "last"], &["why", "last"], &["export", "last", "--format", "text"]] {
        harmless(&sandbox.run(args).ok().stdout);
    }
    let table = sandbox.run(&["export", "last", "--format", "csv"]).ok().stdout;
    assert!(table.ends_with("\r\n") && !table.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{table:?}");
    std::fs::copy(recorded("2003-rapid-ping-traceroute.txt"), &file).unwrap();
    let listed = sandbox.run(&["import", file.to_str().unwrap(), "--name", HOSTILE]);
    harmless(&listed.stdout);
    harmless(&listed.stderr);
}

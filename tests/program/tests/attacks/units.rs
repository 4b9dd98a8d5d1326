//! The units of packaging/ under a real systemd: the agent runs as they confine it, serves, and changes settings by its helper.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use program::process::within;
use program::{Running, binary, skip};

const SYSTEMD: &str = "/lib/systemd/systemd";

/// The control groups of a system, removed when it has ended, also if the test fails.
struct Groups<'a> {
    script: &'a Path,
    folder: &'a Path,
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        let status = Command::new(self.script).arg("--clean").arg(self.folder).status().unwrap();
        assert!(status.success() || std::thread::panicking(), "control groups are left");
    }
}

#[test]
fn the_units_serve_without_privileges_and_restore_settings() {
    let test = "the_units_serve_without_privileges_and_restore_settings";
    if !skip::root(test) {
        return;
    }
    if !Path::new(SYSTEMD).exists() {
        return skip::skip(test, "no systemd");
    }
    let folder = tempfile::Builder::new().prefix("thru-units-").tempdir().unwrap();
    let units = binary::workspace().join("tests/program/units");
    fs::copy(units.join("client.sh"), folder.path().join("client.sh")).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();

    let script = units.join("boot.sh");
    // Before the system, which is then dropped first.
    let groups = Groups { script: &script, folder: folder.path() };
    let mut boot = Command::new(&script);
    boot.arg(binary::thru()).arg(binary::workspace().join("packaging")).arg(folder.path());
    let mut system = Running::of(boot);
    within(Duration::from_secs(80), "the client in the units' system is done", || {
        assert!(system.runs(), "systemd ended: {} {}", system.stdout(), system.stderr());
        folder.path().join("done").exists()
    });
    drop((system, groups));

    let (client, agent) = (read("client.log"), read("agent.log"));
    let printed = format!("{client}\n{agent}\n{}", read("helper.log"));
    for expected in [
        "CapPrm:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "before: 1\nset: 0\nafter: 1",
        "thru-agent: success, started again 0 times",
        "thru-helper: success, started again 0 times",
    ] {
        assert!(client.contains(expected), "no {expected:?} in: {printed}");
    }
    assert!(!client.contains("Uid:\t0\t"), "the agent is root: {printed}");
    assert_eq!(client.matches("\"how\":\"finished\"").count(), 4, "{printed}");
    assert!(!agent.contains("Landlock"), "the agent is not confined to its files: {printed}");
}

#[test]
fn the_units_are_rated_at_most_3_of_10() {
    if !skip::program("the_units_are_rated_at_most_3_of_10", "systemd-analyze", "systemd") {
        return;
    }
    for unit in ["thru-agent.service", "thru-helper.service"] {
        let mut rating = Command::new("systemd-analyze");
        rating.args(["security", "--offline=true", "--threshold=30"]);
        let output = rating.arg(binary::workspace().join("packaging").join(unit)).output().unwrap();
        assert!(output.status.success(), "{unit}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

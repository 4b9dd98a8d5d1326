//! Tests of the guard with real processes.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// `bench guard` on core 0 with a shell that runs `script`.
fn guarded(report: &Path, script: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["guard", "0"])
        .arg(report)
        .args(["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn read(report: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap()
}

#[test]
fn output_and_exit_code_are_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let mut guard = guarded(&report, "echo out; exit 7");
    let mut said = String::new();
    // Read to the end before the wait closes the guard's input, which would end the program.
    guard.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    guard.wait().unwrap();
    assert_eq!(said, "out\n");
    let report = read(&report);
    assert_eq!(report["code"], 7);
    assert!(report["elapsed_ns"].as_u64().unwrap() > 0 && report["peak_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn time_of_a_child_that_its_parent_never_waited_for_is_in_the_account() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let used = |script: &str| {
        let mut guard = guarded(&report, script);
        // A wait closes its input, which would end the program.
        let input = guard.stdin.take();
        guard.wait().unwrap();
        drop(input);
        read(&report)["cpu_ns"].as_u64().unwrap()
    };
    let nothing = used("exit 0");
    // The child loops until the guard kills it; its parent has already ended.
    assert!(used("trap '' TERM; (while :; do :; done) & exit 0") > 10 * nothing);
}

#[test]
fn the_end_of_input_ends_the_program_and_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let mut guard = guarded(&report, "sleep 1000 & sleep 1000");
    drop(guard.stdin.take());
    // The children hold its standard output, so its end shows that they have ended.
    let mut said = Vec::new();
    guard.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    guard.wait().unwrap();
    assert_eq!(read(&report)["code"], Value::Null);
}

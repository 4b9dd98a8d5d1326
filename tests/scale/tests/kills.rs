//! A small mesh with a few kills; the whole one is `scripts/test-long.sh scale`.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]

use std::process::Command;

#[test]
fn no_result_is_lost_when_agents_bus_and_coordinator_are_killed() {
    if Command::new("nats-server").arg("--version").output().is_err() {
        println!("SKIPPED: no_result_is_lost_when_agents_bus_and_coordinator_are_killed: nats-server is not installed");
        return;
    }
    let arguments = ["run", "--hosts", "20", "--per-process", "5", "--kills", "6", "--time-ms", "10", "--at-once", "8"];
    let ended = Command::new(env!("CARGO_BIN_EXE_simulated_fleet")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let failed = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("every trial is there once"), "{said}{failed}");
}

//! Other programs' servers.

use std::net::TcpListener;
use std::process::Command;

use crate::process::{Process, eventually};

/// A port of loopback on which nobody listens.
///
/// # Panics
/// There is none.
#[must_use]
pub fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// A server of iperf3 that listens.
///
/// # Panics
/// It does not start.
#[must_use]
pub fn iperf3(port: &str, flags: &[&str]) -> Process {
    let mut command = Command::new("iperf3");
    command.args(["--server", "--port", port, "--forceflush"]).args(flags);
    let server = Process::spawn(command);
    eventually("iperf3 listens", || server.stdout().contains("Server listening"));
    server
}

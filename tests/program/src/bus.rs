//! A nats-server for tests.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::eventually;
use crate::skip;

/// A server of its own on loopback, with JetStream; killed when dropped.
#[derive(Debug)]
pub struct BusServer {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl BusServer {
    /// Starts it; `None`, with a line, where there is none.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start(test: &str) -> Option<Self> {
        if !skip::program(test, "nats-server", "nats-server") {
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let folder = tempfile::tempdir().expect("a folder");
        Some(Self { process: run(port, folder.path()), port, folder })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it, and starts it again with what it has stored.
    ///
    /// # Panics
    /// It does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.process = run(self.port, self.folder.path());
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for BusServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run(port: u16, folder: &Path) -> Child {
    let mut command = Command::new("nats-server");
    command.args(["-a", "127.0.0.1", "-js", "-p", &port.to_string(), "-sd"]).arg(folder);
    let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nats-server");
    eventually("nats-server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

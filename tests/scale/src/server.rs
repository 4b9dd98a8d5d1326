//! A server of the bus that is killed and started again.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// Time limit for its start.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A nats-server with a folder of its own.
pub(crate) struct Server {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(Self { process: process(port, folder)?, port, folder: folder.to_owned() })
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it, and starts it again after the pause.
    pub(crate) fn restart(&mut self, pause: Duration) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        std::thread::sleep(pause);
        self.process = process(self.port, &self.folder)?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn process(port: u16, folder: &Path) -> anyhow::Result<Child> {
    let mut process = Command::new("nats-server")
        .args(["-a", "127.0.0.1", "-js", "-p", &port.to_string(), "-sd"])
        .arg(folder)
        .stderr(Stdio::null())
        .spawn()
        .context("nats-server is not installed")?;
    let deadline = Instant::now() + START_LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        anyhow::ensure!(process.try_wait()?.is_none() && Instant::now() < deadline, "nats-server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(process)
}

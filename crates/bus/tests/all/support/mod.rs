//! A nats-server for tests, agents that echo, and a slow link.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it skips"
)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bus::{Arrival, Attendance, Bus, BusAccess, BusError, BusStream, Contact, attend, place};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;

/// A server of its own; killed when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
}

impl Server {
    /// `None`, said loudly, where there is no nats-server; with root that is a failure.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let process = run(port, folder.path(), arguments)?;
        Some(Self { process, port, folder })
    }

    /// Kills the server and starts it again with the same folder.
    pub(crate) fn restart(&mut self, pause: Duration) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::thread::sleep(pause);
        self.process = run(self.port, self.folder.path(), &[]).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn bus(&self) -> Bus {
        bus_at(&self.url()).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(port: u16, folder: &Path, arguments: &[&str]) -> Option<Child> {
    let started = Command::new("nats-server")
        .args(["-a", "127.0.0.1", "-js", "-p", &port.to_string(), "-sd"])
        .arg(folder)
        .args(arguments)
        .stderr(Stdio::null())
        .spawn();
    let Ok(process) = started else {
        println!("SKIPPED: nats-server is not installed");
        return None;
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nats-server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(process)
}

pub(crate) fn contact(key: &str) -> Contact {
    Contact { address: Some([192, 0, 2, 1].into()), port: Some(6280), version: "1".into(), key: key.into() }
}

/// An agent that returns all bytes; the name is given back when the result is dropped or left.
pub(crate) async fn echo(bus: &Bus, name: &str, key: &str) -> Result<Attendance, BusError> {
    let (attendance, mut arrived) = attend(bus, name, contact(key), |_| {}).await?;
    tokio::spawn(async move {
        while let Some(Arrival { stream, .. }) = arrived.recv().await {
            tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    Ok(attendance)
}

/// Sends so many bytes through an echo, and says whether the same came back.
pub(crate) async fn is_echoed(stream: BusStream, bytes: usize) -> bool {
    let (mut read, mut write) = tokio::io::split(stream);
    let pattern = |at: usize| (at.wrapping_mul(2_654_435_761) >> 7) as u8;
    let sender = tokio::spawn(async move {
        for from in (0..bytes).step_by(10_000) {
            let block: Vec<u8> = (from..(from + 10_000).min(bytes)).map(pattern).collect();
            write.write_all(&block).await.unwrap();
        }
        write.shutdown().await.unwrap();
    });
    let mut back = Vec::new();
    read.read_to_end(&mut back).await.unwrap();
    sender.await.unwrap();
    back.len() == bytes && back.iter().enumerate().all(|(at, byte)| *byte == pattern(at))
}

pub(crate) async fn bus_at(url: &str) -> Bus {
    Bus::connect(&place(url).unwrap(), &BusAccess::default()).await.unwrap()
}

/// A link to a server that carries so many bytes per second in each direction, for all its connections together.
pub(crate) struct SlowLink {
    port: u16,
    /// Bytes to the server and from it.
    pub(crate) passed: [Arc<AtomicU64>; 2],
}

impl SlowLink {
    pub(crate) async fn to(server: &Server, rate: f64) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, to) = (listener.local_addr().unwrap().port(), server.port);
        let passed: [Arc<AtomicU64>; 2] = Default::default();
        let counts = passed.clone();
        tokio::spawn(async move {
            let free = [(); 2].map(|()| Arc::new(Mutex::new(Instant::now())));
            while let Ok((near, _)) = listener.accept().await {
                let far = tokio::net::TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                tokio::spawn(pass(near_read, far_write, free[0].clone(), counts[0].clone(), rate));
                tokio::spawn(pass(far_read, near_write, free[1].clone(), counts[1].clone(), rate));
            }
        });
        Self { port, passed }
    }

    pub(crate) async fn bus(&self) -> Bus {
        bus_at(&format!("nats://127.0.0.1:{}", self.port)).await
    }

    /// Bytes to the server and from it, so far.
    pub(crate) fn passed(&self) -> [u64; 2] {
        [0, 1].map(|way| self.passed[way].load(Ordering::Relaxed))
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    free: Arc<Mutex<Instant>>,
    count: Arc<AtomicU64>,
    rate: f64,
) {
    let mut block = [0; 4096];
    while let Ok(bytes) = from.read(&mut block).await
        && bytes > 0
    {
        {
            let mut free = free.lock().await;
            *free = (*free).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / rate);
            tokio::time::sleep_until((*free).into()).await;
        }
        count.fetch_add(bytes as u64, Ordering::Relaxed);
        if to.write_all(&block[..bytes]).await.is_err() {
            return;
        }
    }
}

//! A host made of recorded files, for tests.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Address, Sys, Uname, sorted_names};

/// A host made of recorded files below a directory, which stands for `/`; its clock moves only when told to.
///
/// Beside `proc/`, `sys/` and `etc/` the directory may hold two files of its own: `uname` (four lines: hostname, release,
/// version, machine) and `addresses` (a line each: interface, address/prefix). What is not there is not on that host.
#[derive(Debug)]
pub struct FakeSys {
    root: PathBuf,
    now_ns: AtomicU64,
}

impl FakeSys {
    /// The host recorded below `root`, at 0 ns.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), now_ns: AtomicU64::new(0) }
    }

    /// Moves the clock to `now_ns` nanoseconds.
    pub fn set_now_ns(&self, now_ns: u64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Sys for FakeSys {
    fn read(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.path(path))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        sorted_names(&self.path(directory))
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        let real = self.path(path).canonicalize()?;
        let inside = real.strip_prefix(self.root.canonicalize()?).map_err(io::Error::other)?;
        Ok(format!("/{}", inside.display()))
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn ticks_per_second(&self) -> u64 {
        100
    }

    fn uname(&self) -> io::Result<Uname> {
        let text = self.read("/uname")?;
        let mut lines = text.lines().map(str::to_owned);
        let mut line = || lines.next().ok_or_else(|| io::Error::other("uname has fewer than four lines"));
        Ok(Uname { hostname: line()?, release: line()?, version: line()?, machine: line()? })
    }

    fn addresses(&self) -> io::Result<Vec<Address>> {
        self.read("/addresses")?
            .lines()
            .map(|line| address(line).ok_or_else(|| io::Error::other(format!("'{line}' is not an address"))))
            .collect()
    }
}

fn address(line: &str) -> Option<Address> {
    let (interface, rest) = line.split_once(' ')?;
    let (address, prefix) = rest.split_once('/')?;
    Some(Address { interface: interface.into(), address: address.parse().ok()?, prefix: prefix.parse().ok()? })
}

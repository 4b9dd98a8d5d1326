//! A host made of recorded files, for tests and fuzzing.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{DriverInfo, InterfaceAddress, ProcessorEvents, Qdisc, Sys, Uname, sorted_names};
use crate::netlink::NetlinkRequest;

/// The files of a host, by absolute paths.
pub trait Files: Clone + Send + Sync + 'static {
    /// The content of a file.
    ///
    /// # Errors
    /// There is no such file.
    fn content(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The names in a directory.
    ///
    /// # Errors
    /// There is no such directory.
    fn names(&self, directory: &str) -> io::Result<Vec<String>>;

    /// The path without symbolic links.
    ///
    /// # Errors
    /// There is nothing.
    fn real(&self, path: &str) -> io::Result<String>;
}

/// The files below a directory, which represents `/`.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// Those below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

impl Files for Folder {
    fn content(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(path))
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        sorted_names(&self.path(directory))
    }

    fn real(&self, path: &str) -> io::Result<String> {
        let real = self.path(path).canonicalize()?;
        let inside = real.strip_prefix(self.0.canonicalize()?).map_err(io::Error::other)?;
        Ok(format!("/{}", inside.display()))
    }
}

/// A host made of recorded files; its clock moves only on request.
///
/// Beside `proc/`, `sys/` and `etc/` the files may hold the results of system calls: `uname` (four lines:
/// hostname, release, version, machine), `addresses` (a line each: interface, address/prefix), `kmsg` (the kernel's
/// log), `driver/NAME` (four lines: driver, version, firmware, bus; `-` for nothing), `netlink/NAME` for a netlink
/// request of that name (bytes in hexadecimal with comments after `#`, an empty line between two messages, or the line
/// `error NUMBER`), `qdiscs` (a line each: interface, kind, parent, bytes, packets, drops, overlimits, requeues,
/// backlog, qlen), `ethtool/INTERFACE` and `perf` (a line each: name, number), `coarse_clock` (a number) and `lldpd`
/// (the output of `lldpcli -f json show neighbors`). What is missing does not exist on that host.
#[derive(Debug)]
pub struct FakeSys<F = Folder> {
    files: F,
    now_ns: AtomicU64,
}

impl FakeSys {
    /// The host recorded below `root`, at 0 ns.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::of(Folder::new(root))
    }
}

impl<F> FakeSys<F> {
    /// The host with these files, at 0 ns.
    #[must_use]
    pub fn of(files: F) -> Self {
        Self { files, now_ns: AtomicU64::new(0) }
    }

    /// Moves the clock to `now_ns` nanoseconds.
    #[cfg(test)]
    pub(crate) fn set_now_ns(&self, now_ns: u64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
    }
}

impl<F: Files> Sys for FakeSys<F> {
    fn read(&self, path: &str) -> io::Result<String> {
        text(self.files.content(path)?)
    }

    fn read_bytes(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.files.content(path)?;
        bytes.truncate(most);
        Ok(bytes)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.files.names(directory)
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        self.files.real(path)
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn ticks_per_second(&self) -> u64 {
        100
    }

    fn coarse_clock_ns(&self) -> io::Result<u64> {
        self.read("/coarse_clock")?.trim().parse().map_err(io::Error::other)
    }

    fn lldpd(&self) -> io::Result<String> {
        self.read("/lldpd")
    }

    fn uname(&self) -> io::Result<Uname> {
        let text = self.read("/uname")?;
        let mut lines = text.lines().map(str::to_owned);
        let mut line = || lines.next().ok_or_else(|| io::Error::other("uname has fewer than four lines"));
        Ok(Uname { hostname: line()?, release: line()?, version: line()?, machine: line()? })
    }

    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        self.read("/addresses")?
            .lines()
            .map(|line| address(line).ok_or_else(|| io::Error::other(format!("'{line}' is not an address"))))
            .collect()
    }

    fn thread_ns(&self) -> u64 {
        self.now_ns()
    }

    fn page_size(&self) -> u64 {
        4096
    }

    fn qdiscs(&self) -> io::Result<Vec<Qdisc>> {
        let text = self.read("/qdiscs")?;
        text.lines().map(|line| qdisc(line).ok_or_else(|| wrong(line))).collect()
    }

    fn driver_statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        match self.read(&format!("/ethtool/{interface}")) {
            Ok(text) => text.lines().map(|line| named(line).ok_or_else(|| wrong(line))).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn processor_events(&self) -> io::Result<Box<dyn ProcessorEvents>> {
        let events = Recorded(self.files.clone());
        events.read()?;
        Ok(Box::new(events))
    }

    fn netlink(&self, request: &NetlinkRequest) -> io::Result<Vec<Vec<u8>>> {
        let text = self.read(&format!("/netlink/{}", request.name))?;
        if let Some(code) = text.strip_prefix("error ") {
            return Err(io::Error::from_raw_os_error(code.trim().parse().map_err(io::Error::other)?));
        }
        messages(&text)
    }

    fn driver(&self, interface: &str) -> io::Result<DriverInfo> {
        let text = self.read(&format!("/driver/{interface}"))?;
        let mut lines = text.lines().map(|line| (line != "-").then(|| line.to_owned()));
        let mut line = || lines.next().flatten();
        Ok(DriverInfo { driver: line(), version: line(), firmware: line(), bus: line() })
    }

    fn kernel_log(&self) -> io::Result<Vec<String>> {
        Ok(self.read("/kmsg")?.lines().map(str::to_owned).collect())
    }
}

/// Processor events from a file.
struct Recorded<F>(F);

impl<F: Files> ProcessorEvents for Recorded<F> {
    fn read(&self) -> io::Result<Vec<(&'static str, u64)>> {
        let event = |line: &str| {
            let (name, count) = named(line)?;
            Some((*["cycles", "instructions"].iter().find(|known| **known == name)?, count))
        };
        text(self.0.content("/perf")?)?.lines().map(|line| event(line).ok_or_else(|| wrong(line))).collect()
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn wrong(line: &str) -> io::Error {
    io::Error::other(format!("'{line}' is not recorded as it should be"))
}

fn named(line: &str) -> Option<(String, u64)> {
    let (name, number) = line.rsplit_once(' ')?;
    Some((name.to_owned(), number.parse().ok()?))
}

fn qdisc(line: &str) -> Option<Qdisc> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let &[interface, kind, parent, bytes, packets, drops, overlimits, requeues, backlog, qlen] = fields.as_slice()
    else {
        return None;
    };
    let [packets, drops, overlimits, requeues, backlog, qlen] =
        [packets, drops, overlimits, requeues, backlog, qlen].map(str::parse::<u32>);
    Some(Qdisc {
        interface: interface.into(),
        kind: kind.into(),
        parent: parent.into(),
        bytes: bytes.parse().ok()?,
        packets: packets.ok()?,
        drops: drops.ok()?,
        overlimits: overlimits.ok()?,
        requeues: requeues.ok()?,
        backlog: backlog.ok()?,
        qlen: qlen.ok()?,
    })
}

/// Messages in hexadecimal.
fn messages(text: &str) -> io::Result<Vec<Vec<u8>>> {
    let mut messages = vec![Vec::new()];
    for line in text.lines() {
        if line.trim().is_empty() {
            messages.push(Vec::new());
        }
        let bytes = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        for byte in bytes {
            let byte = u8::from_str_radix(byte, 16).map_err(io::Error::other)?;
            messages.last_mut().into_iter().for_each(|message| message.push(byte));
        }
    }
    messages.retain(|message| !message.is_empty());
    Ok(messages)
}

fn address(line: &str) -> Option<InterfaceAddress> {
    let (interface, rest) = line.split_once(' ')?;
    let (address, prefix) = rest.split_once('/')?;
    Some(InterfaceAddress { interface: interface.into(), address: address.parse().ok()?, prefix: prefix.parse().ok()? })
}

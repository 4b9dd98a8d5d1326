//! The one interface to the operating system: /proc, /sys, uname, addresses, netlink, ethtool, perf events, the kernel's log and
//! clocks.
#![allow(unsafe_code, reason = "each block states why it is sound")]

pub(crate) mod calls;
mod ethtool;
#[cfg(any(test, feature = "fuzzing"))]
mod fake;
mod guarded;
mod lldpd;
pub(crate) mod netlink;
mod perf;
pub(crate) mod probe;
mod real;
pub(crate) mod sockopt;

#[cfg(any(test, feature = "fuzzing"))]
pub use fake::{FakeSys, Files};
pub use real::RealSys;

use std::io;
use std::net::IpAddr;
use std::path::Path;

use crate::netlink::NetlinkRequest;

pub use crate::netlink::qdisc::Qdisc;

/// A file between two readings: none before the first one.
#[derive(Debug, Default)]
pub struct KeptFile(Option<std::fs::File>);

/// What the rest of the crate may ask the operating system. Paths are absolute, as on the host.
pub trait Sys: Send + Sync {
    /// The whole text of a file; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// The kernel's error: the file does not exist, may not be read, or has no value now (a link without carrier).
    fn read(&self, path: &str) -> io::Result<String>;

    /// The same, of a file that stays open from one call to the next.
    ///
    /// # Errors
    /// As above.
    fn read_again(&self, path: &str, kept: &mut KeptFile) -> io::Result<String> {
        let _ = kept;
        self.read(path)
    }

    /// The first bytes of a file, at most `most`.
    ///
    /// # Errors
    /// The kernel's error.
    fn read_bytes(&self, path: &str, most: usize) -> io::Result<Vec<u8>>;

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// The kernel's error.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// The path with every symbolic link followed. In /sys it shows a device's position on its bus.
    ///
    /// # Errors
    /// The kernel's error.
    fn resolve(&self, path: &str) -> io::Result<String>;

    /// Nanoseconds on the monotonic clock, from an arbitrary start.
    fn now_ns(&self) -> u64;

    /// Ticks in a second of the counters in /proc/stat (USER_HZ).
    fn ticks_per_second(&self) -> u64;

    /// Resolution of the coarse clocks, which move at each tick of the kernel, ns (clock_getres(2), CLOCK_MONOTONIC_COARSE).
    ///
    /// # Errors
    /// Only if there is no such record; the real call cannot fail.
    fn coarse_clock_ns(&self) -> io::Result<u64>;

    /// The neighbours that lldpd's own client reports (`lldpcli -f json show neighbors`).
    ///
    /// # Errors
    /// If lldpd does not run, runs in another network namespace, may not be queried by this user, or does not answer
    /// in time.
    fn lldpd(&self) -> io::Result<String>;

    /// Name and kernel of the host.
    ///
    /// # Errors
    /// Only if there is no such record; the real call cannot fail.
    fn uname(&self) -> io::Result<Uname>;

    /// The addresses of the interfaces in this network namespace.
    ///
    /// # Errors
    /// The kernel's error.
    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>>;

    /// CPU time of the calling thread, ns.
    fn thread_ns(&self) -> u64;

    /// Bytes of a page of memory.
    fn page_size(&self) -> u64;

    /// The queueing disciplines of the interfaces in this network namespace, those of classes included.
    ///
    /// # Errors
    /// The kernel's error.
    fn qdiscs(&self) -> io::Result<Vec<Qdisc>>;

    /// The driver's counters of an interface, under its own names (ethtool's ETHTOOL_GSTATS); empty for a driver
    /// without counters.
    ///
    /// # Errors
    /// The kernel's error.
    fn driver_statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>>;

    /// Starts to count processor events of all cores, from 0.
    ///
    /// # Errors
    /// The kernel's error: this machine has no such counter, or the process no permission.
    fn processor_events(&self) -> io::Result<Box<dyn ProcessorEvents>>;

    /// The messages that answer a netlink question, each without netlink's own headers.
    ///
    /// # Errors
    /// The kernel's error: the family, the device or the route is unknown, or the driver has no answer.
    fn netlink(&self, request: &NetlinkRequest) -> io::Result<Vec<Vec<u8>>>;

    /// Information on the driver of an interface.
    ///
    /// # Errors
    /// The kernel's error: a virtual device has no driver to query.
    fn driver(&self, interface: &str) -> io::Result<DriverInfo>;

    /// The kernel's log, a message to a line, oldest first.
    ///
    /// # Errors
    /// The kernel's error: usually that this user may not read it (kernel.dmesg_restrict).
    fn kernel_log(&self) -> io::Result<Vec<String>>;
}

/// Processor events counted on all cores.
pub trait ProcessorEvents: Send {
    /// Each event's name and how often it has happened since the start.
    ///
    /// # Errors
    /// The kernel's error.
    fn read(&self) -> io::Result<Vec<(&'static str, u64)>>;
}

/// A driver's information; null if the driver does not provide it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// Its name.
    pub driver: Option<String>,
    /// Its version; drivers of the kernel's own tree have the kernel's version.
    pub version: Option<String>,
    /// Version of the device's firmware.
    pub firmware: Option<String>,
    /// The device's position on its bus.
    pub bus: Option<String>,
}

/// The answer of uname(2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uname {
    /// Node name.
    pub hostname: String,
    /// Kernel release, such as `6.1.0-18-amd64`.
    pub release: String,
    /// Kernel build line, such as `#1 SMP PREEMPT_DYNAMIC`.
    pub version: String,
    /// Machine architecture, such as `x86_64`.
    pub machine: String,
}

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface, such as `eth0`.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Length of its network prefix in bits.
    pub prefix: u8,
}

/// The names in a directory, sorted, so that reports do not change from one reading to the next.
fn sorted_names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = std::fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

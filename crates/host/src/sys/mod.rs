//! The one interface to the operating system: /proc, /sys, uname, addresses, netlink, ethtool, perf events, the kernel's log and
//! clocks.
#![allow(unsafe_code, reason = "each block states why it is sound")]

mod ethtool;
#[cfg(test)]
mod fake;
mod lldpd;
pub(crate) mod netlink;
mod perf;
pub(crate) mod probe;
mod real;
pub(crate) mod sockopt;

#[cfg(test)]
pub(crate) use fake::FakeSys;
pub use real::RealSys;

use std::io;
use std::net::IpAddr;
use std::path::Path;

use crate::netlink::NetlinkRequest;

/// A file between two readings: none before the first one.
#[derive(Debug, Default)]
pub struct KeptFile(Option<std::fs::File>);

/// What the rest of the crate may ask the operating system. Paths are absolute, as on the host.
pub trait Sys: Send + Sync {
    /// The whole text of a file; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// What the kernel says: the file does not exist, may not be read, or has no value now (a link without carrier).
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
    /// What the kernel says.
    fn read_bytes(&self, path: &str, most: usize) -> io::Result<Vec<u8>>;

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// What the kernel says.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// The path with every symbolic link followed. In /sys it shows where on which bus a device sits.
    ///
    /// # Errors
    /// What the kernel says.
    fn resolve(&self, path: &str) -> io::Result<String>;

    /// Nanoseconds on the monotonic clock, from an arbitrary start.
    fn now_ns(&self) -> u64;

    /// Ticks in a second of the counters in /proc/stat (USER_HZ).
    fn ticks_per_second(&self) -> u64;

    /// Resolution of the coarse clocks, which move at each tick of the kernel, ns (clock_getres(2), CLOCK_MONOTONIC_COARSE).
    ///
    /// # Errors
    /// Only where there is no such record; the real call cannot fail.
    fn coarse_clock_ns(&self) -> io::Result<u64>;

    /// What lldpd knows of the neighbours, as its own client tells it (`lldpcli -f json show neighbors`).
    ///
    /// # Errors
    /// Where lldpd does not run, runs in another network namespace, may not be asked by this user, or does not answer in time.
    fn lldpd(&self) -> io::Result<String>;

    /// Name and kernel of the host.
    ///
    /// # Errors
    /// Only where there is no such record; the real call cannot fail.
    fn uname(&self) -> io::Result<Uname>;

    /// The addresses of the interfaces in this network namespace.
    ///
    /// # Errors
    /// What the kernel says.
    fn addresses(&self) -> io::Result<Vec<Address>>;

    /// CPU time of the calling thread, ns.
    fn thread_ns(&self) -> u64;

    /// Bytes of a page of memory.
    fn page_size(&self) -> u64;

    /// The queueing disciplines of the interfaces in this network namespace, those of classes included.
    ///
    /// # Errors
    /// What the kernel says.
    fn qdiscs(&self) -> io::Result<Vec<Qdisc>>;

    /// What a driver counts for an interface, under its own names (ethtool's ETHTOOL_GSTATS); empty for a driver that counts
    /// nothing.
    ///
    /// # Errors
    /// What the kernel says.
    fn driver_statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>>;

    /// Starts to count processor events of all cores, from 0.
    ///
    /// # Errors
    /// What the kernel says: no such counter in this machine, or no right to it.
    fn processor_events(&self) -> io::Result<Box<dyn ProcessorEvents>>;

    /// The messages that answer a netlink question, each without netlink's own headers.
    ///
    /// # Errors
    /// What the kernel says: it does not know the family, the device or the route, or the driver has no answer.
    fn netlink(&self, request: &NetlinkRequest) -> io::Result<Vec<Vec<u8>>>;

    /// What the driver of an interface says of itself.
    ///
    /// # Errors
    /// What the kernel says: a virtual device has no driver to ask.
    fn driver(&self, interface: &str) -> io::Result<DriverInfo>;

    /// The kernel's log, a message to a line, oldest first.
    ///
    /// # Errors
    /// What the kernel says: mostly that this user may not read it (kernel.dmesg_restrict).
    fn kernel_log(&self) -> io::Result<Vec<String>>;
}

/// Processor events that are being counted on all cores.
pub trait ProcessorEvents: Send {
    /// Each event's name and how often it has happened since the start.
    ///
    /// # Errors
    /// What the kernel says.
    fn read(&self) -> io::Result<Vec<(&'static str, u64)>>;
}

/// A queueing discipline and what it has counted. The kernel's counters of packets have 32 bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Qdisc {
    /// The interface.
    pub interface: String,
    /// Kind, such as `tbf`.
    pub kind: String,
    /// Where it hangs: `root`, `ingress`, or the class above it such as `1:10`.
    pub parent: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Times that a packet was held back by the rate.
    pub overlimits: u32,
    /// Packets that the driver gave back.
    pub requeues: u32,
    /// Bytes that wait now.
    pub backlog: u32,
    /// Packets that wait now.
    pub qlen: u32,
}

/// What a driver says of itself; null where it says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// Its name.
    pub driver: Option<String>,
    /// Its version; drivers of the kernel's own tree give the kernel's.
    pub version: Option<String>,
    /// Version of the device's firmware.
    pub firmware: Option<String>,
    /// Where on its bus the device sits.
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
pub struct Address {
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

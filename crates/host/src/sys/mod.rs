//! The one door to the operating system: /proc, /sys, uname, addresses and the monotonic clock.

mod fake;
mod real;

pub use fake::FakeSys;
pub use real::RealSys;

use std::io;
use std::net::IpAddr;
use std::path::Path;

/// What the rest of the crate may ask the operating system. Paths are absolute, as on the host.
pub trait Sys: Send + Sync {
    /// The whole text of a file; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// What the kernel says: the file does not exist, may not be read, or has no value now (a link without carrier).
    fn read(&self, path: &str) -> io::Result<String>;

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

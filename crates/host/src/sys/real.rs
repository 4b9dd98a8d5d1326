//! The host that this process runs on.

use std::io::{self, Read};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::{
    Address, DriverInfo, ProcessorEvents, Qdisc, Sys, Uname, ask, driver, ethtool, netlink, perf, sorted_names,
};
use crate::netlink::Ask;

/// The host that this process runs on, in its own namespaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealSys;

impl Sys for RealSys {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
    }

    fn read_bytes(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        sorted_names(directory.as_ref())
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        Ok(std::fs::canonicalize(path)?.to_string_lossy().into_owned())
    }

    fn now_ns(&self) -> u64 {
        clock_ns(ClockId::Monotonic)
    }

    fn ticks_per_second(&self) -> u64 {
        rustix::param::clock_ticks_per_second()
    }

    fn uname(&self) -> io::Result<Uname> {
        let uname = rustix::system::uname();
        Ok(Uname {
            hostname: uname.nodename().to_string_lossy().into_owned(),
            release: uname.release().to_string_lossy().into_owned(),
            version: uname.version().to_string_lossy().into_owned(),
            machine: uname.machine().to_string_lossy().into_owned(),
        })
    }

    fn addresses(&self) -> io::Result<Vec<Address>> {
        let found = if_addrs::get_if_addrs()?;
        Ok(found
            .into_iter()
            .map(|interface| {
                let prefix = match &interface.addr {
                    if_addrs::IfAddr::V4(v4) => v4.prefixlen,
                    if_addrs::IfAddr::V6(v6) => v6.prefixlen,
                };
                // An IPv4 address may carry a label such as `eth0:1`; the interface is what stands before the colon.
                let name = interface.name.split(':').next().unwrap_or_default().to_owned();
                Address { interface: name, address: interface.addr.ip(), prefix }
            })
            .collect())
    }

    fn thread_ns(&self) -> u64 {
        clock_ns(ClockId::ThreadCPUTime)
    }

    fn page_size(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    fn qdiscs(&self) -> io::Result<Vec<Qdisc>> {
        netlink::qdiscs()
    }

    fn driver_statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        ethtool::statistics(interface)
    }

    fn processor_events(&self) -> io::Result<Box<dyn ProcessorEvents>> {
        Ok(Box::new(perf::Counting::start(self)?))
    }

    fn netlink(&self, ask: &Ask) -> io::Result<Vec<Vec<u8>>> {
        ask::ask(ask)
    }

    fn driver(&self, interface: &str) -> io::Result<DriverInfo> {
        driver::info(interface)
    }

    fn kernel_log(&self) -> io::Result<Vec<String>> {
        use rustix::fs::{Mode, OFlags, open};
        use rustix::io::Errno;
        // Each read is one record (Documentation/ABI/testing/dev-kmsg): `priority,sequence,time,flags;text`.
        let log = open("/dev/kmsg", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let mut record = vec![0; 8192];
        let mut lines = Vec::new();
        loop {
            match rustix::io::read(&log, record.as_mut_slice()) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(lines),
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let line = text.lines().next().and_then(|line| line.split_once(';'));
                    lines.extend(line.map(|(_, text)| text.to_owned()));
                }
                // Messages were overwritten while we read; the next read goes on with what is there.
                Err(Errno::PIPE | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A clock's reading, ns.
fn clock_ns(clock: ClockId) -> u64 {
    let now = Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

//! The host that this process runs on.

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::{Address, ProcessorEvents, Qdisc, Sys, Uname, ethtool, netlink, perf, sorted_names};

/// The host that this process runs on, in its own namespaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealSys;

impl Sys for RealSys {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
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
}

/// A clock's reading, ns.
fn clock_ns(clock: ClockId) -> u64 {
    let now = Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

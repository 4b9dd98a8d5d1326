//! The host that this process runs on.

use std::io::{self, Read};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::{
    DriverInfo, InterfaceAddress, KeptFile, ProcessorEvents, Qdisc, Sys, Uname, ethtool, lldpd, netlink, perf,
    sorted_names,
};
use crate::netlink::NetlinkRequest;

/// Initial room for a file that is read repeatedly.
const KEPT_BYTES: usize = 8 << 10;

/// The host that this process runs on, in its own namespaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealSys;

impl Sys for RealSys {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
    }

    fn read_again(&self, path: &str, kept: &mut KeptFile) -> io::Result<String> {
        let file = match kept.0.take() {
            Some(file) => file,
            None => std::fs::File::open(path)?,
        };
        // Most fit, so that a file takes two calls: one for all of it and one that finds no more.
        let (mut bytes, mut filled) = (vec![0; KEPT_BYTES], 0);
        loop {
            let count = rustix::io::pread(&file, &mut bytes[filled..], filled as u64)?;
            if count == 0 {
                break;
            }
            filled += count;
            if filled == bytes.len() {
                bytes.resize(2 * filled, 0);
            }
        }
        kept.0 = Some(file);
        Ok(String::from_utf8_lossy(&bytes[..filled]).into_owned())
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

    fn coarse_clock_ns(&self) -> io::Result<u64> {
        let resolution = rustix::time::clock_getres(ClockId::MonotonicCoarse);
        let resolution = Duration::try_from(resolution).map_err(io::Error::other)?;
        u64::try_from(resolution.as_nanos()).map_err(io::Error::other)
    }

    fn lldpd(&self) -> io::Result<String> {
        lldpd::neighbours()
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

    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        let found = if_addrs::get_if_addrs()?;
        Ok(found
            .into_iter()
            .map(|interface| {
                let prefix = match &interface.addr {
                    if_addrs::IfAddr::V4(v4) => v4.prefixlen,
                    if_addrs::IfAddr::V6(v6) => v6.prefixlen,
                };
                // An IPv4 address may carry a label such as `eth0:1`; the interface is the part before the colon.
                let name = interface.name.split(':').next().unwrap_or_default().to_owned();
                InterfaceAddress { interface: name, address: interface.addr.ip(), prefix }
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

    fn netlink(&self, request: &NetlinkRequest) -> io::Result<Vec<Vec<u8>>> {
        netlink::exchange(request.family, request.kind, request.dump, &request.body)
    }

    fn driver(&self, interface: &str) -> io::Result<DriverInfo> {
        ethtool::driver(interface)
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
                // Messages were overwritten during the read; the next read continues with what is there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_stays_open_is_read_as_it_is_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        let path = path.to_str().unwrap();
        let mut kept = KeptFile::default();
        assert!(RealSys.read_again(path, &mut kept).is_err());
        for text in ["a long line\nand another\n", "short\n", "", &"long\n".repeat(KEPT_BYTES)] {
            std::fs::write(path, text).unwrap();
            assert_eq!(RealSys.read_again(path, &mut kept).unwrap(), text);
        }
        assert!(kept.0.is_some());
    }

    #[test]
    fn counters_of_the_kernel_go_on_in_a_file_that_stays_open() {
        let mut kept = KeptFile::default();
        let mut datagrams_sent = || {
            let text = RealSys.read_again("/proc/net/snmp", &mut kept).unwrap();
            let line = text.lines().filter(|line| line.starts_with("Udp:")).nth(1).unwrap().to_owned();
            line.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap()
        };
        let before = datagrams_sent();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..5 {
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        }
        assert!(datagrams_sent() >= before + 5);
    }
}

//! The path MTU, by unfragmentable packets (RFC 1191, RFC 8201; the steps of RFC 4821 if no router reports it).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Instant;

use model::PathMtu;

use super::echo::Echo;
use super::error::ProbeError;
use super::pace::Pace;
use super::ready;
use crate::sys::probe::{self, Complaint};

/// Common sizes, tried one after the other if large packets are dropped silently: jumbo, Ethernet, PPPoE, tunnels, the minimum of
/// IPv6.
const STEPS: [u32; 8] = [9_000, 4_352, 1_500, 1_492, 1_480, 1_450, 1_400, 1_280];
/// How often a size that did not arrive is tried again before a smaller one is taken for the limit: one that arrived shows that the path
/// carries packets, and half of them may be lost.
const CHANCES: u16 = 4;
/// The largest IP packet.
const LARGEST: u32 = 65_535;
/// Maximum routers that report an MTU; more than this is a loop.
const MAX_ROUTERS: usize = 6;
/// First port of the probes over UDP: above those of the hop list, and closed nearly everywhere.
const PORT: u16 = 33_534;

/// Result of a probe.
enum Fate {
    Arrived,
    TooBig { fits: u32, by: Option<IpAddr> },
    Silent,
}

/// Something that can send a packet of any size and report whether it arrived.
trait Carrier {
    fn method(&self) -> &'static str;
    /// Sends a packet of `bytes`, IP header included, under a number.
    fn send(&self, number: u16, bytes: u32) -> std::io::Result<()>;
    /// The number of the next packet that arrived, or the error.
    fn next_result(&self, until: Instant) -> Option<Result<u16, Complaint>>;
}

/// Finds the path MTU towards `peer`, starting with its interface's MTU.
///
/// # Errors
/// There is no socket, or nothing answers and the kernel has no value.
pub(super) fn find(address: SocketAddr, interface_mtu: Option<u32>, pace: &mut Pace) -> Result<PathMtu, ProbeError> {
    let peer = address.ip();
    let first = interface_mtu.unwrap_or(STEPS[2]).min(LARGEST);
    let udp = Udp::open(address).map_err(ProbeError::MtuSocket)?;
    let echo = Echo::open(address).and_then(|echo| echo.whole().map(|()| echo)).ok();
    let carriers = echo.iter().map(|echo| echo as &dyn Carrier).chain([&udp as &dyn Carrier]);
    for carrier in carriers {
        if let Some(found) = by(carrier, first, pace) {
            return Ok(found);
        }
    }
    // Nothing answers: only the kernel's own value is left.
    let bytes = udp.kernel().map_err(|source| ProbeError::Mtu { peer, source })?;
    Ok(PathMtu { bytes, method: "kernel".into(), confirmed: false, reported_by: None })
}

/// `None` if nothing is answered over this carrier.
fn by(carrier: &dyn Carrier, first: u32, pace: &mut Pace) -> Option<PathMtu> {
    let (mut bytes, mut reported_by) = (first, None);
    let found = |bytes, confirmed, reported_by: Option<IpAddr>| {
        let reported_by = reported_by.map(|address| address.to_string());
        Some(PathMtu { bytes, method: carrier.method().into(), confirmed, reported_by })
    };
    for number in 0..MAX_ROUTERS as u16 {
        match fate(carrier, number, bytes, pace) {
            Fate::Arrived => return found(bytes, true, reported_by),
            Fate::TooBig { fits, by } => {
                reported_by = by.or(reported_by);
                // Old routers report none, or one that is not smaller: then the next lower step is tried.
                let step = STEPS.into_iter().find(|step| *step < bytes)?;
                bytes = if fits >= 68 && fits < bytes { fits } else { step };
            }
            // A router has reported an MTU and packets of that size are dropped: reported, but not confirmed.
            Fate::Silent if reported_by.is_some() => return found(bytes, false, reported_by),
            Fate::Silent => {
                let step = largest_step(carrier, bytes, pace)?;
                // A lost packet is not a limit: the full size gets further chances.
                let again = MAX_ROUTERS as u16 + STEPS.len() as u16;
                let arrived =
                    (again..again + CHANCES).any(|number| matches!(fate(carrier, number, bytes, pace), Fate::Arrived));
                return found(if arrived { bytes } else { step }, true, None);
            }
        }
    }
    found(bytes, false, reported_by)
}

/// Sends one probe and waits for its result.
fn fate(carrier: &dyn Carrier, number: u16, bytes: u32, pace: &mut Pace) -> Fate {
    let begun = Instant::now();
    let until = begun + pace.patience(bytes as usize);
    if let Err(error) = carrier.send(number, bytes) {
        // Larger than the interface allows: the error with the number is on the queue, or there is none.
        if error.raw_os_error() != Some(libc::EMSGSIZE) {
            return Fate::Silent;
        }
    }
    while let Some(result) = carrier.next_result(until) {
        match result {
            Ok(arrived) if arrived == number => {
                pace.large(bytes as usize, begun.elapsed());
                return Fate::Arrived;
            }
            Err(complaint) if complaint.errno == libc::EMSGSIZE => {
                return Fate::TooBig { fits: complaint.info, by: complaint.by };
            }
            _ => {}
        }
    }
    Fate::Silent
}

/// The largest of the common sizes below `bytes` that arrives. One is on its way at a time: together they would fill the queue of a slow
/// link.
fn largest_step(carrier: &dyn Carrier, bytes: u32, pace: &mut Pace) -> Option<u32> {
    let base = MAX_ROUTERS as u16;
    let steps: Vec<u32> = STEPS.into_iter().filter(|step| *step < bytes).collect();
    let (mut low, mut high, mut best) = (0, steps.len(), None);
    while low < high {
        let middle = usize::midpoint(low, high);
        if matches!(fate(carrier, base + middle as u16, steps[middle], pace), Fate::Arrived) {
            (high, best) = (middle, Some(steps[middle]));
        } else {
            low = middle + 1;
        }
    }
    best
}

impl Carrier for Echo {
    fn method(&self) -> &'static str {
        "echo"
    }

    fn send(&self, number: u16, bytes: u32) -> std::io::Result<()> {
        Self::send(self, number, bytes as usize)
    }

    fn next_result(&self, until: Instant) -> Option<Result<u16, Complaint>> {
        loop {
            if let Some(complaint) = probe::complaint(self.fd()) {
                return Some(Err(complaint));
            }
            if let Some(number) = self.receive(until) {
                return Some(Ok(number));
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }
}

/// Datagrams to ports without listeners: a host that receives one answers, which shows that it arrived.
struct Udp {
    socket: UdpSocket,
    peer: SocketAddr,
}

impl Udp {
    fn open(peer: SocketAddr) -> std::io::Result<Self> {
        let any = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
        let socket = UdpSocket::bind((any, 0))?;
        probe::prepare(socket.as_fd(), peer.is_ipv6())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, peer })
    }

    /// A port of the peer.
    fn at(&self, port: u16) -> SocketAddr {
        let mut at = self.peer;
        at.set_port(port);
        at
    }

    /// The kernel's value after the probes.
    fn kernel(&self) -> std::io::Result<u32> {
        self.socket.connect(self.at(PORT))?;
        probe::path_mtu(self.socket.as_fd(), self.peer.is_ipv6())
    }
}

impl Carrier for Udp {
    fn method(&self) -> &'static str {
        "udp"
    }

    fn send(&self, number: u16, bytes: u32) -> std::io::Result<()> {
        let headers = 8 + if self.peer.is_ipv6() { 40 } else { 20 };
        let payload = vec![0; bytes.max(headers) as usize - headers as usize];
        let to = self.at(PORT + number);
        // The next call reports an ICMP error about an earlier datagram once.
        self.socket.send_to(&payload, to).or_else(|error| match error.raw_os_error() {
            Some(libc::EMSGSIZE) => Err(error),
            _ => self.socket.send_to(&payload, to),
        })?;
        Ok(())
    }

    fn next_result(&self, until: Instant) -> Option<Result<u16, Complaint>> {
        loop {
            if let Some(complaint) = probe::complaint(self.socket.as_fd()) {
                let arrived = complaint.errno == libc::ECONNREFUSED;
                return Some(if arrived { Ok(complaint.port.wrapping_sub(PORT)) } else { Err(complaint) });
            }
            if !ready(&self.socket, until) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Duration;

    /// A path that loses the first packets of full size, whatever their size.
    struct Lossy(RefCell<Vec<u16>>, u32);

    impl Carrier for Lossy {
        fn method(&self) -> &'static str {
            "echo"
        }

        fn send(&self, number: u16, bytes: u32) -> std::io::Result<()> {
            let mut numbers = self.0.borrow_mut();
            let full = numbers.iter().filter(|number| **number == u16::MAX).count() as u32;
            match bytes == 1_500 && full < self.1 {
                true => numbers.insert(0, u16::MAX),
                false => numbers.push(number),
            }
            Ok(())
        }

        fn next_result(&self, _: Instant) -> Option<Result<u16, Complaint>> {
            self.0.borrow_mut().pop_if(|number| *number != u16::MAX).map(Ok)
        }
    }

    #[test]
    fn a_path_that_loses_half_has_no_smaller_mtu() {
        let found = |lost| {
            let lossy = Lossy(RefCell::default(), lost);
            by(&lossy, 1_500, &mut Pace::new(Instant::now(), Duration::ZERO)).unwrap().bytes
        };
        assert_eq!((found(0), found(3), found(20)), (1_500, 1_500, 1_492));
    }

    /// A path that carries packets of up to `carries`; a router in front of a smaller link reports `reports`, or
    /// nothing.
    struct Made {
        carries: u32,
        reports: Option<u32>,
        queue: RefCell<Vec<Result<u16, Complaint>>>,
    }

    impl Carrier for Made {
        fn method(&self) -> &'static str {
            "echo"
        }

        fn send(&self, number: u16, bytes: u32) -> std::io::Result<()> {
            let by = Some("192.0.2.1".parse().unwrap());
            let complaint = |info| Complaint { errno: libc::EMSGSIZE, info, by, port: 0, expired: false };
            let result =
                if bytes <= self.carries { Some(Ok(number)) } else { self.reports.map(|mtu| Err(complaint(mtu))) };
            self.queue.borrow_mut().extend(result);
            Ok(())
        }

        fn next_result(&self, _: Instant) -> Option<Result<u16, Complaint>> {
            self.queue.borrow_mut().pop()
        }
    }

    fn find_on(carries: u32, reports: Option<u32>, first: u32) -> Option<PathMtu> {
        let made = Made { carries, reports, queue: RefCell::default() };
        by(&made, first, &mut Pace::new(Instant::now(), Duration::ZERO))
    }

    #[test]
    fn an_mtu_that_a_router_reports_is_verified() {
        let found = find_on(1_400, Some(1_400), 1_500).unwrap();
        assert_eq!((found.bytes, found.confirmed, found.reported_by.as_deref()), (1_400, true, Some("192.0.2.1")));
        // A router that reports 0: down the steps.
        assert_eq!(find_on(1_480, Some(0), 1_500).unwrap().bytes, 1_480);
    }

    #[test]
    fn where_large_packets_vanish_the_largest_step_that_arrives_is_found() {
        let found = find_on(1_460, None, 9_000).unwrap();
        assert_eq!((found.bytes, found.confirmed, found.reported_by), (1_450, true, None));
        assert_eq!(find_on(100, None, 9_000), None);
    }

    #[test]
    fn a_path_with_the_mtu_of_its_interface_is_found() {
        assert_eq!(find_on(9_000, None, 9_000).unwrap().bytes, 9_000);
    }
}

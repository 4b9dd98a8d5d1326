//! The largest packet that a path carries in one piece, by packets that may not be cut (RFC 1191, RFC 8201; the steps of
//! RFC 4821 where nobody reports).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use model::PathMtu;

use super::echo::Echo;
use super::ready;
use crate::sys::probe::{self, Complaint};

/// How long an answer to one probe is waited for.
const PATIENCE: Duration = Duration::from_millis(150);
/// Sizes in use, tried together where large packets vanish without a word: jumbo, Ethernet, PPPoE, tunnels, the least of IPv6.
const STEPS: [u32; 8] = [9_000, 4_352, 1_500, 1_492, 1_480, 1_450, 1_400, 1_280];
/// The largest IP packet.
const LARGEST: u32 = 65_535;
/// Routers that tell an MTU each; more than this is a loop.
const MAX_ROUTERS: usize = 6;
/// First port of the probes over UDP: above those of the hop list, and closed nearly everywhere.
const PORT: u16 = 33_534;

/// What became of a probe.
enum Fate {
    Arrived,
    TooBig { fits: u32, by: Option<IpAddr> },
    Silent,
}

/// Something that can carry a packet of any size there and tell whether it came.
trait Carrier {
    fn method(&self) -> &'static str;
    /// Sends a packet of `bytes`, IP header included, under a number.
    fn send(&self, number: u16, bytes: u32) -> std::io::Result<()>;
    /// The number of the next packet that arrived, or what stood in its way.
    fn next_result(&self, until: Instant) -> Option<Result<u16, Complaint>>;
}

/// Finds the path MTU towards `peer`, beginning with what its interface carries.
///
/// # Errors
/// Why not, in words.
pub(super) fn find(peer: IpAddr, interface_mtu: Option<u32>, until: Instant) -> Result<PathMtu, String> {
    let first = interface_mtu.unwrap_or(STEPS[2]).min(LARGEST);
    let udp = Udp::open(peer).map_err(|error| format!("path MTU: no UDP socket: {error}"))?;
    let echo = Echo::open(peer).and_then(|echo| echo.whole().map(|()| echo)).ok();
    let carriers = echo.iter().map(|echo| echo as &dyn Carrier).chain([&udp as &dyn Carrier]);
    for carrier in carriers {
        if let Some(found) = by(carrier, first, until) {
            return Ok(found);
        }
    }
    // Nobody answers: all that is left is what the kernel has result.
    match udp.kernel() {
        Ok(bytes) => Ok(PathMtu { bytes, method: "kernel".into(), confirmed: false, reported_by: None }),
        Err(error) => {
            Err(format!("path MTU: {peer} answers neither echoes nor UDP, and the kernel has no value: {error}"))
        }
    }
}

/// `None` when nothing comes back by this carrier.
fn by(carrier: &dyn Carrier, first: u32, until: Instant) -> Option<PathMtu> {
    let (mut bytes, mut reported_by) = (first, None);
    let found = |bytes, confirmed, reported_by: Option<IpAddr>| {
        let reported_by = reported_by.map(|address| address.to_string());
        Some(PathMtu { bytes, method: carrier.method().into(), confirmed, reported_by })
    };
    for number in 0..MAX_ROUTERS as u16 {
        match fate(carrier, number, bytes, until) {
            Fate::Arrived => return found(bytes, true, reported_by),
            Fate::TooBig { fits, by } => {
                reported_by = by.or(reported_by);
                // Old routers tell none, or one that is no smaller: the next step below is as good a guess as any.
                let step = STEPS.into_iter().find(|step| *step < bytes)?;
                bytes = if fits >= 68 && fits < bytes { fits } else { step };
            }
            // A router has told what fits and what fits vanishes: told, but not confirmed.
            Fate::Silent if reported_by.is_some() => return found(bytes, false, reported_by),
            Fate::Silent => return largest_step(carrier, bytes, until).and_then(|bytes| found(bytes, true, None)),
        }
    }
    found(bytes, false, reported_by)
}

/// Sends one probe and waits for what becomes of it.
fn fate(carrier: &dyn Carrier, number: u16, bytes: u32, until: Instant) -> Fate {
    let until = until.min(Instant::now() + PATIENCE);
    if let Err(error) = carrier.send(number, bytes) {
        // Larger than the interface allows: the complaint with the number is on the queue, or there is none.
        if error.raw_os_error() != Some(libc::EMSGSIZE) {
            return Fate::Silent;
        }
    }
    while let Some(result) = carrier.next_result(until) {
        match result {
            Ok(arrived) if arrived == number => return Fate::Arrived,
            Err(complaint) if complaint.errno == libc::EMSGSIZE => {
                return Fate::TooBig { fits: complaint.info, by: complaint.by };
            }
            _ => {}
        }
    }
    Fate::Silent
}

/// Of the usual sizes below `bytes`, the largest that arrives, all sent at once.
fn largest_step(carrier: &dyn Carrier, bytes: u32, until: Instant) -> Option<u32> {
    let base = MAX_ROUTERS as u16;
    let steps: Vec<u32> = STEPS.into_iter().filter(|step| *step < bytes).collect();
    // The smallest first: a host that answers only so many closed ports in a second answers these.
    for (index, step) in steps.iter().enumerate().rev() {
        let _ = carrier.send(base + index as u16, *step);
    }
    let until = until.min(Instant::now() + PATIENCE);
    let mut best: Option<usize> = None;
    while let Some(result) = carrier.next_result(until) {
        let index = result.ok().and_then(|number| number.checked_sub(base)).map(usize::from);
        best = match (best, index.filter(|index| *index < steps.len())) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    best.map(|index| steps[index])
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

/// Datagrams to ports that nobody listens on: a host that gets one says so, and thereby that it came.
struct Udp {
    socket: UdpSocket,
    peer: IpAddr,
}

impl Udp {
    fn open(peer: IpAddr) -> std::io::Result<Self> {
        let any = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
        let socket = UdpSocket::bind((any, 0))?;
        probe::prepare(socket.as_fd(), peer.is_ipv6())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, peer })
    }

    /// What the kernel thinks after all that.
    fn kernel(&self) -> std::io::Result<u32> {
        self.socket.connect((self.peer, PORT))?;
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
        let to = SocketAddr::new(self.peer, PORT + number);
        // A complaint about an earlier one is reported once by the next call.
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

    /// A path that carries packets of up to `carries`; a router in front of a smaller one reports `reports`, or nothing.
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
        by(&made, first, Instant::now() + PATIENCE)
    }

    #[test]
    fn an_mtu_that_a_router_reports_is_verified() {
        let found = find_on(1_400, Some(1_400), 1_500).unwrap();
        assert_eq!((found.bytes, found.confirmed, found.reported_by.as_deref()), (1_400, true, Some("192.0.2.1")));
        // One that reports nothing (0): down the steps.
        assert_eq!(find_on(1_480, Some(0), 1_500).unwrap().bytes, 1_480);
    }

    #[test]
    fn where_large_packets_vanish_the_largest_step_that_arrives_is_found() {
        let found = find_on(1_460, None, 9_000).unwrap();
        assert_eq!((found.bytes, found.confirmed, found.reported_by), (1_450, true, None));
        assert_eq!(find_on(100, None, 9_000), None);
    }

    #[test]
    fn a_path_as_wide_as_its_interface_is_that_wide() {
        assert_eq!(find_on(9_000, None, 9_000).unwrap().bytes, 9_000);
    }
}

//! The routers on the path: small datagrams with increasing hop limits, three with each, at the path's pace, to ports without
//! listeners. A router that drops one sends an ICMP error, which needs no privilege to receive (IP_RECVERR).
//!
//! The three of a hop follow each other, because a Linux host answers six of a burst (icmp_ratelimit): the peer's first
//! answers are then to the hop limit that just reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use model::Hop;

use super::error::ProbeError;
use super::pace::Pace;
use super::ready;
use crate::sys::probe;

/// Hop limits that are tried.
const MAX_HOPS: u8 = 30;
/// Probes with each, as traceroute programs send.
const PROBES: u8 = 3;
/// Bytes of a probe, and of its headers.
const PAYLOAD: usize = 32;
const HEADERS: usize = 28;
/// The port of the first one, as traceroute programs use it.
const PORT: u16 = 33_434;
/// How long a nearer router may still take after the peer has answered.
const STRAGGLERS: Duration = Duration::from_millis(60);

/// The hops found, and whether the last one is the peer.
pub(super) struct Walk {
    pub(super) hops: Vec<Hop>,
    pub(super) reached: bool,
}

/// Probes the path to `peer` until it answers, or until `until`.
///
/// # Errors
/// No probe can be sent, or nothing answers.
pub(super) fn walk(peer: SocketAddr, pace: &Pace, until: Instant) -> Result<Walk, ProbeError> {
    let v6 = peer.is_ipv6();
    let any = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind((any, 0))?;
    probe::prepare(socket.as_fd(), v6)?;
    socket.set_nonblocking(true)?;
    let all = usize::from(MAX_HOPS) * usize::from(PROBES);
    let gap = pace.gap(PAYLOAD + HEADERS);
    let (mut until, mut due) = (until, Instant::now());
    let mut sent: Vec<Instant> = Vec::with_capacity(all);
    let mut hops = Hops::new();
    while !hops.complete() && Instant::now() < until {
        while let Some(complaint) = probe::complaint(socket.as_fd()) {
            let Some(index) = complaint.port.checked_sub(PORT).map(usize::from) else { continue };
            if let (Some(by), Some(at)) = (complaint.by, sent.get(index)) {
                let first = hops.last.is_none();
                hops.answered(index, by, at.elapsed().as_nanos() as u64, complaint.expired);
                if first && hops.last.is_some() {
                    until = until.min(Instant::now() + STRAGGLERS + pace.round_trip() + gap * u32::from(PROBES));
                }
            }
        }
        // Beyond the peer there is nothing.
        let more = sent.len() < hops.last.map_or(all, |last| (last + 1) * usize::from(PROBES));
        if more && Instant::now() >= due {
            let index = sent.len();
            let hop = (index / usize::from(PROBES)) as u8 + 1;
            probe::set_hop_limit(socket.as_fd(), v6, hop)?;
            let mut to = peer;
            to.set_port(PORT + index as u16);
            sent.push(Instant::now());
            // The next call reports an ICMP error about an earlier datagram once.
            let _ = socket.send_to(&[0; PAYLOAD], to).or_else(|_| socket.send_to(&[0; PAYLOAD], to));
            due += gap;
        } else if !hops.complete() {
            ready(&socket, if more { due.min(until) } else { until });
        }
    }
    hops.walk().ok_or(ProbeError::NoHop { peer: peer.ip() })
}

struct Hops {
    /// For each hop limit, of each of its probes: the sender of the answer, and its delay.
    answers: Vec<[Option<(IpAddr, u64)>; PROBES as usize]>,
    /// Position of the nearest hop limit whose probe was not dropped for it: the peer's, or a firewall's in front of it.
    last: Option<usize>,
}

impl Hops {
    fn new() -> Self {
        Self { answers: vec![[None; PROBES as usize]; MAX_HOPS.into()], last: None }
    }

    /// Probe number `index` was answered.
    fn answered(&mut self, index: usize, by: IpAddr, rtt_ns: u64, expired: bool) {
        let (hop, probe) = (index / usize::from(PROBES), index % usize::from(PROBES));
        self.answers[hop][probe].get_or_insert((by, rtt_ns));
        if !expired {
            self.last = Some(self.last.map_or(hop, |last| last.min(hop)));
        }
    }

    /// Whether the end and all hops before it have answered all probes.
    fn complete(&self) -> bool {
        self.last.is_some_and(|last| self.answers[..=last].iter().flatten().all(Option::is_some))
    }

    /// The list up to the end, or up to the last router that answered.
    fn walk(&self) -> Option<Walk> {
        let answered = |probes: &[Option<(IpAddr, u64)>; PROBES as usize]| probes.iter().any(Option::is_some);
        let end = self.last.or_else(|| self.answers.iter().rposition(answered))?;
        let hops = self.answers[..=end].iter().zip(1..).map(|(probes, number)| hop(number, probes)).collect();
        Some(Walk { hops, reached: self.last.is_some() })
    }
}

fn hop(hop: u8, probes: &[Option<(IpAddr, u64)>]) -> Hop {
    let answers = || probes.iter().flatten();
    let mut addresses: Vec<String> = Vec::new();
    for (by, _) in answers() {
        let by = by.to_string();
        if !addresses.contains(&by) {
            addresses.push(by);
        }
    }
    let mut addresses = addresses.into_iter();
    Hop {
        hop,
        address: addresses.next(),
        rtt_ns: answers().map(|(_, rtt)| *rtt).min(),
        rtts_ns: answers().map(|(_, rtt)| *rtt).collect(),
        probes: Some(PROBES.into()),
        others: addresses.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers to probes: the hop limit's place, the probe's, who answered, and whether a router dropped it.
    fn answered(answers: &[(usize, usize, &str, bool)]) -> Hops {
        let mut hops = Hops::new();
        for (hop, probe, by, expired) in answers {
            let index = hop * usize::from(PROBES) + probe;
            hops.answered(index, by.parse().unwrap(), 1_000 + *probe as u64, *expired);
        }
        hops
    }

    #[test]
    fn the_list_ends_with_the_nearest_answer_of_the_peer() {
        let hops = answered(&[(3, 0, "10.0.0.9", false), (2, 2, "10.0.0.9", false), (0, 0, "10.0.0.1", true)]);
        assert!(!hops.complete(), "the second router may still answer");
        let walk = hops.walk().unwrap();
        let addresses: Vec<Option<&str>> = walk.hops.iter().map(|hop| hop.address.as_deref()).collect();
        assert_eq!(addresses, [Some("10.0.0.1"), None, Some("10.0.0.9")]);
        assert!(walk.reached);
    }

    #[test]
    fn each_hop_has_the_round_trips_of_its_probes_and_all_routers_that_answered() {
        let first = [(0, 0, "10.0.0.1", true), (0, 2, "10.0.0.2", true), (0, 1, "10.0.0.1", true)];
        let hops = answered(&first).walk().unwrap().hops;
        assert_eq!((hops[0].rtt_ns, &hops[0].rtts_ns[..]), (Some(1_000), &[1_000, 1_001, 1_002][..]));
        assert_eq!((hops[0].address.as_deref(), &hops[0].others[..]), (Some("10.0.0.1"), &["10.0.0.2".to_owned()][..]));
        let all = |probe| [(0, probe, "10.0.0.1", true), (1, probe, "10.0.0.9", false)];
        assert!(!answered(&[all(0), all(1)].concat()).complete(), "a probe of each hop is not answered");
        assert!(answered(&[all(0), all(1), all(2)].concat()).complete());
    }

    #[test]
    fn without_the_peer_the_routers_are_listed_and_without_anybody_nothing() {
        let walk = answered(&[(0, 1, "10.0.0.1", true)]).walk().unwrap();
        assert_eq!((walk.hops.len(), walk.reached), (1, false));
        assert!(answered(&[]).walk().is_none());
    }
}

//! The routers on the path: small datagrams with increasing hop limits, sent at once, to ports without listeners. A
//! router that drops one sends an ICMP error, which needs no privilege to receive (IP_RECVERR).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use model::Hop;

use super::ready;
use crate::sys::probe;

/// Hop limits that are tried.
const MAX_HOPS: u8 = 30;
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
/// Why nothing answered, as text.
pub(super) fn walk(peer: IpAddr, until: Instant) -> Result<Walk, String> {
    let failed = |error: std::io::Error| format!("hops: probes cannot be sent: {error}");
    let v6 = peer.is_ipv6();
    let any = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
    probe::prepare(socket.as_fd(), v6).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let mut sent = Vec::with_capacity(MAX_HOPS.into());
    for hop in 1..=MAX_HOPS {
        probe::set_hop_limit(socket.as_fd(), v6, hop).map_err(failed)?;
        let to = SocketAddr::new(peer, PORT + u16::from(hop));
        sent.push(Instant::now());
        // The next call reports an ICMP error about an earlier datagram once.
        let _ = socket.send_to(&[0; 32], to).or_else(|_| socket.send_to(&[0; 32], to));
    }
    let mut until = until;
    let mut hops = Hops { answers: vec![None; MAX_HOPS.into()], last: None };
    while !hops.complete() {
        let Some(complaint) = probe::complaint(socket.as_fd()) else {
            if ready(&socket, until) {
                continue;
            }
            break;
        };
        let Some(index) = complaint.port.checked_sub(PORT + 1).map(usize::from) else { continue };
        if let (Some(by), Some(at)) = (complaint.by, sent.get(index)) {
            let first = hops.last.is_none();
            hops.answered(index, by, at.elapsed().as_nanos() as u64, complaint.expired);
            if first && hops.last.is_some() {
                until = until.min(Instant::now() + STRAGGLERS);
            }
        }
    }
    hops.walk()
        .ok_or_else(|| format!("hops: no router on the path to {peer} answered in time; a firewall may drop ICMP"))
}

struct Hops {
    /// The sender of the answer to each hop limit, and its delay.
    answers: Vec<Option<(IpAddr, u64)>>,
    /// Position of the nearest probe that was not dropped for its hop limit: the peer's, or a firewall's in front of
    /// it.
    last: Option<usize>,
}

impl Hops {
    fn answered(&mut self, index: usize, by: IpAddr, rtt_ns: u64, expired: bool) {
        self.answers[index].get_or_insert((by, rtt_ns));
        if !expired {
            self.last = Some(self.last.map_or(index, |last| last.min(index)));
        }
    }

    /// Whether the end and all hops before it have answered.
    fn complete(&self) -> bool {
        self.last.is_some_and(|last| self.answers[..=last].iter().all(Option::is_some))
    }

    /// The list up to the end, or up to the last router that answered.
    fn walk(&self) -> Option<Walk> {
        let end = self.last.or_else(|| self.answers.iter().rposition(Option::is_some))?;
        let hop = |(index, answer): (usize, &Option<(IpAddr, u64)>)| Hop {
            hop: index as u8 + 1,
            address: answer.map(|(by, _)| by.to_string()),
            rtt_ns: answer.map(|(_, rtt)| rtt),
        };
        let hops = self.answers[..=end].iter().enumerate().map(hop).collect();
        Some(Walk { hops, reached: self.last.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answers: &[(usize, &str, bool)]) -> Hops {
        let mut hops = Hops { answers: vec![None; MAX_HOPS.into()], last: None };
        for (index, by, expired) in answers {
            hops.answered(*index, by.parse().unwrap(), 1_000, *expired);
        }
        hops
    }

    #[test]
    fn the_list_ends_with_the_nearest_answer_of_the_peer() {
        let hops = answered(&[(3, "10.0.0.9", false), (2, "10.0.0.9", false), (0, "10.0.0.1", true)]);
        assert!(!hops.complete(), "the second router may still answer");
        let walk = hops.walk().unwrap();
        let addresses: Vec<Option<&str>> = walk.hops.iter().map(|hop| hop.address.as_deref()).collect();
        assert_eq!(addresses, [Some("10.0.0.1"), None, Some("10.0.0.9")]);
        assert!(walk.reached);
    }

    #[test]
    fn without_the_peer_the_routers_are_listed_and_without_anybody_nothing() {
        let walk = answered(&[(0, "10.0.0.1", true)]).walk().unwrap();
        assert_eq!((walk.hops.len(), walk.reached), (1, false));
        assert!(answered(&[]).walk().is_none());
    }
}

//! Which packets belong to a trial: those of the sockets that its processes opened or accepted. The kernel's filter
//! checks ports only, which other connections may share.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;

use super::packet::{Ends, Fragment, Piece};

/// Fragmented packets whose first fragment was seen and whose others may still arrive.
const FRAGMENTED: usize = 1_024;

/// Connections that are known at most once subflows have joined: anyone may send a packet that seems to open one.
const JOINED: usize = 4_096;

/// The sockets of a trial at this end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    /// Addresses of both ends of a connection, this one's first.
    pub connections: HashSet<[SocketAddr; 2]>,
    /// Addresses that belong to the trial with any peer: of a listener of its own here, or of one there that has
    /// welcomed this end's first connection.
    pub endpoints: HashSet<SocketAddr>,
    /// Connections of MPTCP: further subflows join them.
    pub multipath: bool,
}

/// The state while packets pass.
#[derive(Default)]
pub(super) struct Sorter {
    own: Own,
    fragmented: VecDeque<Fragment>,
}

impl Sorter {
    pub(super) fn new(own: &Own) -> Self {
        Self { own: own.clone(), fragmented: VecDeque::new() }
    }

    /// Whether a packet, from its network header on, is the trial's.
    pub(super) fn has(&mut self, packet: &[u8]) -> bool {
        match Piece::parse(packet) {
            Some(Piece::Whole(ends)) => self.has_ends(&ends),
            Some(Piece::First(ends, fragment)) => {
                let own = self.has_ends(&ends);
                if own {
                    if self.fragmented.len() == FRAGMENTED {
                        self.fragmented.pop_front();
                    }
                    self.fragmented.push_back(fragment);
                }
                own
            }
            // The newest one is the most likely.
            Some(Piece::Later(fragment)) => self.fragmented.iter().rev().any(|known| *known == fragment),
            None => false,
        }
    }

    fn has_ends(&mut self, ends: &Ends) -> bool {
        let Ends { from, to, joins } = *ends;
        let known = |own: &Own| own.connections.contains(&[from, to]) || own.connections.contains(&[to, from]);
        if known(&self.own) || self.own.endpoints.contains(&from) || self.own.endpoints.contains(&to) {
            return true;
        }
        // A further subflow goes to the port of the first one, and shares at least one address with a known one.
        let joined = joins && self.own.multipath && self.own.connections.len() < JOINED;
        let beside = |[here, there]: &[SocketAddr; 2]| {
            let port = there.port() == to.port() || here.port() == to.port();
            let ips = [here.ip(), there.ip()];
            port && (ips.contains(&from.ip()) || ips.contains(&to.ip()))
        };
        if joined && self.own.connections.iter().any(beside) {
            return self.own.connections.insert([from, to]);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{v4, v6_udp};
    use super::*;

    fn own(connections: &[[&str; 2]]) -> Own {
        let connections = connections.iter().map(|ends| ends.map(|end| end.parse().unwrap())).collect();
        Own { connections, ..Own::default() }
    }

    #[test]
    fn packets_of_other_sockets_do_not_belong_to_the_trial() {
        // From 10.0.0.1:4000 to 10.0.0.2:6280.
        let packet = v4(0x18);
        for (ends, has) in [
            (["10.0.0.1:4000", "10.0.0.2:6280"], true),
            (["10.0.0.2:6280", "10.0.0.1:4000"], true),
            (["10.0.0.1:4001", "10.0.0.2:6280"], false),
            (["10.0.0.3:4000", "10.0.0.2:6280"], false),
        ] {
            assert_eq!(Sorter::new(&own(&[ends])).has(&packet), has, "{ends:?}");
        }
        let of = |end: &str| Own { endpoints: HashSet::from([end.parse().unwrap()]), ..Own::default() };
        assert!(Sorter::new(&of("10.0.0.2:6280")).has(&packet) && !Sorter::new(&of("10.0.0.2:6281")).has(&packet));
        assert!(!Sorter::default().has(&packet) && !Sorter::default().has(&[]));
    }

    #[test]
    fn later_fragments_follow_their_first() {
        let mut sorter = Sorter::new(&own(&[["[::1]:4000", "[::1]:6280"]]));
        let (mine, other) = (v6_udp([4_000, 6_280], 7, 0), v6_udp([4_000, 53], 8, 0));
        let later = |number| v6_udp([0, 0], number, 1_448);
        assert!(!sorter.has(&later(7)), "before its first");
        assert!(sorter.has(&mine) && !sorter.has(&other));
        assert!(sorter.has(&later(7)) && !sorter.has(&later(8)));
    }

    /// A SYN with a TCP option.
    fn subflow(option: &[u8]) -> Vec<u8> {
        let mut packet = v4(2);
        packet.truncate(40);
        packet[32] = (5 + option.len() as u8 / 4) << 4;
        packet.extend(option);
        packet
    }

    /// Four times no-operation, and MP_JOIN of a SYN (RFC 8684, 3.2).
    const JOIN: [u8; 16] = [1, 1, 1, 1, 30, 12, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn a_flood_of_subflows_takes_no_more_memory() {
        let first = own(&[["10.0.0.9:5000", "10.0.0.2:6280"]]);
        let mut sorter = Sorter::new(&Own { multipath: true, ..first });
        let mut packet = subflow(&JOIN);
        for port in 1..=u16::MAX {
            packet[20..22].copy_from_slice(&port.to_be_bytes());
            sorter.has(&packet);
        }
        assert_eq!(sorter.own.connections.len(), JOINED);
    }

    #[test]
    fn a_subflow_joins_by_its_option_only() {
        // From another address of this host: MP_JOIN, or MP_CAPABLE.
        let join = subflow(&JOIN);
        let capable = subflow(&[1, 1, 1, 1, 30, 4, 0x01, 0]);
        let first = own(&[["10.0.0.9:5000", "10.0.0.2:6280"]]);
        let mut sorter = Sorter::new(&Own { multipath: true, ..first.clone() });
        assert!(!sorter.has(&capable) && !sorter.has(&v4(0x18)));
        assert!(sorter.has(&join) && sorter.has(&v4(0x18)));
        assert!(!Sorter::new(&first).has(&join), "of MPTCP only");
        let elsewhere = own(&[["10.0.0.9:5000", "10.0.0.8:6280"]]);
        assert!(!Sorter::new(&Own { multipath: true, ..elsewhere }).has(&join));
    }
}

//! The packet headers needed for a time sequence and to find a packet's connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) number: u32,
    pub(super) acknowledged: Option<u32>,
    pub(super) syn: bool,
    /// Bytes of payload on the wire, whether or not they were captured.
    pub(super) payload: u32,
}

impl Segment {
    /// Reads a packet from its network header on; `None` where it is no whole TCP header. `length` is the packet's on the wire,
    /// from the network header on.
    pub(super) fn parse(packet: &[u8], length: u32) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                // A later fragment has no TCP header.
                if *packet.get(9)? != 6 || half(packet, 6)? & 0x1fff != 0 {
                    return None;
                }
                let ends = [address_v4(packet, 12)?, address_v4(packet, 16)?];
                // 0 where a segment before segmentation is longer than the field can say (BIG TCP).
                let total = Some(u32::from(half(packet, 2)?)).filter(|total| *total > 0).unwrap_or(length);
                Self::tcp(packet.get(header..)?, ends.map(Into::into), total.checked_sub(header as u32)?)
            }
            6 => {
                if *packet.get(6)? != 6 {
                    return None;
                }
                let ends = [address_v6(packet, 8)?, address_v6(packet, 24)?];
                let inner = Some(u32::from(half(packet, 4)?)).filter(|inner| *inner > 0);
                let inner = inner.or_else(|| length.checked_sub(40))?;
                Self::tcp(packet.get(40..)?, ends.map(Into::into), inner)
            }
            _ => None,
        }
    }

    /// RFC 9293, 3.1. `length` is that of header and payload.
    fn tcp(header: &[u8], [from, to]: [std::net::IpAddr; 2], length: u32) -> Option<Self> {
        let flags = *header.get(13)?;
        let own = u32::from(header[12] >> 4) * 4;
        Some(Self {
            from: SocketAddr::new(from, half(header, 0)?),
            to: SocketAddr::new(to, half(header, 2)?),
            number: word(header, 4)?,
            acknowledged: (flags & 0x10 != 0).then(|| word(header, 8)).flatten(),
            syn: flags & 2 != 0,
            payload: length.checked_sub(own)?,
        })
    }
}

/// Source and destination of a TCP or UDP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// It opens a further subflow of an MPTCP connection.
    pub(super) joins: bool,
}

/// What the fragments of a packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fragment {
    ends: [IpAddr; 2],
    protocol: u8,
    number: u32,
}

/// A packet or a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Whole(Ends),
    /// The fragment with the ports.
    First(Ends, Fragment),
    Later(Fragment),
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_BYTES: usize = 8;
/// The next header of an IPv6 fragment, and the length of its header.
const FRAGMENT: u8 = 44;
const FRAGMENT_BYTES: usize = 8;

impl Piece {
    /// Reads a packet from its network header on; `None` if it is truncated too early or is not IP.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                let ends = [address_v4(packet, 12)?.into(), address_v4(packet, 16)?.into()];
                let (flags_and_offset, protocol) = (half(packet, 6)?, *packet.get(9)?);
                let fragment = Fragment { ends, protocol, number: half(packet, 4)?.into() };
                // More fragments follow, or this one does not start the packet.
                let (more, at) = (flags_and_offset & 0x2000 != 0, flags_and_offset & 0x1fff);
                Self::of(packet.get(header..)?, fragment, (more || at > 0).then_some(at))
            }
            6 => {
                let ends = [address_v6(packet, 8)?.into(), address_v6(packet, 24)?.into()];
                let next = *packet.get(6)?;
                if next != FRAGMENT {
                    return Self::of(packet.get(40..)?, Fragment { ends, protocol: next, number: 0 }, None);
                }
                let fragment = Fragment { ends, protocol: *packet.get(40)?, number: word(packet, 44)? };
                Self::of(packet.get(40 + FRAGMENT_BYTES..)?, fragment, Some(half(packet, 42)? >> 3))
            }
            _ => None,
        }
    }

    /// `at` is the offset of a fragment in its packet; `None` for an unfragmented one.
    fn of(inner: &[u8], fragment: Fragment, at: Option<u16>) -> Option<Self> {
        if at.is_some_and(|at| at > 0) {
            return Some(Self::Later(fragment));
        }
        let [from, to] = fragment.ends;
        let (from, to) = (SocketAddr::new(from, half(inner, 0)?), SocketAddr::new(to, half(inner, 2)?));
        let ends = Ends { from, to, joins: fragment.protocol == TCP && joins(inner) };
        Some(if at.is_some() { Self::First(ends, fragment) } else { Self::Whole(ends) })
    }
}

/// Bytes of the headers of a TCP or UDP packet, from its network header on; of a later fragment and of other protocols those of
/// the network header.
pub(super) fn headers(packet: &[u8]) -> usize {
    let find = || -> Option<usize> {
        let (at, protocol, first) = match packet.first()? >> 4 {
            4 => (usize::from(packet[0] & 0xf) * 4, *packet.get(9)?, half(packet, 6)? & 0x1fff == 0),
            6 if *packet.get(6)? == FRAGMENT => (40 + FRAGMENT_BYTES, *packet.get(40)?, half(packet, 42)? >> 3 == 0),
            6 => (40, *packet.get(6)?, true),
            _ => return None,
        };
        Some(
            at + match protocol {
                TCP if first => usize::from(*packet.get(at + 12)? >> 4) * 4,
                UDP if first => UDP_BYTES,
                _ => 0,
            },
        )
    };
    find().unwrap_or(0)
}

/// Whether a TCP header is that of a SYN with the option MP_JOIN (RFC 8684, 3.2).
fn joins(header: &[u8]) -> bool {
    let find = || -> Option<bool> {
        let (length, flags) = (usize::from(*header.get(12)? >> 4) * 4, *header.get(13)?);
        if flags & 2 == 0 {
            return None;
        }
        let mut options = header.get(20..length.min(header.len()))?;
        loop {
            let skip = match *options.first()? {
                0 => return None,
                1 => 1,
                30 if *options.get(2)? >> 4 == 1 => return Some(true),
                _ => usize::from(*options.get(1)?).max(2),
            };
            options = options.get(skip..)?;
        }
    };
    find().unwrap_or(false)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn address_v4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    word(bytes, at).map(Ipv4Addr::from)
}

fn address_v6(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(octets.into())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A fragment of a datagram within this host, at offset `at`.
    pub(crate) fn v6_udp(ports: [u16; 2], number: u32, at: u16) -> Vec<u8> {
        let mut packet = vec![0; 56];
        packet[0] = 0x60;
        packet[6] = FRAGMENT;
        (packet[23], packet[39], packet[40]) = (1, 1, 17);
        packet[42..44].copy_from_slice(&(at | 1).to_be_bytes());
        packet[44..48].copy_from_slice(&number.to_be_bytes());
        packet[48..50].copy_from_slice(&ports[0].to_be_bytes());
        packet[50..52].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    /// A segment of tcpdump's example: 10.0.0.1:4000 to 10.0.0.2:6280, number 1000, acknowledging 77, 100 bytes of payload.
    pub(crate) fn v4(flags: u8) -> Vec<u8> {
        let mut packet = vec![0; 52];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&152_u16.to_be_bytes());
        packet[9] = 6;
        packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
        packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
        packet[20..22].copy_from_slice(&4_000_u16.to_be_bytes());
        packet[22..24].copy_from_slice(&6_280_u16.to_be_bytes());
        packet[24..28].copy_from_slice(&1_000_u32.to_be_bytes());
        packet[28..32].copy_from_slice(&77_u32.to_be_bytes());
        packet[32] = 8 << 4;
        packet[33] = flags;
        packet
    }

    #[test]
    fn headers_are_read() {
        let segment = Segment::parse(&v4(0x18), 152).unwrap();
        assert_eq!(segment.from, "10.0.0.1:4000".parse().unwrap());
        assert_eq!(segment.to, "10.0.0.2:6280".parse().unwrap());
        assert_eq!((segment.number, segment.acknowledged, segment.payload), (1_000, Some(77), 100));
        assert!(!segment.syn);
        let first = Segment::parse(&v4(2), 152).unwrap();
        assert!(first.syn && first.acknowledged.is_none());
        let mut long = v4(0x10);
        long[2..4].fill(0);
        assert_eq!(Segment::parse(&long, 180_052).unwrap().payload, 180_000);
        let mut v6 = vec![0; 40];
        v6[0] = 0x60;
        v6[4..6].copy_from_slice(&132_u16.to_be_bytes());
        v6[6] = 6;
        v6[23] = 1;
        v6[39] = 2;
        v6.extend(&v4(0x10)[20..]);
        let segment = Segment::parse(&v6, 172).unwrap();
        assert_eq!((segment.from, segment.payload), ("[::1]:4000".parse().unwrap(), 100));
    }

    #[test]
    fn headers_end_where_the_payload_begins() {
        let tcp = v4(0x18);
        let own = 20 + usize::from(tcp[20 + 12] >> 4) * 4;
        assert_eq!(headers(&tcp), own);
        assert_eq!(headers(&[tcp, vec![b'x'; 100]].concat()), own);
        assert_eq!(headers(&v6_udp([1, 2], 7, 0)), 40 + 8 + 8, "a first fragment");
        assert_eq!(headers(&v6_udp([1, 2], 7, 10)), 40 + 8, "a later one has payload only");
        assert_eq!((headers(&[]), headers(&[0x45; 5]), headers(b"payload that is no packet")), (0, 0, 0));
    }

    #[test]
    fn packets_and_their_fragments_are_distinguished() {
        let whole = v4(0x18);
        let ends = Ends { from: "10.0.0.1:4000".parse().unwrap(), to: "10.0.0.2:6280".parse().unwrap(), joins: false };
        assert_eq!(Piece::parse(&whole), Some(Piece::Whole(ends)));
        let (mut first, mut later) = (whole.clone(), whole);
        (first[6], later[7]) = (0x20, 185);
        let (Some(Piece::First(_, one)), Some(Piece::Later(other))) = (Piece::parse(&first), Piece::parse(&later))
        else {
            panic!("{:?} {:?}", Piece::parse(&first), Piece::parse(&later))
        };
        assert_eq!(one, other);
        assert!((0..24).all(|length| Piece::parse(&first[..length]).is_none()));
        assert!(matches!(Piece::parse(&v6_udp([1, 2], 7, 0)), Some(Piece::First(..))));
        // Options without an end or a length count as no known option.
        let mut odd = v4(2);
        odd.truncate(40);
        odd[32] = 15 << 4;
        for options in [[5, 0, 0, 0], [30, 0, 0, 0], [1, 1, 1, 30], [9, 255, 1, 1]] {
            let mut packet = odd.clone();
            packet.extend(options);
            assert!(matches!(Piece::parse(&packet), Some(Piece::Whole(Ends { joins: false, .. }))));
        }
    }

    #[test]
    fn whatever_is_cut_off_or_something_else_is_no_segment() {
        let whole = v4(0x10);
        assert!((0..34).all(|length| Segment::parse(&whole[..length], 152).is_none()));
        let mut fragment = whole.clone();
        fragment[7] = 1;
        assert_eq!(Segment::parse(&fragment, 152), None);
        let mut udp = whole;
        udp[9] = 17;
        assert_eq!(Segment::parse(&udp, 152), None);
    }
}

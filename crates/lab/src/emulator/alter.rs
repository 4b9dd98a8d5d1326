//! Changes that a path makes to a packet: a congestion mark, or a flipped bit.

use super::checksum;
use super::packet::{NEEDS_CHECKSUM, VIRTIO, native, put};

/// Both bits of the ECN field: congestion experienced (RFC 3168, section 5).
const CE: u8 = 3;
/// Offset of the field in the second byte of an IPv6 header.
const V6_SHIFT: u32 = 4;
/// Offset of the checksum in a UDP header, where 0 means none (RFC 768).
const UDP_FIELD: usize = 6;

/// Version and length of the IP header of a packet behind its virtio header; `None` for anything but IPv4 and IPv6.
fn header(packet: &[u8]) -> Option<(u8, usize)> {
    let ip = packet.get(VIRTIO..)?;
    let (version, length) = match *ip.first()? >> 4 {
        4 => (4, usize::from(ip[0] & 15) * 4),
        6 => (6, 40),
        _ => return None,
    };
    let least = if version == 4 { 20 } else { 40 };
    (length >= least && ip.len() >= length).then_some((version, length))
}

/// Whether the packet may be marked instead of dropped (ECT, RFC 3168), or is marked already.
pub(crate) fn may_be_marked(packet: &[u8]) -> bool {
    match header(packet) {
        Some((4, _)) => packet[VIRTIO + 1] & CE != 0,
        Some(_) => (packet[VIRTIO + 1] >> V6_SHIFT) & CE != 0,
        None => false,
    }
}

/// Marks a packet.
pub(crate) fn mark(packet: &mut [u8]) {
    let Some((version, length)) = header(packet) else { return };
    if version == 6 {
        packet[VIRTIO + 1] |= CE << V6_SHIFT;
        return;
    }
    let ip = &mut packet[VIRTIO..];
    ip[1] |= CE;
    put(ip, 10, 0);
    let sum = !checksum::add(0, &ip[..length]);
    put(ip, 10, sum as usize);
}

/// Flips a bit of the IP payload of a single packet, chosen by `draw`. A checksum that the sending host left to its
/// device is completed first, so that the receiving host finds it wrong, as on a wire.
pub(crate) fn flip(packet: &mut [u8], draw: u64) {
    let mut start = header(packet).map_or(VIRTIO, |(_, length)| VIRTIO + length);
    if packet.len() > VIRTIO && packet[0] & NEEDS_CHECKSUM != 0 {
        let transport = VIRTIO + usize::from(native(packet, 6));
        let field = usize::from(native(packet, 8));
        if transport + field + 2 <= packet.len() {
            let sum = !(checksum::add(0, &packet[transport..]) as u16);
            let sum = if sum == 0 && field == UDP_FIELD { u16::MAX } else { sum };
            put(packet, transport + field, usize::from(sum));
            start = transport;
        }
        packet[0] &= !NEEDS_CHECKSUM;
    }
    if start >= packet.len() {
        start = VIRTIO.min(packet.len());
    }
    let bits = (packet.len() - start) as u64 * 8;
    if bits > 0 {
        let bit = draw % bits;
        packet[start + (bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{build, single};
    use super::*;
    use proptest::prelude::*;

    /// The sum of the transport's bytes and its pseudo-header, which is all ones where the checksum is right.
    fn sum(packet: &[u8], udp: bool, v6: bool) -> u32 {
        let ip = &packet[VIRTIO..];
        let (addresses, length) = if v6 { (&ip[8..40], 40) } else { (&ip[12..20], 20) };
        let pseudo = checksum::pseudo_header(addresses, if udp { 17 } else { 6 }, ip.len() - length);
        checksum::add(u32::from(pseudo), &ip[length..])
    }

    proptest! {
        /// The flipped bit is the only error of the packet, and its checksum shows it.
        #[test]
        fn a_flipped_bit_breaks_the_checksum(udp: bool, v6: bool, length in 1_usize..9_000, draw: u64) {
            let mut packet = single(&build(udp, v6, 9_000, length));
            flip(&mut packet, draw);
            prop_assert_eq!(packet[0] & NEEDS_CHECKSUM, 0);
            prop_assert_ne!(sum(&packet, udp, v6), 0xffff);
            // The same draw again, now with a complete checksum, restores the packet.
            flip(&mut packet, draw);
            prop_assert_eq!(sum(&packet, udp, v6), 0xffff);
        }

        /// A mark changes the ECN field and the header checksum that covers it, and nothing else.
        #[test]
        fn a_mark_is_a_valid_header(udp: bool, v6: bool, ect in 1_u8..=3, length in 1_usize..3_000) {
            let mut packet = single(&build(udp, v6, 9_000, length));
            prop_assert!(!may_be_marked(&packet));
            packet[VIRTIO + 1] |= if v6 { ect << V6_SHIFT } else { ect };
            prop_assert!(may_be_marked(&packet));
            let before = packet.clone();
            mark(&mut packet);
            let field = if v6 { packet[VIRTIO + 1] >> V6_SHIFT } else { packet[VIRTIO + 1] } & CE;
            prop_assert_eq!(field, CE);
            if !v6 {
                prop_assert_eq!(checksum::add(0, &packet[VIRTIO..VIRTIO + 20]), 0xffff);
            }
            let differ = packet.iter().zip(&before).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at);
            prop_assert!(differ.into_iter().all(|at| [1, 10, 11].contains(&(at - VIRTIO))));
        }

        /// A packet that is not IP is neither marked nor stops the emulator.
        #[test]
        fn nonsense_is_left_unchanged(mut bytes in prop::collection::vec(any::<u8>(), 0..80), draw: u64) {
            let length = bytes.len();
            let _ = may_be_marked(&bytes);
            mark(&mut bytes);
            flip(&mut bytes, draw);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}

//! Packets of a TUN device with virtio headers: one IP packet, or many segments that share one header.
//!
//! The header is `struct virtio_net_hdr` (VIRTIO 1.2, section 5.1.6): flags, type of segmentation, length of the
//! headers, segment size, start and offset of the checksum, in the machine's byte order. With TSO or USO the stack
//! leaves the segmentation to the device. The emulator does not split into single packets; a run of neighbouring
//! segments becomes a smaller packet of the same kind, which the receiving stack splits or takes as a whole.

use std::ops::Range;

use super::checksum;

/// Bytes of the virtio header before each packet.
pub(crate) const VIRTIO: usize = 10;
/// The largest packet with its header: 64 KiB of IP, and room for odd headers.
pub(crate) const LARGEST: usize = VIRTIO + 65_536 + 256;
/// Maximum segments of one packet; a payload of 64 KiB in segments of 512 bytes has 128.
const MAX_SEGMENTS: usize = 4_096;

const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;
/// Flag of a packet whose checksum the device completes.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;

const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The kind of a packet's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tcp,
    Udp,
}

/// The structure of a packet. Offsets count from the start of the virtio header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The packet's segments share a header and have this kind; `None` is one packet, left as it is.
    kind: Option<Kind>,
    transport: usize,
    payload: usize,
    /// Payload bytes of each segment but the last.
    segment: usize,
    /// Payload bytes in all.
    total: usize,
    length: usize,
}

impl Layout {
    /// Reads a packet. An unknown one counts as a single segment, which is passed on unchanged.
    pub(crate) fn of(packet: &[u8]) -> Self {
        Self::segmented(packet).unwrap_or(Self {
            kind: None,
            transport: packet.len(),
            payload: packet.len(),
            segment: 0,
            total: 0,
            length: packet.len(),
        })
    }

    fn segmented(packet: &[u8]) -> Option<Self> {
        let header = packet.get(..VIRTIO)?;
        let segment = usize::from(native(header, 4));
        let (kind, header_of_ip) = match header[1] & !GSO_ECN {
            GSO_TCP_V4 => (Kind::Tcp, 20),
            GSO_TCP_V6 => (Kind::Tcp, 40),
            GSO_UDP => (Kind::Udp, if packet.get(VIRTIO)? >> 4 == 4 { 20 } else { 40 }),
            _ => return None,
        };
        // Without a pending checksum the start of the transport header is unknown; a stack always leaves one.
        if header[0] & NEEDS_CHECKSUM == 0 || segment == 0 {
            return None;
        }
        let transport = VIRTIO + usize::from(native(header, 6));
        let own = match kind {
            Kind::Tcp => usize::from(packet.get(transport + 12)? >> 4) * 4,
            Kind::Udp => 8,
        };
        let smallest = if kind == Kind::Tcp { 20 } else { 8 };
        let payload = transport + own;
        let sound = transport >= VIRTIO + header_of_ip && own >= smallest && payload < packet.len();
        let total = packet.len().checked_sub(payload)?;
        (sound && total.div_ceil(segment) <= MAX_SEGMENTS).then_some(Self {
            kind: Some(kind),
            transport,
            payload,
            segment,
            total,
            length: packet.len(),
        })
    }

    /// The number of packets on a wire.
    pub(crate) fn segments(&self) -> usize {
        if self.kind.is_none() { 1 } else { self.total.div_ceil(self.segment) }
    }

    /// Length in bytes of the IP packet that carries a segment.
    pub(crate) fn ip_bytes(&self, segment: usize) -> usize {
        match self.kind {
            None => self.length.saturating_sub(VIRTIO),
            Some(_) => self.payload - VIRTIO + self.part(&(segment..segment + 1)).len(),
        }
    }

    /// Position of some segments' payload within the whole payload.
    fn part(&self, run: &Range<usize>) -> Range<usize> {
        run.start * self.segment..(run.end * self.segment).min(self.total)
    }

    /// Makes a packet of the segments `run` of `source` at the start of `target` and returns its length in bytes.
    ///
    /// The fields that depend on the position in the sequence are set: IP length, identification and header checksum;
    /// TCP's sequence number, and its FIN and PSH, which belong to the last segment, and CWR, which belongs to the
    /// first; UDP's length; and the pseudo-header's sum, on which the receiver's checksum builds.
    pub(crate) fn write_run(&self, source: &[u8], run: &Range<usize>, target: &mut [u8]) -> usize {
        let Some(kind) = self.kind else {
            target[..source.len()].copy_from_slice(source);
            return source.len();
        };
        let part = self.part(run);
        let length = self.payload + part.len();
        let packet = &mut target[..length];
        packet[..self.payload].copy_from_slice(&source[..self.payload]);
        packet[self.payload..].copy_from_slice(&source[self.payload..][part.clone()]);
        // A forwarding host gives the whole packet as header length, because it has it in one piece; a run is shorter.
        packet[2..4].copy_from_slice(&((self.payload - VIRTIO) as u16).to_ne_bytes());
        if run.len() == 1 {
            packet[1] = 0;
            packet[4..6].fill(0);
        }
        let transport = &mut packet[self.transport..];
        match kind {
            Kind::Tcp => {
                let start = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                transport[4..8].copy_from_slice(&start.wrapping_add(part.start as u32).to_be_bytes());
                if run.end < self.segments() {
                    transport[13] &= !FIN_AND_PSH;
                }
                if run.start > 0 {
                    transport[13] &= !CWR;
                }
            }
            Kind::Udp => put(transport, 4, transport.len()),
        }
        let addresses = self.fix_ip(packet, run.start);
        let (protocol, field) = if kind == Kind::Tcp { (6, 16) } else { (17, 6) };
        let sum = checksum::pseudo_header(&packet[addresses], protocol, length - self.transport);
        put(packet, self.transport + field, usize::from(sum));
        length
    }

    /// Sets the fields of the IP header for a run that starts at a segment; returns where the addresses are.
    fn fix_ip(&self, packet: &mut [u8], first: usize) -> Range<usize> {
        let length = packet.len();
        let ip = &mut packet[VIRTIO..];
        if ip[0] >> 4 == 6 {
            put(ip, 4, length - VIRTIO - 40);
            return VIRTIO + 8..VIRTIO + 40;
        }
        let identification = usize::from(u16::from_be_bytes([ip[4], ip[5]])) + first;
        put(ip, 2, length - VIRTIO);
        put(ip, 4, identification);
        put(ip, 10, 0);
        let sum = !checksum::add(0, &ip[..self.transport - VIRTIO]);
        put(ip, 10, sum as usize);
        VIRTIO + 12..VIRTIO + 20
    }
}

/// A field of the virtio header, in the machine's byte order.
pub(crate) fn native(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

/// Writes the low 16 bits of a value in network byte order.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet as a stack passes it on, with a payload of counting bytes.
    pub(in crate::emulator) fn build(udp: bool, v6: bool, segment: usize, total: usize) -> Vec<u8> {
        let ip = if v6 { 40 } else { 20 };
        let own = if udp { 8 } else { 32 };
        let mut packet = vec![0; VIRTIO + ip + own];
        packet[0] = NEEDS_CHECKSUM;
        packet[1] = if udp {
            GSO_UDP
        } else if v6 {
            GSO_TCP_V6
        } else {
            GSO_TCP_V4
        };
        packet[2..4].copy_from_slice(&((ip + own) as u16).to_ne_bytes());
        packet[4..6].copy_from_slice(&(segment as u16).to_ne_bytes());
        packet[6..8].copy_from_slice(&(ip as u16).to_ne_bytes());
        packet[8..10].copy_from_slice(&(if udp { 6_u16 } else { 16 }).to_ne_bytes());
        let header = &mut packet[VIRTIO..];
        if v6 {
            header[0] = 0x60;
            put(header, 4, own + total);
            header[6] = if udp { 17 } else { 6 };
            (8..40).for_each(|at| header[at] = at as u8);
        } else {
            header[0] = 0x45;
            put(header, 2, ip + own + total);
            put(header, 4, 0xfffe);
            header[9] = if udp { 17 } else { 6 };
            (12..20).for_each(|at| header[at] = 200 + at as u8);
        }
        let transport = &mut header[ip..];
        if udp {
            put(transport, 4, own + total);
        } else {
            transport[4..8].copy_from_slice(&0xffff_f000_u32.to_be_bytes());
            transport[12] = 0x80;
            transport[13] = 0x10 | FIN_AND_PSH | CWR;
        }
        packet.extend((0..total).map(|at| (at % 251) as u8));
        packet
    }

    /// The first segment of a packet as a packet of its own.
    pub(in crate::emulator) fn single(packet: &[u8]) -> Vec<u8> {
        let mut target = vec![0; LARGEST];
        let length = Layout::of(packet).write_run(packet, &(0..1), &mut target);
        target.truncate(length);
        target
    }

    fn word(bytes: &[u8], at: usize) -> usize {
        usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
    }

    #[test]
    fn plain_packets_and_nonsense_are_one_segment() {
        let mut plain = build(false, false, 1_000, 500);
        plain[1] = 0;
        let layout = Layout::of(&plain);
        assert_eq!((layout.segments(), layout.ip_bytes(0)), (1, plain.len() - VIRTIO));
        for cut in 0..VIRTIO + 60 {
            let packet = &build(true, true, 9, 80)[..cut];
            let layout = Layout::of(packet);
            let mut copy = vec![0; cut];
            if layout.kind.is_none() {
                assert_eq!(layout.write_run(packet, &(0..1), &mut copy), cut);
                assert_eq!(copy, packet);
            }
        }
    }

    #[test]
    fn flags_stay_with_the_segments_that_they_belong_to() {
        let packet = build(false, false, 100, 250);
        let layout = Layout::of(&packet);
        let flags = |run| {
            let mut target = vec![0; LARGEST];
            layout.write_run(&packet, &run, &mut target);
            target[VIRTIO + 20 + 13] & (FIN_AND_PSH | CWR)
        };
        assert_eq!([flags(0..1), flags(1..2), flags(2..3), flags(0..3)], [CWR, 0, FIN_AND_PSH, CWR | FIN_AND_PSH]);
    }

    #[test]
    fn a_run_of_a_forwarded_packet_has_the_right_header_length() {
        let mut packet = build(false, false, 100, 250);
        let whole = (packet.len() - VIRTIO) as u16;
        packet[2..4].copy_from_slice(&whole.to_ne_bytes());
        assert_eq!(single(&packet)[2..4], (20_u16 + 32).to_ne_bytes());
    }

    proptest! {
        /// With any split, the runs together carry every byte once and in order, and each is a consistent packet.
        #[test]
        fn runs_are_whole_packets(udp: bool, v6: bool, segment in 1_usize..9_000, total in 1_usize..65_000, cut in 0.0..1.0_f64) {
            prop_assume!(total.div_ceil(segment) <= MAX_SEGMENTS);
            let packet = build(udp, v6, segment, total);
            let layout = Layout::of(&packet);
            prop_assert_eq!(layout.segments(), total.div_ceil(segment));
            let cut = (layout.segments() as f64 * cut) as usize;
            let ip = if v6 { 40 } else { 20 };
            let own = if udp { 8 } else { 32 };
            let mut payload = Vec::new();
            for run in [0..cut, cut..layout.segments()].into_iter().filter(|run| !run.is_empty()) {
                let mut target = vec![0xaa; LARGEST];
                let length = layout.write_run(&packet, &run, &mut target);
                let made = &target[..length];
                let body = length - VIRTIO - ip - own;
                // The lengths of the run's segments, each in a packet of its own, are headers and this payload.
                let sizes: usize = run.clone().map(|segment| layout.ip_bytes(segment)).sum();
                prop_assert_eq!(sizes, run.len() * (ip + own) + body);
                let head = &made[VIRTIO..];
                let addresses = if v6 { &head[8..40] } else { &head[12..20] };
                if v6 {
                    prop_assert_eq!(word(head, 4), own + body);
                } else {
                    prop_assert_eq!(word(head, 2), ip + own + body);
                    prop_assert_eq!(word(head, 4), (0xfffe + run.start) & 0xffff);
                    prop_assert_eq!(checksum::add(0, &head[..20]), 0xffff);
                }
                let transport = &head[ip..];
                if udp {
                    prop_assert_eq!(word(transport, 4), own + body);
                } else {
                    let number = u32::from_be_bytes(transport[4..8].try_into().unwrap());
                    prop_assert_eq!(number, 0xffff_f000_u32.wrapping_add((run.start * segment) as u32));
                }
                let mut pseudo = addresses.to_vec();
                pseudo.extend([0, if udp { 17 } else { 6 }]);
                pseudo.extend(((own + body) as u32).to_be_bytes());
                prop_assert_eq!(word(transport, if udp { 6 } else { 16 }) as u32, checksum::add(0, &pseudo));
                prop_assert_eq!(made[1] == 0, run.len() == 1);
                payload.extend_from_slice(&transport[own..]);
            }
            prop_assert_eq!(&payload, &packet[VIRTIO + ip + own..]);
        }
    }
}

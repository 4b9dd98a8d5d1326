//! The share of a line's rate that headers and framing leave for payload.
//!
//! Sizes: Ethernet's preamble and start delimiter 8, header 14, check sequence 4 and gap of 12 bytes, and a minimum payload of 46
//! (IEEE 802.3); IPv4 20 without options (RFC 791), IPv6 40 and its fragment header 8 (RFC 8200), UDP 8 (RFC 768), TCP 20 (RFC
//! 9293) and its timestamps 12 with padding (RFC 7323, appendix A).

/// Bytes of a frame on the line besides its packet.
pub(crate) const ETHERNET: u64 = 38;
/// Shortest packet that needs no padding, bytes.
const MIN_PACKET: u64 = 46;
const UDP: u64 = 8;
const TCP: u64 = 20;
/// The timestamps option, padded to whole words.
const TIMESTAMPS: u64 = 12;
/// TLS 1.3 record: maximum payload, and header, content type and tag around it (RFC 8446, 5.2). Older versions take more.
const TLS_RECORD: u64 = 16_384;
const TLS_OVERHEAD: u64 = 22;
/// Smallest overhead of QUIC per datagram: a short header of one byte with a packet number of one (RFC 9000, 17.3.1), a frame header
/// of two (19.8) and the tag of 16 (RFC 9001, 5.3). Connection identifiers and offsets are extra.
const QUIC_OVERHEAD: u64 = 20;

/// The network layer under a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    /// Largest packet, bytes.
    pub(crate) mtu: u64,
    /// IPv6 rather than IPv4.
    pub(crate) ipv6: bool,
}

impl Network {
    fn header(self) -> u64 {
        if self.ipv6 { 40 } else { 20 }
    }

    /// Largest TCP payload per packet.
    pub(crate) fn mss(self, timestamps: bool) -> u64 {
        self.mtu.saturating_sub(self.header() + TCP + if timestamps { TIMESTAMPS } else { 0 })
    }

    /// The share of a line's rate left for payload by full TCP segments of `mss` payload bytes.
    pub(crate) fn tcp_share(self, mss: u64, timestamps: bool) -> f64 {
        let overhead = self.header() + TCP + if timestamps { TIMESTAMPS } else { 0 };
        mss as f64 / on_line(mss + overhead) as f64
    }

    /// The share left by datagrams of `block` payload bytes; those that do not fit into a packet are fragmented.
    pub(crate) fn udp_share(self, block: u64) -> f64 {
        let datagram = block + UDP;
        if datagram + self.header() <= self.mtu {
            return block as f64 / on_line(datagram + self.header()) as f64;
        }
        let header = self.header() + if self.ipv6 { 8 } else { 0 };
        // All fragments but the last carry a multiple of eight bytes.
        let each = (self.mtu.saturating_sub(header) / 8 * 8).max(8);
        let (whole, rest) = (datagram / each, datagram % each);
        let last = if rest > 0 { on_line(rest + header) } else { 0 };
        block as f64 / (whole * on_line(each + header) + last) as f64
    }

    /// The largest share that QUIC leaves.
    pub(crate) fn quic_share(self) -> f64 {
        let payload = self.mtu.saturating_sub(self.header() + UDP + QUIC_OVERHEAD);
        payload as f64 / on_line(self.mtu) as f64
    }
}

/// The share of a TCP stream that TLS leaves for payload, with blocks of `block` bytes.
pub(crate) fn tls_share(block: u64) -> f64 {
    let record = block.clamp(1, TLS_RECORD);
    record as f64 / (record + TLS_OVERHEAD) as f64
}

/// Bytes of a packet on the line.
fn on_line(packet: u64) -> u64 {
    packet.max(MIN_PACKET) + ETHERNET
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: Network = Network { mtu: 1_500, ipv6: false };
    const V6: Network = Network { mtu: 1_500, ipv6: true };

    /// Payload in Mbit/s of a line of 1 Gbit/s, to two digits.
    fn of_gigabit(share: f64) -> f64 {
        (share * 1e5).round() / 100.0
    }

    #[test]
    fn a_gigabit_line_has_the_known_payload_rates() {
        let jumbo = Network { mtu: 9_000, ipv6: false };
        assert_eq!((V4.mss(true), V4.mss(false), V6.mss(true), jumbo.mss(true)), (1448, 1460, 1428, 8948));
        assert_eq!(of_gigabit(V4.tcp_share(1448, true)), 941.48);
        assert_eq!(of_gigabit(V4.tcp_share(1460, false)), 949.28);
        assert_eq!(of_gigabit(V6.tcp_share(1428, true)), 928.48);
        assert_eq!(of_gigabit(jumbo.tcp_share(8948, true)), 990.04);
        assert_eq!(of_gigabit(V4.udp_share(1472)), 957.09);
        assert_eq!(of_gigabit(V6.udp_share(1452)), 944.08);
    }

    #[test]
    fn short_packets_are_padded_and_long_datagrams_are_fragmented() {
        // 1,488,095 frames of 84 bytes are a gigabit: the well-known maximum packet rate.
        assert_eq!((V4.udp_share(18) * 1e9 / (18.0 * 8.0)).round(), 1_488_095.0);
        assert_eq!(V4.udp_share(1), 1.0 / 84.0);
        // 1,473 bytes of payload are 1,480 in a first fragment and 1 in a padded second one.
        assert_eq!(V4.udp_share(1473), 1473.0 / (1538.0 + 84.0));
        // 8 KiB: five whole fragments and a last one of 800 bytes.
        assert_eq!(V4.udp_share(8192), 8192.0 / (5.0 * 1538.0 + 858.0));
        // IPv6 puts its fragment header into each.
        assert_eq!(V6.udp_share(1453), 1453.0 / ((1448.0 + 48.0 + 38.0) + (13.0 + 48.0 + 38.0)));
    }

    #[test]
    fn encryption_has_an_overhead() {
        assert_eq!(tls_share(1 << 20), 16_384.0 / 16_406.0);
        assert_eq!(tls_share(100), 100.0 / 122.0);
        assert_eq!(V4.quic_share(), 1452.0 / 1538.0);
    }

    proptest! {
        #[test]
        fn shares_are_between_zero_and_one(mtu in 576u64..65_536, ipv6: bool, block in 1u64..65_507, timestamps: bool) {
            let network = Network { mtu, ipv6 };
            let mss = network.mss(timestamps);
            for share in [network.tcp_share(mss, timestamps), network.udp_share(block), network.quic_share(), tls_share(block)] {
                prop_assert!(share > 0.0 && share < 1.0, "{}", share);
            }
        }
    }
}

//! Entry points for coverage-guided tests of what a capture reads, as root, of any packet that passes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::own::{Own, Sorter};
use super::packet::{Segment, headers};
use super::sequence::Connections;
use super::sys::packets_of;

/// The endpoint of the trial that packets are sorted for.
const PORT: u16 = 6_280;

/// Packets from their network headers on, each after a byte with its length. They are sorted, and their time sequence is kept.
///
/// # Panics
/// If a list exceeds its bound.
pub fn packets(bytes: &[u8]) {
    let v4: SocketAddr = (Ipv4Addr::new(10, 0, 0, 1), PORT).into();
    let v6: SocketAddr = (Ipv6Addr::LOCALHOST, PORT).into();
    let peer = (Ipv4Addr::new(10, 0, 0, 2), 4_000).into();
    let own = Own { connections: [[v4, peer]].into(), endpoints: [v6].into(), multipath: true };
    let (mut sorter, mut connections) = (Sorter::new(&own), Connections::default());
    let (mut rest, mut at) = (bytes, Duration::ZERO);
    while let Some((length, after)) = rest.split_first() {
        let (packet, next) = after.split_at(after.len().min(usize::from(*length)));
        rest = next;
        at += Duration::from_micros(u64::from(*length));
        let _ = (sorter.has(packet), headers(packet));
        if let Some(segment) = Segment::parse(packet, packet.len() as u32) {
            connections.see(at, &segment);
        }
    }
    if let Some(longest) = connections.longest() {
        let points = longest.data.len() + longest.acks.len() + longest.retransmitted_at.len();
        assert!(points <= model::TimeSequence::POINTS, "{points} points");
    }
}

/// A block of the ring, as the kernel fills it.
///
/// # Panics
/// If its packets do not lie within it, or are more than it has room for.
pub fn block(bytes: &[u8]) {
    let mut count = 0;
    packets_of(bytes, &mut |frame| {
        assert!(frame.data.len() <= bytes.len(), "a packet lies within its block");
        let _ = frame.data.get(frame.network..).map(headers);
        count += 1;
    });
    assert!(count <= bytes.len(), "{count} packets in {} bytes", bytes.len());
}

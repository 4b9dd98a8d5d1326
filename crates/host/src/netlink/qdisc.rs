//! Queueing disciplines in routing netlink (rtnetlink(7), linux/rtnetlink.h, linux/gen_stats.h).

use super::{Attributes, NetlinkFamily, NetlinkRequest, u32_at};

/// A queueing discipline with its counters. The kernel's packet counters have 32 bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Qdisc {
    /// The interface.
    pub interface: String,
    /// Kind, such as `tbf`.
    pub kind: String,
    /// Its parent: `root`, `ingress`, or a class such as `1:10`.
    pub parent: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Times that the rate limit delayed a packet.
    pub overlimits: u32,
    /// Packets that the driver returned.
    pub requeues: u32,
    /// Bytes in the queue.
    pub backlog: u32,
    /// Packets in the queue.
    pub qlen: u32,
}

/// RTM_GETQDISC.
const GET: u16 = 38;
/// Size of `struct tcmsg`; offsets of the interface's number and the parent.
const HEADER: usize = 20;
const INDEX: usize = 4;
const PARENT: usize = 12;

const KIND: u16 = 1;
const STATISTICS: u16 = 7;
/// `struct gnet_stats_basic`: bytes (64 bits), packets.
const BASIC: u16 = 1;
/// `struct gnet_stats_queue`: length, backlog, drops, requeues, overlimits.
const QUEUE: u16 = 3;

/// Parents of a device's own discipline and of the hooks at its ingress.
const ROOT_PARENT: u32 = 0xffff_ffff;
const INGRESS_PARENT: u32 = 0xffff_fff1;
/// Their names.
pub(crate) const ROOT: &str = "root";
pub(crate) const INGRESS: &str = "ingress";

/// The request for all disciplines of all interfaces.
pub(crate) fn request() -> NetlinkRequest {
    NetlinkRequest { name: "qdisc".into(), family: NetlinkFamily::Route, kind: GET, dump: true, body: vec![0; HEADER] }
}

/// The content of one message; `None` for an interface that `name` does not know (any more).
pub(crate) fn read(message: &[u8], name: impl FnOnce(u32) -> Option<String>) -> Option<Qdisc> {
    let parent = match u32_at(message, PARENT)? {
        ROOT_PARENT => ROOT.to_owned(),
        INGRESS_PARENT => INGRESS.to_owned(),
        class => format!("{:x}:{:x}", class >> 16, class & 0xffff),
    };
    let attributes = Attributes::after(message, HEADER);
    let kind = attributes.text(KIND)?;
    let interface = name(u32_at(message, INDEX)?)?;
    let mut found = Qdisc { interface, kind, parent, ..Qdisc::default() };
    let statistics = attributes.nested(STATISTICS);
    if let Some((bytes, rest)) = statistics.and_then(|of| of.get(BASIC)).and_then(<[u8]>::split_first_chunk) {
        (found.bytes, found.packets) = (u64::from_ne_bytes(*bytes), u32_at(rest, 0)?);
    }
    if let Some(queue) = statistics.and_then(|of| of.get(QUEUE)) {
        let field = |number: usize| u32_at(queue, 4 * number);
        (found.qlen, found.backlog, found.drops) = (field(0)?, field(1)?, field(2)?);
        (found.requeues, found.overlimits) = (field(3)?, field(4)?);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{put, put_nested};

    fn message(parent: u32) -> Vec<u8> {
        let mut message = vec![0; HEADER];
        message[INDEX..INDEX + 4].copy_from_slice(&7_u32.to_ne_bytes());
        message[PARENT..PARENT + 4].copy_from_slice(&parent.to_ne_bytes());
        put(&mut message, KIND, b"tbf\0");
        let mut statistics = Vec::new();
        let basic = [&1_000_000_000_001_u64.to_ne_bytes()[..], &9_u32.to_ne_bytes(), &[0; 4]].concat();
        put(&mut statistics, BASIC, &basic);
        let queue: Vec<u8> = [1_u32, 2, 3, 4, 5].iter().flat_map(|field| field.to_ne_bytes()).collect();
        put(&mut statistics, QUEUE, &queue);
        put_nested(&mut message, STATISTICS, &statistics);
        message
    }

    fn eth7(index: u32) -> Option<String> {
        Some(format!("eth{index}"))
    }

    #[test]
    fn a_discipline_is_read_with_its_counters() {
        let expected = Qdisc {
            interface: "eth7".into(),
            kind: "tbf".into(),
            parent: "1:1f".into(),
            bytes: 1_000_000_000_001,
            packets: 9,
            qlen: 1,
            backlog: 2,
            drops: 3,
            requeues: 4,
            overlimits: 5,
        };
        assert_eq!(read(&message(0x1_001f), eth7), Some(expected));
        let parent = |parent| read(&message(parent), eth7).map(|found| found.parent);
        assert_eq!(parent(ROOT_PARENT).as_deref(), Some("root"));
        assert_eq!(parent(INGRESS_PARENT).as_deref(), Some("ingress"));
        assert_eq!(read(&message(ROOT_PARENT), |_| None), None);
    }

    #[test]
    fn a_truncated_message_yields_less_or_nothing() {
        let whole = message(ROOT_PARENT);
        for cut in 0..whole.len() {
            if let Some(part) = read(&whole[..cut], eth7) {
                assert_eq!((part.kind.as_str(), part.bytes), ("tbf", 0), "{cut}");
            }
        }
    }
}

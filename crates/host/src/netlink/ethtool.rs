//! Messages of ethtool's netlink family (linux/ethtool_netlink.h, Documentation/networking/ethtool-netlink.rst).

use super::{Attributes, put, put_nested};

/// Requests. The number of a request that sets something is one above that of the request that reads it.
pub(crate) const LINK_MODES: u16 = 4;
pub(crate) const FEATURES: u16 = 11;
pub(crate) const RINGS: u16 = 15;
pub(crate) const QUEUES: u16 = 17;
pub(crate) const COALESCING: u16 = 19;
pub(crate) const PAUSE: u16 = 21;
pub(crate) const TIME_STAMPS: u16 = 25;
pub(crate) const MODULE_EEPROM: u16 = 31;

/// Of every request and answer.
const HEADER: u16 = 1;
const HEADER_NAME: u16 = 2;

/// Sets of an answer about features.
pub(crate) const FEATURES_HARDWARE: u16 = 2;
pub(crate) const FEATURES_WANTED: u16 = 3;
pub(crate) const FEATURES_ACTIVE: u16 = 4;
pub(crate) const FEATURES_UNCHANGING: u16 = 5;

/// Parts of a set of bits, and of a bit.
const NO_MASK: u16 = 1;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// A number in a request: its name, its attribute, and the attribute of the device's maximum, if there is one.
pub(crate) type Count = (&'static str, u16, Option<u16>);

/// Descriptors of the rings (ethtool -g).
pub(crate) const RING_COUNTS: &[Count] = &[
    ("rx", 6, Some(2)),
    ("rx-mini", 7, Some(3)),
    ("rx-jumbo", 8, Some(4)),
    ("tx", 9, Some(5)),
    ("rx-buf-len", 10, None),
    ("cqe-size", 12, None),
];
/// Queues (ethtool -l).
pub(crate) const QUEUE_COUNTS: &[Count] =
    &[("rx", 6, Some(2)), ("tx", 7, Some(3)), ("other", 8, Some(4)), ("combined", 9, Some(5))];
/// Interrupt moderation (ethtool -c).
pub(crate) const COALESCING_COUNTS: &[Count] = &[
    ("rx-usecs", 2, None),
    ("rx-frames", 3, None),
    ("rx-usecs-irq", 4, None),
    ("rx-frames-irq", 5, None),
    ("tx-usecs", 6, None),
    ("tx-frames", 7, None),
    ("tx-usecs-irq", 8, None),
    ("tx-frames-irq", 9, None),
    ("stats-block-usecs", 10, None),
    ("adaptive-rx", 11, None),
    ("adaptive-tx", 12, None),
    ("pkt-rate-low", 13, None),
    ("rx-usecs-low", 14, None),
    ("rx-frames-low", 15, None),
    ("tx-usecs-low", 16, None),
    ("tx-frames-low", 17, None),
    ("pkt-rate-high", 18, None),
    ("rx-usecs-high", 19, None),
    ("rx-frames-high", 20, None),
    ("tx-usecs-high", 21, None),
    ("tx-frames-high", 22, None),
    ("sample-interval", 23, None),
    ("cqe-mode-tx", 24, None),
    ("cqe-mode-rx", 25, None),
];

/// The header of a request, for one interface or for all.
pub(crate) fn request(interface: Option<&str>) -> Vec<u8> {
    let mut header = Vec::new();
    if let Some(name) = interface {
        put(&mut header, HEADER_NAME, format!("{name}\0").as_bytes());
    }
    let mut body = Vec::new();
    put_nested(&mut body, HEADER, &header);
    body
}

/// The interface that an answer is about.
pub(crate) fn interface(answer: Attributes<'_>) -> Option<String> {
    answer.nested(HEADER)?.text(HEADER_NAME)
}

/// The bits of a set by name, and whether each is set. A set without a mask lists only those that are set.
pub(crate) fn bits(answer: Attributes<'_>, kind: u16) -> Vec<(String, bool)> {
    let Some(set) = answer.nested(kind) else { return Vec::new() };
    let all_set = set.get(NO_MASK).is_some();
    let bits = set.nested(BITS).into_iter().flatten().filter(|(kind, _)| *kind == BIT);
    bits.filter_map(|(_, bit)| {
        let bit = Attributes(bit);
        Some((bit.text(BIT_NAME)?, all_set || bit.get(BIT_VALUE).is_some()))
    })
    .collect()
}

/// Appends a set of the bits named, each to be set or not, as attribute `kind`.
pub(crate) fn put_bits(message: &mut Vec<u8>, kind: u16, bits: &[(String, bool)]) {
    let mut list = Vec::new();
    for (name, on) in bits {
        let mut bit = Vec::new();
        put(&mut bit, BIT_NAME, format!("{name}\0").as_bytes());
        if *on {
            put(&mut bit, BIT_VALUE, &[]);
        }
        put_nested(&mut list, BIT, &bit);
    }
    let mut set = Vec::new();
    put_nested(&mut set, BITS, &list);
    put_nested(message, kind, &set);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_a_mask_names_the_set_bits() {
        let mut bit = Vec::new();
        put(&mut bit, BIT_NAME, b"rx-gro\0");
        let mut list = Vec::new();
        put_nested(&mut list, BIT, &bit);
        let mut plain = Vec::new();
        put(&mut plain, NO_MASK, &[]);
        put_nested(&mut plain, BITS, &list);
        let read = |set: &[u8]| {
            let mut answer = Vec::new();
            put_nested(&mut answer, FEATURES_ACTIVE, set);
            bits(Attributes(&answer), FEATURES_ACTIVE)
        };
        assert_eq!(read(&plain), [("rx-gro".to_owned(), true)]);
        let mut masked = Vec::new();
        put_nested(&mut masked, BITS, &list);
        assert_eq!(read(&masked), [("rx-gro".to_owned(), false)]);
    }

    #[test]
    fn bits_are_read_as_they_were_written() {
        let wanted = [("tx-tcp-segmentation".to_owned(), true), ("rx-gro".to_owned(), false)];
        let mut body = request(Some("eth0"));
        put_bits(&mut body, FEATURES_WANTED, &wanted);
        assert_eq!(bits(Attributes(&body), FEATURES_WANTED), wanted);
        assert_eq!(interface(Attributes(&body)).as_deref(), Some("eth0"));
    }
}

//! Entry points for coverage-guided tests: what decodes packets and the kernel's answers, for bytes of any kind. Only for `fuzz/`.

use std::collections::BTreeMap;

pub use crate::capture::fuzzing::{block, packets};

use crate::netlink::frame::{Message, Messages};
use crate::netlink::{Attributes, ethtool, link, put, qdisc};

/// Deepest attribute that is looked into.
const DEPTH: u32 = 8;

/// A datagram of netlink: its messages, each read as an answer about links, disciplines and devices.
///
/// # Panics
/// If an attribute is not written as it was read.
pub fn netlink(bytes: &[u8]) {
    let sequence = crate::netlink::u32_at(bytes, 8).unwrap_or_default();
    for message in Messages::new(bytes, sequence) {
        let Message::Part(body) = message else { continue };
        let _ = (link::index(body), link::flags(body), link::name(body));
        let _ = qdisc::read(body, |index| (index < 99).then(|| index.to_string()));
        for skip in [0, 4, link::HEADER] {
            walk(Attributes::after(body, skip), 0);
        }
        let answer = Attributes::after(body, 4);
        let _ = ethtool::interface(answer);
        let bits: BTreeMap<_, _> = ethtool::bits(answer, ethtool::FEATURES_ACTIVE).into_iter().collect();
        let mut again = Vec::new();
        let bits: Vec<_> = bits.into_iter().filter(|(name, _)| name.len() < 64).take(64).collect();
        ethtool::put_bits(&mut again, ethtool::FEATURES_ACTIVE, &bits);
        assert_eq!(ethtool::bits(Attributes(&again), ethtool::FEATURES_ACTIVE), bits);
    }
}

fn walk(attributes: Attributes<'_>, depth: u32) {
    for (kind, value) in attributes {
        let _ = (attributes.number(kind), attributes.number32(kind), attributes.text(kind));
        let mut again = Vec::new();
        put(&mut again, kind, value);
        assert_eq!(Attributes(&again).get(kind), Some(value));
        if depth < DEPTH {
            walk(Attributes(value), depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    type Entry = fn(&[u8]);

    #[test]
    fn every_input_of_the_corpus_is_survived() {
        let entries: [(&str, Entry); 3] =
            [("netlink", super::netlink), ("packets", super::packets), ("ring_block", super::block)];
        for (target, entry) in entries {
            corpus::inputs(target).unwrap().iter().for_each(|input| entry(input));
        }
    }
}

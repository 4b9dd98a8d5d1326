//! What ethtool shows and sets, by its netlink family (linux/ethtool_netlink.h, Documentation/networking/ethtool-netlink).

use std::collections::BTreeMap;
use std::io;

use super::netlink::{Netlink, attribute, attributes, nest, number, put, text};

/// The controller of generic netlink and its request for a family by name (linux/genetlink.h).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`: command, version, two bytes of nothing.
const GENLMSGHDR: usize = 4;

const HEADER_DEV_NAME: u16 = 2;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// A group of numbers that one request reads and another sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Descriptors of the rings (ethtool -g).
    Ring,
    /// Interrupt moderation (ethtool -c).
    Coalesce,
    /// Queues (ethtool -l).
    Queues,
}

/// A number of a group: its name, attribute, and the attribute of its upper bound, or 0.
type Count = (&'static str, u16, u16);

const RINGS: [Count; 6] =
    [("rx", 6, 2), ("rx-mini", 7, 3), ("rx-jumbo", 8, 4), ("tx", 9, 5), ("rx-buf-len", 10, 0), ("cqe-size", 12, 0)];
const COALESCE: [Count; 24] = [
    ("rx-usecs", 2, 0),
    ("rx-frames", 3, 0),
    ("rx-usecs-irq", 4, 0),
    ("rx-frames-irq", 5, 0),
    ("tx-usecs", 6, 0),
    ("tx-frames", 7, 0),
    ("tx-usecs-irq", 8, 0),
    ("tx-frames-irq", 9, 0),
    ("stats-block-usecs", 10, 0),
    ("adaptive-rx", 11, 0),
    ("adaptive-tx", 12, 0),
    ("pkt-rate-low", 13, 0),
    ("rx-usecs-low", 14, 0),
    ("rx-frames-low", 15, 0),
    ("tx-usecs-low", 16, 0),
    ("tx-frames-low", 17, 0),
    ("pkt-rate-high", 18, 0),
    ("rx-usecs-high", 19, 0),
    ("rx-frames-high", 20, 0),
    ("tx-usecs-high", 21, 0),
    ("tx-frames-high", 22, 0),
    ("sample-interval", 23, 0),
    ("cqe-mode-tx", 24, 0),
    ("cqe-mode-rx", 25, 0),
];
const QUEUES: [Count; 4] = [("rx", 6, 2), ("tx", 7, 3), ("other", 8, 4), ("combined", 9, 5)];
/// Those that are one byte on the wire.
const SWITCHES: [&str; 4] = ["adaptive-rx", "adaptive-tx", "cqe-mode-tx", "cqe-mode-rx"];

impl Group {
    /// All, with the word that stands in keys.
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("ring", Self::Ring), ("coalesce", Self::Coalesce), ("queues", Self::Queues)];

    fn counts(self) -> &'static [Count] {
        match self {
            Self::Ring => &RINGS,
            Self::Coalesce => &COALESCE,
            Self::Queues => &QUEUES,
        }
    }

    /// The request that reads it; the one that sets it has the next number.
    fn get(self) -> u8 {
        match self {
            Self::Ring => 15,
            Self::Coalesce => 19,
            Self::Queues => 17,
        }
    }

    /// Whether there is such a number.
    pub(crate) fn has(self, name: &str) -> bool {
        self.counts().iter().any(|(known, ..)| *known == name)
    }

    /// Whether a number is a switch.
    pub(crate) fn is_switch(name: &str) -> bool {
        SWITCHES.contains(&name)
    }
}

/// A number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// What it is.
    pub now: u32,
    /// The most that the device takes, where it says so.
    pub most: Option<u32>,
}

/// A feature of a device (an offload), by the kernel's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Such as `tx-tcp-segmentation`.
    pub name: String,
    /// Whether it is in use.
    pub active: bool,
    /// Whether it was asked for: a feature that another one needs may be wanted and not active.
    pub wanted: bool,
    /// Whether it can be changed.
    pub changeable: bool,
}

/// The ethtool family, asked for one device.
struct Ethtool<'a> {
    netlink: Netlink,
    family: u16,
    device: &'a str,
}

impl<'a> Ethtool<'a> {
    fn open(device: &'a str) -> io::Result<Self> {
        let mut netlink = Netlink::open(Some(rustix::net::netlink::GENERIC))?;
        let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        put(&mut body, CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
        let answers = netlink.ask(GENL_ID_CTRL, 0, &body)?;
        let family = answers.first().and_then(|answer| attribute(answer.get(GENLMSGHDR..)?, CTRL_ATTR_FAMILY_ID));
        let family = family.and_then(number).and_then(|family| u16::try_from(family).ok());
        let family = family.ok_or_else(|| io::Error::other("this kernel has no ethtool netlink (Linux 5.6)"))?;
        Ok(Self { netlink, family, device })
    }

    /// Asks for the device; `more` follows the request's header. The first answer's attributes, if there is one.
    fn ask(&mut self, command: u8, more: &[u8]) -> io::Result<Vec<u8>> {
        let mut header = Vec::new();
        put(&mut header, HEADER_DEV_NAME, &[self.device.as_bytes(), &[0]].concat());
        let mut body = vec![command, 1, 0, 0];
        nest(&mut body, 1, &header);
        body.extend_from_slice(more);
        let answers = self.netlink.ask(self.family, 0, &body)?;
        Ok(answers.first().and_then(|answer| answer.get(GENLMSGHDR..)).unwrap_or_default().to_vec())
    }
}

/// The numbers of a group that a device has.
pub(crate) fn read(device: &str, group: Group) -> io::Result<BTreeMap<String, Value>> {
    let answer = Ethtool::open(device)?.ask(group.get(), &[])?;
    let value = |(name, kind, most): &Count| {
        let now = attribute(&answer, *kind).and_then(number)?;
        Some((
            (*name).to_owned(),
            Value { now, most: attribute(&answer, *most).filter(|_| *most > 0).and_then(number) },
        ))
    };
    Ok(group.counts().iter().filter_map(value).collect())
}

/// Sets one number of a group.
pub(crate) fn write(device: &str, group: Group, name: &str, value: u32) -> io::Result<()> {
    let count = group.counts().iter().find(|(known, ..)| *known == name);
    let (name, kind, _) = count.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    let mut body = Vec::new();
    if Group::is_switch(name) {
        put(&mut body, *kind, &[u8::from(value != 0)]);
    } else {
        put(&mut body, *kind, &value.to_ne_bytes());
    }
    Ethtool::open(device)?.ask(group.get() + 1, &body).map(|_| ())
}

/// The features that a device knows.
pub(crate) fn features(device: &str) -> io::Result<Vec<Feature>> {
    let answer = Ethtool::open(device)?.ask(FEATURES_GET, &[])?;
    let set = |kind| attribute(&answer, kind).map(bits).unwrap_or_default();
    let (wanted, active, fixed) = (set(FEATURES_WANTED), set(FEATURES_ACTIVE), set(FEATURES_NOCHANGE));
    let on = |set: &BTreeMap<String, bool>, name: &String| set.get(name).copied().unwrap_or(false);
    // The set of what the hardware can have comes with a mask: only its values count.
    let mut names: Vec<String> = [&wanted, &active].into_iter().flat_map(BTreeMap::keys).cloned().collect();
    let hardware = set(FEATURES_HW);
    names.extend(hardware.iter().filter(|(_, can)| **can).map(|(name, _)| name.clone()));
    names.sort_unstable();
    names.dedup();
    let feature = |name: String| Feature {
        active: on(&active, &name),
        wanted: on(&wanted, &name),
        changeable: on(&hardware, &name) && !on(&fixed, &name),
        name,
    };
    Ok(names.into_iter().map(feature).collect())
}

/// The named bits of a verbose bitset. A list without a mask (as of what is active) names only those that are set.
fn bits(set: &[u8]) -> BTreeMap<String, bool> {
    let masked = attribute(set, 1).is_none();
    let list = attribute(set, BITSET_BITS).unwrap_or_default();
    let bit = |(kind, bit): (u16, &[u8])| {
        let name = attribute(bit, BIT_NAME).filter(|_| kind == BITS_BIT).map(text)?;
        Some((name, !masked || attribute(bit, BIT_VALUE).is_some()))
    };
    attributes(list).into_iter().filter_map(bit).collect()
}

/// Asks for features to be on or off.
pub(crate) fn set_features(device: &str, wanted: &[(String, bool)]) -> io::Result<()> {
    let mut list = Vec::new();
    for (name, on) in wanted {
        let mut bit = Vec::new();
        put(&mut bit, BIT_NAME, &[name.as_bytes(), &[0]].concat());
        if *on {
            put(&mut bit, BIT_VALUE, &[]);
        }
        nest(&mut list, BITS_BIT, &bit);
    }
    let mut set = Vec::new();
    nest(&mut set, BITSET_BITS, &list);
    let mut body = Vec::new();
    nest(&mut body, FEATURES_WANTED, &set);
    Ethtool::open(device)?.ask(FEATURES_SET, &body).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_a_mask_names_what_is_set() {
        let mut bit = Vec::new();
        put(&mut bit, BIT_NAME, b"rx-gro\0");
        let mut list = Vec::new();
        nest(&mut list, BITS_BIT, &bit);
        let mut plain = Vec::new();
        put(&mut plain, 1, &[]);
        nest(&mut plain, BITSET_BITS, &list);
        assert_eq!(bits(&plain), BTreeMap::from([("rx-gro".into(), true)]));
        let mut masked = Vec::new();
        nest(&mut masked, BITSET_BITS, &list);
        assert_eq!(bits(&masked), BTreeMap::from([("rx-gro".into(), false)]));
    }
}

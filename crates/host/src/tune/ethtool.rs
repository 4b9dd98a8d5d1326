//! What ethtool reads and sets, by its netlink family.

use std::collections::BTreeMap;
use std::io;

use crate::netlink::ethtool::{self, COALESCING_COUNTS, Count, QUEUE_COUNTS, RING_COUNTS};
use crate::netlink::{Attributes, NetlinkFamily, put};
use crate::sys::netlink;

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

/// Those with one byte on the wire.
const SWITCHES: [&str; 4] = ["adaptive-rx", "adaptive-tx", "cqe-mode-tx", "cqe-mode-rx"];

impl Group {
    /// All, with their word in keys.
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("ring", Self::Ring), ("coalesce", Self::Coalesce), ("queues", Self::Queues)];

    fn counts(self) -> &'static [Count] {
        match self {
            Self::Ring => RING_COUNTS,
            Self::Coalesce => COALESCING_COUNTS,
            Self::Queues => QUEUE_COUNTS,
        }
    }

    /// The request that reads it; the one that sets it has the next number.
    fn get(self) -> u16 {
        match self {
            Self::Ring => ethtool::RINGS,
            Self::Coalesce => ethtool::COALESCING,
            Self::Queues => ethtool::QUEUES,
        }
    }

    /// Whether this number exists.
    pub(crate) fn has(self, name: &str) -> bool {
        self.counts().iter().any(|(known, ..)| *known == name)
    }

    /// Whether a number is an on/off switch.
    pub(crate) fn is_switch(name: &str) -> bool {
        SWITCHES.contains(&name)
    }
}

/// A number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceNumber {
    /// What it is.
    pub now: u32,
    /// The device's maximum, if it reports one.
    pub most: Option<u32>,
}

/// A feature of a device (an offload), by the kernel's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Such as `tx-tcp-segmentation`.
    pub name: String,
    /// Whether it is in use.
    pub active: bool,
    /// Whether it was requested: a feature that depends on another one may be requested and not active.
    pub wanted: bool,
    /// Whether it can be changed.
    pub changeable: bool,
}

/// Sends a request for the device; `more` follows the request's header. Returns the first answer's attributes, if
/// there is one.
fn exchange(device: &str, command: u16, more: &[u8]) -> io::Result<Vec<u8>> {
    let mut body = ethtool::request(Some(device));
    body.extend_from_slice(more);
    let mut answers = netlink::exchange(NetlinkFamily::Ethtool, command, false, &body)?;
    Ok(if answers.is_empty() { Vec::new() } else { answers.swap_remove(0) })
}

/// The numbers of a group that a device has.
pub(crate) fn read(device: &str, group: Group) -> io::Result<BTreeMap<String, DeviceNumber>> {
    let answer = exchange(device, group.get(), &[])?;
    let answer = Attributes(&answer);
    let value = |(name, kind, most): &Count| {
        let most = most.and_then(|most| answer.number32(most));
        Some(((*name).to_owned(), DeviceNumber { now: answer.number32(*kind)?, most }))
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
    exchange(device, group.get() + 1, &body).map(|_| ())
}

/// The features of a device.
pub(crate) fn features(device: &str) -> io::Result<Vec<Feature>> {
    let answer = exchange(device, ethtool::FEATURES, &[])?;
    let set = |kind| ethtool::bits(Attributes(&answer), kind).into_iter().collect::<BTreeMap<_, _>>();
    let (wanted, active) = (set(ethtool::FEATURES_WANTED), set(ethtool::FEATURES_ACTIVE));
    let fixed = set(ethtool::FEATURES_UNCHANGING);
    let on = |set: &BTreeMap<String, bool>, name: &String| set.get(name).copied().unwrap_or(false);
    // The set of what the hardware supports comes with a mask: only its values count.
    let mut names: Vec<String> = [&wanted, &active].into_iter().flat_map(BTreeMap::keys).cloned().collect();
    let hardware = set(ethtool::FEATURES_HARDWARE);
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

/// Requests features to be on or off.
pub(crate) fn set_features(device: &str, wanted: &[(String, bool)]) -> io::Result<()> {
    let mut body = Vec::new();
    ethtool::put_bits(&mut body, ethtool::FEATURES_WANTED, wanted);
    exchange(device, ethtool::FEATURES + 1, &body).map(|_| ())
}

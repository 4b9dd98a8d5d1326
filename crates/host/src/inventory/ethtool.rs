//! Rings, coalescing, queues, offloads, pause frames, link modes, time stamps and modules, by ethtool's netlink family
//! (Linux 5.6 and later).
//!
//! One request returns the answers of all interfaces; the kernel leaves out a driver that cannot answer.

use std::collections::BTreeMap;

use model::{Device, LinkModes, Timestamping};

use super::Source;
use crate::netlink::ethtool::{self, COALESCING_COUNTS, Count, QUEUE_COUNTS, RING_COUNTS, bits};
use crate::netlink::{Attributes, NetlinkFamily, NetlinkRequest};

/// A request of ethtool's family, and the reader of its answer.
struct Subject {
    /// Its name when it is missing.
    name: &'static str,
    /// Its key in a recorded host.
    file: &'static str,
    command: u16,
    read: fn(Attributes<'_>, &mut Device),
}

const SUBJECTS: &[Subject] = &[
    Subject { name: "link modes", file: "linkmodes", command: ethtool::LINK_MODES, read: link_modes },
    Subject { name: "offloads", file: "features", command: ethtool::FEATURES, read: offloads },
    Subject {
        name: "rings",
        file: "rings",
        command: ethtool::RINGS,
        read: |answer, to| to.rings = numbers(answer, RING_COUNTS),
    },
    Subject {
        name: "queues",
        file: "channels",
        command: ethtool::QUEUES,
        read: |answer, to| to.channels = numbers(answer, QUEUE_COUNTS),
    },
    Subject {
        name: "coalescing",
        file: "coalesce",
        command: ethtool::COALESCING,
        read: |answer, to| to.coalescing = numbers(answer, COALESCING_COUNTS),
    },
    Subject { name: "pause frames", file: "pause", command: ethtool::PAUSE, read: pause },
    Subject { name: "time stamps", file: "tsinfo", command: ethtool::TIME_STAMPS, read: timestamping },
];

/// Sets what ethtool reports of the devices; `hardware` are the interfaces whose missing answer is a gap.
pub(super) fn describe(source: &mut Source<'_>, devices: &mut BTreeMap<String, Device>, hardware: &[String]) {
    for subject in SUBJECTS {
        let request = NetlinkRequest {
            name: format!("ethtool-{}", subject.file),
            family: NetlinkFamily::Ethtool,
            kind: subject.command,
            dump: true,
            body: ethtool::request(None),
        };
        let answers = match source.sys.netlink(&request) {
            Ok(answers) => answers,
            Err(error) => {
                source.missing.push(format!("{}: ethtool's netlink: {error}", subject.name));
                continue;
            }
        };
        let mut answered = Vec::new();
        for answer in &answers {
            let answer = Attributes(answer);
            if let Some(name) = ethtool::interface(answer) {
                (subject.read)(answer, devices.entry(name.clone()).or_default());
                answered.push(name);
            }
        }
        for name in hardware.iter().filter(|name| !answered.contains(name)) {
            source.missing.push(format!("{name}: {}: the driver does not report it", subject.name));
        }
    }
}

/// Each number of the answer, and with the suffix `-max` the device's maximum.
fn numbers(answer: Attributes<'_>, counts: &[Count]) -> BTreeMap<String, u64> {
    let now = counts.iter().filter_map(|(name, kind, _)| Some(((*name).to_owned(), answer.number(*kind)?)));
    let most = counts.iter().filter_map(|(name, _, most)| Some((format!("{name}-max"), answer.number((*most)?)?)));
    now.chain(most).collect()
}

fn pause(answer: Attributes<'_>, device: &mut Device) {
    let names = [(2, "autoneg"), (3, "rx"), (4, "tx")];
    let flags = names.iter().filter_map(|(kind, name)| Some(((*name).to_owned(), answer.number(*kind)? != 0)));
    device.pause = flags.collect();
}

fn link_modes(answer: Attributes<'_>, device: &mut Device) {
    const UNKNOWN_SPEED: u32 = u32::MAX;
    let bits = |kind| bits(answer, kind);
    let names = |set: &[(String, bool)], only_set: bool| -> Vec<String> {
        set.iter().filter(|(_, set)| *set || !only_set).map(|(name, _)| name.clone()).collect()
    };
    let ours = bits(3);
    device.link = Some(LinkModes {
        autoneg: answer.number(2).map(|value| value != 0),
        speed_mbps: answer.number32(5).filter(|speed| *speed != UNKNOWN_SPEED && *speed != 0),
        duplex: answer.number(6).and_then(|duplex| match duplex {
            0 => Some("half".to_owned()),
            1 => Some("full".to_owned()),
            _ => None,
        }),
        supported: names(&ours, false),
        advertised: names(&ours, true),
        peer: names(&bits(4), true),
    });
}

/// On or off, and fixed if the hardware or the driver does not allow a change.
fn offloads(answer: Attributes<'_>, device: &mut Device) {
    let on = |kind| -> Vec<String> { bits(answer, kind).into_iter().filter(|bit| bit.1).map(|bit| bit.0).collect() };
    let (active, unchanging) = (on(ethtool::FEATURES_ACTIVE), on(ethtool::FEATURES_UNCHANGING));
    for (name, changeable) in bits(answer, ethtool::FEATURES_HARDWARE) {
        let state = if active.contains(&name) { "on" } else { "off" };
        let fixed = if !changeable || unchanging.contains(&name) { " [fixed]" } else { "" };
        device.offloads.insert(name, format!("{state}{fixed}"));
    }
}

fn timestamping(answer: Attributes<'_>, device: &mut Device) {
    let names = |kind| bits(answer, kind).into_iter().filter(|bit| bit.1).map(|bit| bit.0).collect();
    device.timestamping = Some(Timestamping {
        capabilities: names(2),
        tx_types: names(3),
        rx_filters: names(4),
        clock: answer.number32(5),
    });
}

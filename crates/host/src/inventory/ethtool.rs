//! Rings, coalescing, queues, offloads, pause frames, link modes, time stamps and modules, by ethtool's netlink family
//! (Documentation/networking/ethtool-netlink.rst, linux/ethtool_netlink.h; Linux 5.6 and later).
//!
//! One question brings the answers of all interfaces; a driver that cannot answer is left out by the kernel.

use std::collections::BTreeMap;

use model::{Device, LinkModes, Timestamping};

use super::Source;
use crate::netlink::{Ask, Attributes, Family, put, put_nested};

/// Of every request and answer.
pub(super) const HEADER: u16 = 1;
pub(super) const HEADER_NAME: u16 = 2;

/// A question of ethtool's family, and what its answer brings into a device.
struct Subject {
    /// What it is called where it is missing.
    name: &'static str,
    /// What a recorded host keeps it under.
    file: &'static str,
    command: u16,
    read: fn(Attributes<'_>, &mut Device),
}

const SUBJECTS: &[Subject] = &[
    Subject { name: "link modes", file: "linkmodes", command: 4, read: link_modes },
    Subject { name: "offloads", file: "features", command: 11, read: offloads },
    Subject { name: "rings", file: "rings", command: 15, read: |answer, to| to.rings = numbers(answer, RINGS) },
    Subject {
        name: "queues",
        file: "channels",
        command: 17,
        read: |answer, to| to.channels = numbers(answer, CHANNELS),
    },
    Subject {
        name: "coalescing",
        file: "coalesce",
        command: 19,
        read: |answer, to| to.coalescing = numbers(answer, COALESCE),
    },
    Subject { name: "pause frames", file: "pause", command: 21, read: pause },
    Subject { name: "time stamps", file: "tsinfo", command: 25, read: timestamping },
];

const RINGS: &[(u16, &str)] = &[
    (2, "rx-max"),
    (3, "rx-mini-max"),
    (4, "rx-jumbo-max"),
    (5, "tx-max"),
    (6, "rx"),
    (7, "rx-mini"),
    (8, "rx-jumbo"),
    (9, "tx"),
    (10, "rx-buf-len"),
    (12, "cqe-size"),
];
const CHANNELS: &[(u16, &str)] = &[
    (2, "rx-max"),
    (3, "tx-max"),
    (4, "other-max"),
    (5, "combined-max"),
    (6, "rx"),
    (7, "tx"),
    (8, "other"),
    (9, "combined"),
];
const COALESCE: &[(u16, &str)] = &[
    (2, "rx-usecs"),
    (3, "rx-frames"),
    (4, "rx-usecs-irq"),
    (5, "rx-frames-irq"),
    (6, "tx-usecs"),
    (7, "tx-frames"),
    (8, "tx-usecs-irq"),
    (9, "tx-frames-irq"),
    (10, "stats-block-usecs"),
    (11, "adaptive-rx"),
    (12, "adaptive-tx"),
    (13, "pkt-rate-low"),
    (14, "rx-usecs-low"),
    (15, "rx-frames-low"),
    (16, "tx-usecs-low"),
    (17, "tx-frames-low"),
    (18, "pkt-rate-high"),
    (19, "rx-usecs-high"),
    (20, "rx-frames-high"),
    (21, "tx-usecs-high"),
    (22, "tx-frames-high"),
    (23, "sample-interval"),
    (24, "cqe-mode-tx"),
    (25, "cqe-mode-rx"),
];

/// Fills in what ethtool says of the devices; `hardware` are the interfaces whose silence is a gap.
pub(super) fn describe(source: &mut Source<'_>, devices: &mut BTreeMap<String, Device>, hardware: &[String]) {
    for subject in SUBJECTS {
        let question = Ask {
            name: format!("ethtool-{}", subject.file),
            family: Family::Ethtool,
            kind: subject.command,
            dump: true,
            body: request(None),
        };
        let answers = match source.sys.netlink(&question) {
            Ok(answers) => answers,
            Err(error) => {
                source.missing.push(format!("{}: ethtool's netlink: {error}", subject.name));
                continue;
            }
        };
        let mut heard = Vec::new();
        for answer in &answers {
            let answer = Attributes(answer);
            if let Some(name) = answer.nested(HEADER).and_then(|header| header.text(HEADER_NAME)) {
                (subject.read)(answer, devices.entry(name.clone()).or_default());
                heard.push(name);
            }
        }
        for name in hardware.iter().filter(|name| !heard.contains(name)) {
            source.missing.push(format!("{name}: {}: the driver does not say", subject.name));
        }
    }
}

/// The header of a request, for one interface or for all.
pub(super) fn request(interface: Option<&str>) -> Vec<u8> {
    let mut header = Vec::new();
    if let Some(name) = interface {
        put(&mut header, HEADER_NAME, format!("{name}\0").as_bytes());
    }
    let mut body = Vec::new();
    put_nested(&mut body, HEADER, &header);
    body
}

fn numbers(answer: Attributes<'_>, names: &[(u16, &str)]) -> BTreeMap<String, u64> {
    names.iter().filter_map(|(kind, name)| Some(((*name).to_owned(), answer.number(*kind)?))).collect()
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

/// On or off, and fixed where neither the hardware nor the driver lets it be changed.
fn offloads(answer: Attributes<'_>, device: &mut Device) {
    let on = |kind| -> Vec<String> { bits(answer, kind).into_iter().filter(|bit| bit.1).map(|bit| bit.0).collect() };
    let (active, unchanging) = (on(4), on(5));
    for (name, changeable) in bits(answer, 2) {
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

/// The bits of a set by name, and whether each is set. A set without a mask lists only those that are.
fn bits(answer: Attributes<'_>, kind: u16) -> Vec<(String, bool)> {
    const NO_MASK: u16 = 1;
    const BITS: u16 = 3;
    const BIT_NAME: u16 = 2;
    const BIT_VALUE: u16 = 3;
    let Some(set) = answer.nested(kind) else { return Vec::new() };
    let all_set = set.get(NO_MASK).is_some();
    let bits = set.nested(BITS).into_iter().flatten();
    bits.filter_map(|(_, bit)| {
        let bit = Attributes(bit);
        Some((bit.text(BIT_NAME)?, all_set || bit.get(BIT_VALUE).is_some()))
    })
    .collect()
}

//! What kind of device an interface is, what it lies on, and how it queues: rtnetlink's links and queueing disciplines
//! (rtnetlink(7), linux/if_link.h, linux/pkt_sched.h).

use std::collections::BTreeMap;

use model::Device;

use super::Source;
use crate::netlink::{Ask, Attributes, Family, u32_at};

const GET_LINK: u16 = 18;
const GET_QDISC: u16 = 38;
/// Sizes of `struct ifinfomsg` and `struct tcmsg`; both hold the interface's index at byte 4.
const LINK_HEADER: usize = 16;
const QDISC_HEADER: usize = 20;
const INDEX: usize = 4;
const PARENT: usize = 12;

const NAME: u16 = 3;
const LINK: u16 = 5;
const MASTER: u16 = 10;
const INFO: u16 = 18;
const GSO_MAX: u16 = 41;
const GRO_MAX: u16 = 58;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VLAN_ID: u16 = 1;
const BOND_MODE: u16 = 1;
const QDISC_KIND: u16 = 1;

/// Parents of a device's own discipline and of the hooks at its ingress.
const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;

/// By number (Documentation/networking/bonding.rst).
const BOND_MODES: [&str; 7] =
    ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];

/// What rtnetlink says of each interface, by name.
pub(super) fn devices(source: &mut Source<'_>) -> BTreeMap<String, Device> {
    let links = ask(source, "interface kinds", "link", GET_LINK, LINK_HEADER);
    let name = |link: &[u8]| Some((u32_at(link, INDEX)?, Attributes::after(link, LINK_HEADER).text(NAME)?));
    let names: BTreeMap<u32, String> = links.iter().filter_map(|link| name(link)).collect();
    let mut devices: BTreeMap<u32, Device> = BTreeMap::new();
    for link in &links {
        if let Some(index) = u32_at(link, INDEX) {
            devices.insert(index, device(Attributes::after(link, LINK_HEADER), &names));
        }
    }
    let qdiscs = ask(source, "queueing disciplines", "qdisc", GET_QDISC, QDISC_HEADER);
    for (index, qdiscs) in disciplines(&qdiscs) {
        devices.entry(index).or_default().qdiscs = qdiscs;
    }
    devices.into_iter().filter_map(|(index, device)| Some((names.get(&index)?.clone(), device))).collect()
}

fn ask(source: &mut Source<'_>, fact: &str, name: &str, kind: u16, header: usize) -> Vec<Vec<u8>> {
    let question = Ask { name: name.into(), family: Family::Route, kind, dump: true, body: vec![0; header] };
    source.sys.netlink(&question).unwrap_or_else(|error| {
        source.missing.push(format!("{fact}: rtnetlink: {error}"));
        Vec::new()
    })
}

fn device(link: Attributes<'_>, names: &BTreeMap<u32, String>) -> Device {
    let named = |kind| names.get(&link.number32(kind)?).cloned();
    let info = link.nested(INFO);
    let kind = info.and_then(|info| info.text(INFO_KIND));
    let data = |wanted: &str| info.filter(|_| kind.as_deref() == Some(wanted))?.nested(INFO_DATA);
    let mode = data("bond").and_then(|data| data.number(BOND_MODE));
    Device {
        master: named(MASTER),
        // A veth's link is its peer, which is nothing below it.
        lower: named(LINK).filter(|_| kind.as_deref() != Some("veth")).into_iter().collect(),
        vlan: data("vlan").and_then(|data| data.number(VLAN_ID)?.try_into().ok()),
        bond_mode: mode.and_then(|mode| BOND_MODES.get(usize::try_from(mode).ok()?)).map(|mode| (*mode).to_owned()),
        gso_max_bytes: link.number32(GSO_MAX),
        gro_max_bytes: link.number32(GRO_MAX),
        kind,
        ..Device::default()
    }
}

/// Each interface's disciplines in words. A root with a discipline for each of 64 queues is said once.
fn disciplines(messages: &[Vec<u8>]) -> BTreeMap<u32, Vec<String>> {
    let mut found: BTreeMap<u32, BTreeMap<(u8, String), u32>> = BTreeMap::new();
    for message in messages {
        let (Some(index), Some(parent)) = (u32_at(message, INDEX), u32_at(message, PARENT)) else { continue };
        let Some(kind) = Attributes::after(message, QDISC_HEADER).text(QDISC_KIND) else { continue };
        let place = match parent {
            ROOT => 0,
            INGRESS => 2,
            _ => 1,
        };
        *found.entry(index).or_default().entry((place, kind)).or_default() += 1;
    }
    let words = |((place, kind), count): ((u8, String), u32)| match place {
        0 => format!("root {kind}"),
        1 => format!("{kind} below it, {count} times"),
        _ => format!("{kind} at the ingress"),
    };
    found.into_iter().map(|(index, kinds)| (index, kinds.into_iter().map(words).collect())).collect()
}

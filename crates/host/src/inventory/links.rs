//! The kind of an interface, its lower device, and its queueing: rtnetlink's links and queueing disciplines
//! (rtnetlink(7), linux/if_link.h).

use std::collections::BTreeMap;

use model::Device;

use super::Source;
use crate::netlink::{Attributes, NetlinkFamily, NetlinkRequest, link, qdisc};
use crate::sys::Qdisc;

const LINK: u16 = 5;
const MASTER: u16 = 10;
const INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VLAN_ID: u16 = 1;
const BOND_MODE: u16 = 1;

/// By number (Documentation/networking/bonding.rst).
const BOND_MODES: [&str; 7] =
    ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];

/// What rtnetlink reports of each interface, by name.
pub(super) fn devices(source: &mut Source<'_>) -> BTreeMap<String, Device> {
    let body = vec![0; link::HEADER];
    let request =
        NetlinkRequest { name: "link".into(), family: NetlinkFamily::Route, kind: link::GET, dump: true, body };
    let links = dump(source, "interface kinds", &request);
    let names: BTreeMap<u32, String> =
        links.iter().filter_map(|message| Some((link::index(message)?, link::name(message)?))).collect();
    let mut devices: BTreeMap<String, Device> = BTreeMap::new();
    for message in &links {
        if let Some(name) = link::index(message).and_then(|index| names.get(&index)) {
            devices.insert(name.clone(), device(link::attributes(message), &names));
        }
    }
    let qdiscs = dump(source, "queueing disciplines", &qdisc::request());
    let qdiscs = qdiscs.iter().filter_map(|message| qdisc::read(message, |index| names.get(&index).cloned()));
    for (name, qdiscs) in disciplines(qdiscs) {
        devices.entry(name).or_default().qdiscs = qdiscs;
    }
    devices
}

fn dump(source: &mut Source<'_>, fact: &str, request: &NetlinkRequest) -> Vec<Vec<u8>> {
    source.sys.netlink(request).unwrap_or_else(|error| {
        source.missing.push(format!("{fact}: rtnetlink: {error}"));
        Vec::new()
    })
}

fn device(of: Attributes<'_>, names: &BTreeMap<u32, String>) -> Device {
    let named = |kind| names.get(&of.number32(kind)?).cloned();
    let info = of.nested(INFO);
    let kind = info.and_then(|info| info.text(INFO_KIND));
    let data = |wanted: &str| info.filter(|_| kind.as_deref() == Some(wanted))?.nested(INFO_DATA);
    let mode = data("bond").and_then(|data| data.number(BOND_MODE));
    Device {
        master: named(MASTER),
        // A veth's link is its peer, which is not a lower device.
        lower: named(LINK).filter(|_| kind.as_deref() != Some("veth")).into_iter().collect(),
        vlan: data("vlan").and_then(|data| data.number(VLAN_ID)?.try_into().ok()),
        bond_mode: mode.and_then(|mode| BOND_MODES.get(usize::try_from(mode).ok()?)).map(|mode| (*mode).to_owned()),
        gso_max_bytes: of.number32(link::GSO_MAX),
        gro_max_bytes: of.number32(link::GRO_MAX),
        kind,
        ..Device::default()
    }
}

/// Each interface's disciplines as text. A root with a discipline for each of 64 queues gets one entry.
fn disciplines(all: impl Iterator<Item = Qdisc>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, BTreeMap<(u8, String), u32>> = BTreeMap::new();
    for Qdisc { interface, kind, parent, .. } in all {
        let rank = match parent.as_str() {
            qdisc::ROOT => 0,
            qdisc::INGRESS => 2,
            _ => 1,
        };
        *found.entry(interface).or_default().entry((rank, kind)).or_default() += 1;
    }
    let words = |((rank, kind), count): ((u8, String), u32)| match rank {
        0 => format!("root {kind}"),
        1 => format!("{kind} below it, {count} times"),
        _ => format!("{kind} at the ingress"),
    };
    found.into_iter().map(|(name, kinds)| (name, kinds.into_iter().map(words).collect())).collect()
}

//! Interfaces by routing netlink: what RTM_GETLINK says and RTM_NEWLINK sets (linux/rtnetlink.h, linux/if_link.h).

use std::collections::BTreeMap;
use std::io;

use super::netlink::{Netlink, attribute, number, put, text};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLM_F_DUMP: u16 = 0x300;
const IFLA_IFNAME: u16 = 3;
const IFF_UP: u32 = 1;
/// `struct ifinfomsg`: family, type, index, flags, change.
const IFINFOMSG: usize = 16;

/// Properties of an interface that are numbers, and their attributes.
pub(crate) const FIELDS: [(&str, u16); 6] = [
    ("mtu", 4),
    ("txqueuelen", 13),
    ("gso_max_size", 41),
    ("gro_max_size", 58),
    ("gso_ipv4_max_size", 63),
    ("gro_ipv4_max_size", 64),
];
/// The property that is a flag: 1 for up.
pub(crate) const STATE: &str = "state";

/// The interface's number, which cannot be set.
pub(crate) const INDEX: &str = "ifindex";

fn open() -> io::Result<Netlink> {
    Netlink::open(None)
}

/// `struct ifinfomsg` with the interface's name behind it.
fn request(device: &str, flags: u32, change: u32) -> Vec<u8> {
    let mut body = vec![0; IFINFOMSG];
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&change.to_ne_bytes());
    put(&mut body, IFLA_IFNAME, &[device.as_bytes(), &[0]].concat());
    body
}

/// The interfaces of this network namespace.
pub(crate) fn names() -> io::Result<Vec<String>> {
    let answers = open()?.ask(RTM_GETLINK, NLM_F_DUMP, &[0; IFINFOMSG])?;
    let name = |answer: &Vec<u8>| attribute(answer.get(IFINFOMSG..)?, IFLA_IFNAME).map(text);
    Ok(answers.iter().filter_map(name).collect())
}

/// What the kernel says of an interface; a property that it does not know is left out.
pub(crate) fn read(device: &str) -> io::Result<BTreeMap<String, u32>> {
    let answers = open()?.ask(RTM_GETLINK, 0, &request(device, 0, 0))?;
    let answer = answers.first().filter(|answer| answer.len() >= IFINFOMSG);
    let answer = answer.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let field = |(name, kind): (&str, u16)| {
        attribute(&answer[IFINFOMSG..], kind).and_then(number).map(|value| (name.to_owned(), value))
    };
    let mut fields: BTreeMap<String, u32> = FIELDS.into_iter().filter_map(field).collect();
    let flags = number(&answer[8..12]).unwrap_or(0);
    fields.insert(STATE.into(), flags & IFF_UP);
    fields.insert(INDEX.into(), number(&answer[4..8]).unwrap_or(0));
    Ok(fields)
}

/// Sets one property.
pub(crate) fn write(device: &str, field: &str, value: u32) -> io::Result<()> {
    let body = if field == STATE {
        request(device, value & IFF_UP, IFF_UP)
    } else {
        let kind = FIELDS.iter().find(|(name, _)| *name == field).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let mut body = request(device, 0, 0);
        put(&mut body, kind, &value.to_ne_bytes());
        body
    };
    open()?.ask(RTM_NEWLINK, 0, &body).map(|_| ())
}

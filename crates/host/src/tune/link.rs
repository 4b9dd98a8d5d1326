//! Interfaces by routing netlink: RTM_GETLINK reads and RTM_NEWLINK sets.

use std::collections::BTreeMap;
use std::io;

use crate::netlink::{NetlinkFamily, link, put};
use crate::sys::netlink;

const IFF_UP: u32 = 1;

/// Properties of an interface that are numbers, and their attributes.
pub(crate) const FIELDS: [(&str, u16); 6] = [
    ("mtu", link::MTU),
    ("txqueuelen", link::TX_QUEUE),
    ("gso_max_size", link::GSO_MAX),
    ("gro_max_size", link::GRO_MAX),
    ("gso_ipv4_max_size", link::GSO_IPV4_MAX),
    ("gro_ipv4_max_size", link::GRO_IPV4_MAX),
];
/// The property that is a flag: 1 for up.
pub(crate) const STATE: &str = "state";

/// The interface's number, which cannot be set.
pub(crate) const INDEX: &str = "ifindex";

/// `struct ifinfomsg` with the interface's name behind it.
fn request(device: &str, flags: u32, change: u32) -> Vec<u8> {
    let mut body = vec![0; link::HEADER];
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&change.to_ne_bytes());
    put(&mut body, link::NAME, format!("{device}\0").as_bytes());
    body
}

/// The interfaces of this network namespace.
pub(crate) fn names() -> io::Result<Vec<String>> {
    let answers = netlink::exchange(NetlinkFamily::Route, link::GET, true, &[0; link::HEADER])?;
    Ok(answers.iter().filter_map(|answer| link::name(answer)).collect())
}

/// The properties of an interface; those that the kernel does not report are left out.
pub(crate) fn read(device: &str) -> io::Result<BTreeMap<String, u32>> {
    let answers = netlink::exchange(NetlinkFamily::Route, link::GET, false, &request(device, 0, 0))?;
    let answer = answers.first().filter(|answer| answer.len() >= link::HEADER);
    let answer = answer.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let attributes = link::attributes(answer);
    let field = |(name, kind): (&str, u16)| Some((name.to_owned(), attributes.number32(kind)?));
    let mut fields: BTreeMap<String, u32> = FIELDS.into_iter().filter_map(field).collect();
    fields.insert(STATE.into(), link::flags(answer).unwrap_or(0) & IFF_UP);
    fields.insert(INDEX.into(), link::index(answer).unwrap_or(0));
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
    netlink::exchange(NetlinkFamily::Route, link::SET, false, &body).map(|_| ())
}

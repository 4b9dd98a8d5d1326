//! Interfaces in routing netlink (rtnetlink(7), linux/rtnetlink.h, linux/if_link.h).

use super::{Attributes, u32_at};

/// Sets an interface's properties (RTM_NEWLINK).
pub(crate) const SET: u16 = 16;
/// Reads interfaces (RTM_GETLINK).
pub(crate) const GET: u16 = 18;
/// Size of `struct ifinfomsg`: family, type, index, flags, change.
pub(crate) const HEADER: usize = 16;

/// Attributes.
pub(crate) const NAME: u16 = 3;
pub(crate) const MTU: u16 = 4;
pub(crate) const TX_QUEUE: u16 = 13;
pub(crate) const GSO_MAX: u16 = 41;
pub(crate) const GRO_MAX: u16 = 58;
pub(crate) const GSO_IPV4_MAX: u16 = 63;
pub(crate) const GRO_IPV4_MAX: u16 = 64;

/// An interface's number.
pub(crate) fn index(message: &[u8]) -> Option<u32> {
    u32_at(message, 4)
}

/// Its flags (IFF_*).
pub(crate) fn flags(message: &[u8]) -> Option<u32> {
    u32_at(message, 8)
}

/// Its attributes.
pub(crate) fn attributes(message: &[u8]) -> Attributes<'_> {
    Attributes::after(message, HEADER)
}

/// Its name.
pub(crate) fn name(message: &[u8]) -> Option<String> {
    attributes(message).text(NAME)
}

//! Netlink messages without I/O: requests and the content of answers (netlink(7), rtnetlink(7), linux/genetlink.h).
//!
//! Shared by the inventory and the observers, which only read, and the settings, which also change. The socket is in
//! `sys`. Numbers in messages are in the host's byte order.

mod attributes;
pub(crate) mod ethtool;
pub(crate) mod frame;
pub(crate) mod link;
pub(crate) mod qdisc;

pub(crate) use attributes::{Attributes, put, put_nested, u16_at, u32_at};

/// The family of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetlinkFamily {
    /// Links, routes and queueing disciplines.
    Route,
    /// The generic family `ethtool` (Documentation/networking/ethtool-netlink.rst).
    Ethtool,
}

/// A request to the kernel that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetlinkRequest {
    /// Its key in a recorded host.
    pub name: String,
    /// Its family.
    pub family: NetlinkFamily,
    /// Type of the message (rtnetlink) or command (generic netlink).
    pub kind: u16,
    /// Whether the answer is a list of all there are.
    pub dump: bool,
    /// The family's own header and attributes, after the netlink header (and, for generic netlink, after its header too).
    pub body: Vec<u8>,
}

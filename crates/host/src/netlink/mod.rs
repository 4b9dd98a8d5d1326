//! Netlink's messages without I/O: what is asked, and what an answer holds (netlink(7), rtnetlink(7), linux/genetlink.h).
//!
//! One place for all that speak it: the inventory and the observers, which ask, and the settings, which also order. A socket to
//! the kernel is in `sys`. Numbers in messages are in the host's byte order.

mod attributes;
pub(crate) mod ethtool;
pub(crate) mod frame;
pub(crate) mod link;
pub(crate) mod qdisc;

pub(crate) use attributes::{Attributes, put, put_nested, u16_at, u32_at};

/// Whom a question goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Links, routes and queueing disciplines.
    Route,
    /// The generic family `ethtool` (Documentation/networking/ethtool-netlink.rst).
    Ethtool,
}

/// A question to the kernel that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetlinkRequest {
    /// What a recorded host keeps the answer under.
    pub name: String,
    /// Whom it goes to.
    pub family: Family,
    /// Type of the message (rtnetlink) or command (generic netlink).
    pub kind: u16,
    /// Whether the answer is a list of all there are.
    pub dump: bool,
    /// The family's own header and attributes, after the netlink header (and, for generic netlink, after its header too).
    pub body: Vec<u8>,
}

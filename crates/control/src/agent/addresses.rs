//! The addresses of a control connection.

use std::net::{IpAddr, Ipv4Addr};

/// Stands for the address of clients over a bus, who have none: they share the limits of one address, and no host can have it.
pub(super) const OVER_BUS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The two addresses of a control connection; `None` within one process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Addresses {
    /// This host's address.
    pub(crate) here: Option<IpAddr>,
    /// The coordinator's address.
    pub(crate) peer: Option<IpAddr>,
}

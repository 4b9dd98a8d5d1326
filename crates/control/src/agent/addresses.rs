//! The addresses of a control connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use engine::transport::scope_of;

/// Stands for the address of clients over a bus, who have none: they share the limits of one address, and no host can have it.
pub(super) const OVER_BUS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The two addresses of a control connection; `None` within one process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Addresses {
    /// This host's address.
    pub(crate) here: Option<IpAddr>,
    /// The coordinator's address.
    pub(crate) peer: Option<IpAddr>,
    /// The number of the interface, if these are link-local addresses; else 0.
    pub(crate) scope: u32,
}

impl Addresses {
    /// The addresses of a connection from the coordinator at `peer` to `here`.
    pub(crate) fn of(here: Option<SocketAddr>, peer: SocketAddr) -> Self {
        let scope = here.as_ref().map_or(0, scope_of);
        Self { here: here.map(|here| here.ip()), peer: Some(peer.ip()), scope }
    }
}

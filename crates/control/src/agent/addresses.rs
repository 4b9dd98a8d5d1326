//! The addresses of a control connection.

use std::net::IpAddr;

/// The two addresses of a control connection; `None` within one process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Addresses {
    /// This host's address.
    pub(crate) here: Option<IpAddr>,
    /// The coordinator's address.
    pub(crate) peer: Option<IpAddr>,
}

//! How an agent was reached, so that further connections lead to the same one.

use std::net::SocketAddr;
use std::rc::Rc;

use bus::Buses;
use model::Family;

use crate::Access;
use crate::agent::Agent;
use crate::proto::auth::Token;
use crate::proto::fingerprint::Fingerprint;

/// How an agent was reached.
#[derive(Clone)]
pub(super) enum Reached {
    /// Within this process.
    Local(Agent),
    /// At `host`, as the user wrote it. A name may have several addresses: `address` is the one that answered, and `key` what it was
    /// recognized by.
    Remote { host: String, address: SocketAddr, key: Fingerprint, token: Option<Token> },
    /// Over a bus; `address` is what the agent tells there.
    OverBus { host: String, address: SocketAddr, key: Fingerprint, token: Option<Token>, buses: Buses },
    /// Not yet: it did not answer at `host`.
    Not { host: String, access: Rc<Access>, family: Family },
}

impl Reached {
    /// The agent's address; `None` within this process.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Local(_) | Self::Not { .. } => None,
            Self::Remote { address, .. } | Self::OverBus { address, .. } => Some(*address),
        }
    }
}

//! How an agent was reached, so that further connections lead to the same one.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use bus::Buses;
use model::Family;

use super::address::split;
use crate::agent::Agent;
use crate::proof::auth::Token;
use crate::proof::fingerprint::Fingerprint;
use crate::{Access, AgentKey};

/// How an agent was reached.
#[derive(Clone)]
pub(super) enum Reached {
    /// Within this process.
    Local(Agent),
    /// At `host`, as the user wrote it. A name may have several addresses: `address` is the one that answered.
    Remote { host: String, address: SocketAddr, known: Known },
    /// Over a bus; `address` is what the agent tells there.
    OverBus { host: String, address: SocketAddr, known: Known, buses: Buses },
    /// Not yet: it did not answer at `host`.
    Not { host: String, access: Rc<Access>, family: Family },
}

/// How the two sides recognized each other.
#[derive(Clone)]
pub(super) struct Known {
    /// The agent's key.
    key: Fingerprint,
    /// The token that both proved.
    token: Option<Token>,
    /// The coordinator's key. With the code of an invitation the agent got to know it.
    own_key: Option<AgentKey>,
}

impl Known {
    /// The agent that has shown `key` to a coordinator with this access.
    pub(super) fn of(key: Fingerprint, access: &Access) -> Self {
        Self { key, token: access.token.clone(), own_key: access.own_key.clone() }
    }

    /// The access to the same agent.
    pub(super) fn access(&self, buses: Buses) -> Access {
        Access { own_key: self.own_key.clone(), ..Access::to(self.key, self.token.clone(), buses) }
    }
}

impl Reached {
    /// The name by which the user reached the agent; `None` for an address.
    pub(super) fn name(&self) -> Option<String> {
        let Self::Remote { host, .. } = self else { return None };
        let (name, _) = split(host).ok()?;
        name.parse::<IpAddr>().is_err().then(|| name.to_owned())
    }

    /// The agent's address; `None` within this process.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Local(_) | Self::Not { .. } => None,
            Self::Remote { address, .. } | Self::OverBus { address, .. } => Some(*address),
        }
    }
}

//! The path to a host, as this process sees it.

use engine::transport::scope_of;
use model::{Family, Inventory, Path};
use protocol::message::PathFacts;

use super::AgentEnd;
use super::address::split;
use super::dial::addresses;
use crate::ControlError;

impl AgentEnd {
    /// Lets this near end measure its traffic and probe the path to a host that has no agent; `None` for one without an address, and
    /// where the probe takes too long.
    ///
    /// # Errors
    /// The name does not resolve, or the connection is lost.
    pub async fn probe_host(&mut self, host: &str, family: Family) -> Result<Option<PathFacts>, ControlError> {
        let (name, port) = split(host)?;
        let Some(address) = addresses(name, port, family).await?.into_iter().next() else { return Ok(None) };
        let peer = (Some(address.ip()), Some(name.to_owned()));
        self.talk(async |end| end.probe_host(peer, scope_of(&address)).await).await
    }
}

/// Adds what was found out to a host's inventory and to its view of the path.
pub fn note_path(facts: PathFacts, inventory: &mut Inventory, path: &mut Option<Path>) {
    host::note_traffic(inventory, &facts.traffic);
    *path = facts.path;
}

//! A host without files, interfaces and fleets, for texts that refer to some.

use std::net::SocketAddr;
use std::path::Path;

use model::{Payload, StackRule};
use options::values::Address;
use plan::{Fleet, FleetHost, Resolver};
use text::Text;

/// The host.
pub struct EmptyHost;

impl Resolver for EmptyHost {
    fn fleet(&self, _: &Path, named: &str) -> Result<Fleet, Text> {
        Ok(Fleet { source: named.to_owned(), hosts: ["a", "b", "c"].map(FleetHost::named).into(), ..Fleet::default() })
    }

    fn data_address(&self, host: &FleetHost) -> Result<Option<SocketAddr>, Text> {
        Ok(host.data.as_ref().and_then(|data| data.parse().ok()))
    }

    fn on_interface(&self, address: &Address) -> Result<SocketAddr, Text> {
        Ok(SocketAddr::new(address.ip, address.port))
    }

    fn payload(&self, _: &Path) -> Result<Payload, Text> {
        Ok(Payload::default())
    }

    fn stack_rules(&self, _: &Path) -> Result<Vec<StackRule>, Text> {
        Ok(Vec::new())
    }

    fn stays_here(&self, _: Option<&str>, to: Option<&str>) -> bool {
        to.is_none()
    }

    fn seed(&self) -> u64 {
        1
    }
}

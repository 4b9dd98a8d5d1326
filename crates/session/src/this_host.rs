//! What texts refer to, on this host.

use std::net::SocketAddr;
use std::path::Path;

use command::{setup, values};
use control::coordinator::leads_to_loopback;
use model::{Payload, StackRule};
use options::values::Address;
use plan::{Fleet, FleetHost, Resolver};
use text::{Said, Text};

use crate::labs::LAB_VARIABLE;

/// This host: its files, its interfaces, and the sources of fleets that it reaches.
#[derive(Debug, Clone, Copy)]
pub struct ThisHost;

impl Resolver for ThisHost {
    fn fleet(&self, folder: &Path, named: &str) -> Result<Fleet, Text> {
        let own = folder.join(named);
        let named = if own.is_file() { own.display().to_string() } else { named.to_owned() };
        fleet::open(&named).map_err(|failure| failure.say())
    }

    fn data_address(&self, host: &FleetHost) -> Result<Option<SocketAddr>, Text> {
        fleet::data_address(host).map_err(|failure| failure.say())
    }

    fn on_interface(&self, address: &Address) -> Result<SocketAddr, Text> {
        values::on_interface(address).map_err(|error| error.say())
    }

    fn payload(&self, path: &Path) -> Result<Payload, Text> {
        values::payload_of_file(path).map_err(|error| error.say())
    }

    fn stack_rules(&self, path: &Path) -> Result<Vec<StackRule>, Text> {
        stacks::read_rules(path).map_err(|error| error.say())
    }

    fn stays_here(&self, from: Option<&str>, to: Option<&str>) -> bool {
        std::env::var_os(LAB_VARIABLE).is_some() || (from.is_none() && to.is_none_or(leads_to_loopback))
    }

    fn seed(&self) -> u64 {
        setup::clock_seed()
    }
}

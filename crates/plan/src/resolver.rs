//! What texts refer to, and only the host that reads them has.

use std::net::SocketAddr;
use std::path::Path;

use model::{Payload, StackRule};
use options::values::Address;
use text::Text;

use crate::fleet::{Fleet, FleetHost};

/// Finds what specs and plans refer to. An error says what is missing, and what to do.
pub trait Resolver {
    /// The fleet that a plan in `folder` names: a file relative to the folder, or another source.
    ///
    /// # Errors
    /// What cannot be read, or is wrong in it.
    fn fleet(&self, folder: &Path, named: &str) -> Result<Fleet, Text>;

    /// The address for data of a fleet's host, with port 0 unless it is a forwarded port; `None` for that of the agent.
    ///
    /// # Errors
    /// The name has no address.
    fn data_address(&self, host: &FleetHost) -> Result<Option<SocketAddr>, Text>;

    /// An address with the index of its interface.
    ///
    /// # Errors
    /// This host has no such interface.
    fn on_interface(&self, address: &Address) -> Result<SocketAddr, Text>;

    /// The payload of a file.
    ///
    /// # Errors
    /// It cannot be read, or is too large.
    fn payload(&self, path: &Path) -> Result<Payload, Text>;

    /// The rules of a TCP stack in a file.
    ///
    /// # Errors
    /// It cannot be read, or is not valid.
    fn stack_rules(&self, path: &Path) -> Result<Vec<StackRule>, Text>;

    /// Whether the data between two hosts stays on this host, or in a lab; `None` is this host.
    fn stays_here(&self, from: Option<&str>, to: Option<&str>) -> bool;

    /// A seed for a plan that has none.
    fn seed(&self) -> u64;
}

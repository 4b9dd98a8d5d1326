//! A fleet on the command line.

use clap::Args;
use command::Failure;
use plan::{Fleet, FleetHost};

use crate::registries;

/// A fleet: a file or a source, or its hosts.
#[derive(Debug, Args)]
pub struct FleetName {
    #[arg(value_name = "FLEET", required = true, help = registries::fleet_help())]
    words: Vec<String>,
}

impl FleetName {
    /// The fleet as one text.
    ///
    /// # Errors
    /// Words that name no fleet together.
    pub fn named(&self) -> Result<String, Failure> {
        fleet::named(&self.words)
    }
}

/// A fleet, or some of its hosts.
#[derive(Debug, Args)]
pub struct FleetHosts {
    #[command(flatten)]
    pub fleet: FleetName,

    /// Use only these hosts, separated by commas: names (node[01-16]), @GROUP, LABEL=VALUE; ! in front excludes.
    #[arg(long, value_name = "HOSTS")]
    pub hosts: Option<String>,
}

/// The way to the agents of a fleet.
#[derive(Debug, Args)]
pub struct OverBus {
    /// Reach the agents by host name over this bus, such as nats://bus.example, instead of by address.
    #[arg(long, value_name = "URL", env = "THRU_BUS")]
    pub bus: Option<String>,
}

impl FleetHosts {
    /// The hosts that are chosen.
    pub fn chosen<'a>(&self, fleet: &'a Fleet) -> Result<Vec<&'a FleetHost>, Failure> {
        match &self.hosts {
            Some(selection) => fleet.select(selection).map_err(Failure::usage),
            None => Ok(fleet.hosts.iter().collect()),
        }
    }
}

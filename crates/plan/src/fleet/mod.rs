//! Fleets: their hosts, and the texts that name hosts.

mod bounds;
mod error;
pub mod hostlist;
mod hosts;

pub use error::{FleetTooLarge, HostListError, SelectionError};
pub use hosts::{Fleet, FleetHost, Room};

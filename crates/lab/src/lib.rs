//! Hosts and paths emulated on one machine.
//!
//! A [`Lab`] is a pair of hosts, each a network namespace with its own addresses, routes and loopback, joined by a
//! link: a veth pair ([`Lab::crossover`]), or a path with a given delay, rate, queue and loss ([`Lab::path`]). A
//! [`Network`] is a lab of any shape, defined by a [`Topology`]. Programs run on a host through [`LabHost::command`]
//! and [`NetworkHost::command`]. A lab is removed when it is dropped, when its owner is killed, and at the latest when
//! the next lab is made.
//!
//! ```no_run
//! use lab::{CrossoverSpec, Lab};
//!
//! # fn main() -> Result<(), lab::LabError> {
//! let lab = Lab::crossover(&CrossoverSpec { mtu: 9000, ..CrossoverSpec::default() })?;
//! let far = lab.host("b")?;
//! println!("{} answers at {} and {}", far.namespace, far.v4, far.v6);
//! let shown = far.command("ip").args(["address", "show"]).status();
//! # let _ = shown;
//! lab.close()
//! # }
//! ```

mod available;
mod bounds;
mod crossover;
mod emulator;
mod error;
mod existing;
mod ip;
mod journal;
mod names;
mod network;
mod path;
mod plug;
mod scope;
mod shaped;
mod subnets;
pub mod topology;

pub use available::available;
pub use crossover::{CrossoverSpec, Lab, LabHost};
pub use emulator::{
    Bursts, Codel, DirectionSpec, Discipline, Distribution, Emulator, Jitter, Lateness, LinkChange, PathCounts, Red,
    Reorder,
};
pub use error::LabError;
pub use existing::{ExistingLab, Holder, labs};
pub use names::NetworkPeer;
pub use network::{Network, NetworkCounts, NetworkHost};
pub use path::PathSpec;
pub use scope::reap_stale;
pub use subnets::Subnets;
pub use topology::Topology;

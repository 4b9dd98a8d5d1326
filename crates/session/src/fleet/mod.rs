//! Fleets: many hosts with their addresses, labels and groups, from a file or from what a site has already.

mod alert;
mod ansible;
mod bounds;
mod bus;
mod check;
mod error;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hostlist;
mod hosts;
mod kubernetes;
mod launch;
mod listed;
mod mesh;
mod registry;
mod slurm;
mod source;
mod ssh_config;
mod watch;
mod webhook;

pub use self::alert::condition;
pub use self::check::check;
pub use self::error::{HostListError, SelectionError};
pub use self::file::to_toml;
pub use self::hosts::{Fleet, FleetHost};
pub use self::launch::{AgentLauncher, HostResult, LAUNCHERS, UpRequest, down, up};
pub use self::mesh::{Directions, Mesh, MeshTraffic, Pairing};
pub use self::registry::{SOURCES, named, open, open_over};
pub use self::source::FleetSource;
pub use self::watch::{AlertConditions, MeshWatch, WatchNews, history_of, series_name, watch};
pub use self::webhook::{Endpoint, endpoint};

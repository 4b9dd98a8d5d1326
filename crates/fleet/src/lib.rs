//! Many hosts: where a fleet comes from ([`open`]), how its hosts are reached ([`access`]) and checked ([`check`]), agents that are
//! started on them ([`up`]), and what a mesh of them measures ([`Mesh`]).

mod alert;
mod check;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod launch;
mod mesh;
mod reach;
mod sources;
mod webhook;

pub use alert::{condition, rules};
pub use check::check;
pub use launch::{AgentLauncher, HostResult, LAUNCHERS, UpRequest, down, up};
pub use mesh::{Directions, Mesh, MeshTraffic, Pairing};
pub use reach::{access, data_address};
pub use sources::file::to_toml;
pub use sources::registry::{SOURCES, named, open, open_over};
pub use sources::source::FleetSource;
pub use webhook::{Endpoint, Webhook, endpoint};

//! Settings of a host that a user shows, changes and restores: of this host, or of the host of an agent.

mod change;
mod host_wide;
mod place;
pub mod settle;
mod sysctl_file;
mod words;

pub use change::{Changed, Lasting, TuneRequest};
pub use host_wide::HostWide;
pub use place::TuningPlace;
pub use sysctl_file::{SysctlFile, of_sysctl_file};
pub use words::{of_revert, of_set, of_show};

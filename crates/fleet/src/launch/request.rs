//! What is asked of a launcher, and what became of it.

use std::path::PathBuf;
use text::Text;

/// Agents to start.
#[derive(Debug, Clone, Default)]
pub struct UpRequest {
    /// The launcher's name.
    pub via: String,
    /// A configuration of ssh in place of the user's.
    pub ssh_config: Option<PathBuf>,
    /// Builds of this program for the hosts, in the order in which they try them. Empty for this program's own file, then the
    /// static build beside it.
    pub programs: Vec<PathBuf>,
}

/// What became of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostResult {
    /// The host.
    pub name: String,
    /// Why its agent does not run, or is not gone; `None` if all is well.
    pub error: Option<Text>,
}

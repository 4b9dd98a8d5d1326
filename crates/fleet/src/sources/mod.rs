//! Where fleets come from: a file of our own, or what a site has already.

pub(crate) mod ansible;
mod bus;
pub(crate) mod file;
pub(crate) mod kubernetes;
mod listed;
pub(crate) mod registry;
pub(crate) mod slurm;
pub(crate) mod source;
pub(crate) mod ssh_config;

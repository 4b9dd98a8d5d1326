//! What all commands share: a [`Failure`] with its exit code, the [`signals`] that end it, the [`files`] that it
//! writes, the user's defaults ([`config`], from [`config_file`]), hosts ([`host_aliases`]) and keys ([`agent_keys`],
//! [`known_clients`]), and the store, the runtime and the agent of its own process
//! ([`setup`]).

pub mod agent_keys;
pub mod citation;
pub mod config;
pub mod config_file;
pub mod failure;
pub mod files;
pub mod host_aliases;
pub mod known_clients;
pub mod password;
pub mod scratch;
pub mod setup;
pub mod signals;
pub mod values;

pub use failure::Failure;

/// The version, with the commit that this build came from (build.rs).
pub const VERSION: &str = env!("THRU_VERSION");

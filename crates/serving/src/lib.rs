//! The agent as a process ([`serve`]): its helper ([`help`]), the rights that it gives up, what it keeps, and beside it servers for the
//! clients of other programs ([`ServedProgram`]).

mod agent;
mod helper;
mod listening;
mod loopback;
mod own_addresses;
mod programs;
mod results;
mod rights;

pub use agent::{ServeOptions, captures, serve};
pub use helper::{HelperServer, help};
pub use loopback::LoopbackAgent;
pub use programs::{ProgramServers, ServedError, ServedOptions, ServedProgram, UserFiles, serve_input};

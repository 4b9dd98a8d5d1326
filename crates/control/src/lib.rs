//! How measurements are controlled: the protocol between hosts ([`proto`]), the [`agent`] that drives one machine, the
//! [`worker`] process in which a measurement runs alone, the [`helper`] that does what needs privileges, and the
//! [`coordinator`] that carries out the steps of a run.
//!
//! The coordinator runs the near end's agent within its own process. It uses the same messages for that agent as for the
//! far end's `thru serve`.

mod access;
pub mod agent;
pub mod coordinator;
mod error;
pub mod helper;
mod limits;
pub mod proto;
mod tls;
mod wire;
pub mod worker;

pub use access::{Access, KnownKeys, Recognized};
pub use error::ControlError;
pub use limits::raise_file_limit;
pub use tls::AgentKey;

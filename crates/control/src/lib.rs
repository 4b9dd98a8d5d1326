//! How measurements are ordered: the protocol between hosts ([`proto`]), the [`agent`] that drives one machine, the
//! [`worker`] process in which a measurement runs alone, and the [`coordinator`] that decides what is measured next, and
//! the [`experiment`]s that string measurements together.
//!
//! A test between two hosts is a fleet of two: the coordinator speaks to the near end's agent, which it runs within itself,
//! with the same messages as to the far end's `thru serve`.

pub mod agent;
pub mod coordinator;
mod error;
pub mod experiment;
mod limits;
pub mod proto;
mod wire;
pub mod worker;

pub use error::ControlError;
pub use limits::raise_file_limit;

//! Support for tests of the whole program. Agents and clients are real `thru` processes; each test starts its own.
//!
//! Cargo builds the binary before the first process starts, so that a test never uses an old one. Set `THRU_BIN` to the path of
//! another binary to test that, such as a release build or an installed `thru`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "part of tests: it panics on errors and prints what it skips"
)]

pub mod agent;
pub mod binary;
pub mod bus;
pub mod check;
pub mod client;
pub mod doc;
pub mod launcher;
pub mod manual;
pub mod page;
pub mod peers;
pub mod process;
pub mod series;
pub mod skip;
pub mod stacks;
mod tls;
pub mod wire;

/// Whether tests take all that they have, as in `make test-long`. Otherwise they leave out what only repeats.
#[must_use]
pub fn thorough() -> bool {
    std::env::var_os("THRU_LONG").is_some()
}

pub use agent::Agent;
pub use client::{Finished, Running, Sandbox};
pub use doc::Doc;
pub use process::eventually;

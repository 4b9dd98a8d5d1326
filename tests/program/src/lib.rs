//! Support for tests of the whole program: agents and clients are real `thru` processes, each test has its own.
//!
//! The binary is built by cargo before the first process starts, so that a test never measures with a stale one; set
//! `THRU_BIN` to a path to test another one, such as a release build or an installed `thru`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "this is a part of tests: it stops at the first surprise and says what it skips"
)]

pub mod agent;
pub mod binary;
pub mod check;
pub mod client;
pub mod doc;
pub mod launcher;
pub mod older;
pub mod process;
pub mod skip;
pub mod stacks;
pub mod wire;

pub use agent::Agent;
pub use client::{Finished, Running, Sandbox};
pub use doc::Doc;
pub use process::eventually;

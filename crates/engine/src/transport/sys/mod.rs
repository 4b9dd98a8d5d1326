//! The only unsafe code of the engine: socket options that no safe crate offers, and memory shared with another process.
#![allow(unsafe_code, reason = "each block states why it is sound")]

pub(crate) mod batch;
pub(crate) mod datagrams;
pub(crate) mod ring;
pub(crate) mod sockopt;
pub(crate) mod zerocopy;

//! The only unsafe code of the engine: socket options that no safe crate offers, memory shared with another process or
//! with the kernel, and libraries that are opened at run time.
#![allow(unsafe_code, reason = "each block states why it is sound")]

pub(crate) mod arrivals;
pub(crate) mod batch;
pub(crate) mod datagrams;
pub(crate) mod ktls;
pub(crate) mod library;
pub(crate) mod map;
pub(crate) mod mpi;
pub(crate) mod pvm;
pub(crate) mod ring;
mod segment;
pub(crate) mod sockopt;
pub(crate) mod stamps;
pub(crate) mod uring;
pub(crate) mod watched;
pub(crate) mod zerocopy;

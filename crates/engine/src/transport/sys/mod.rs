//! The only unsafe code of the engine: socket options that no safe crate offers, memory shared with another process or
//! with the kernel, and libraries that are opened at run time.
#![allow(unsafe_code, reason = "each block states why it is sound")]

pub(crate) mod arrivals;
pub(crate) mod batch;
pub(crate) mod datagrams;
mod ends;
pub(crate) mod ktls;
pub(crate) mod library;
pub(crate) mod map;
#[cfg(not(loom))]
mod memory;
#[cfg(loom)]
mod modelled_memory;
#[cfg(loom)]
mod modelled_segment;
pub(crate) mod mpi;
pub(crate) mod pvm;
pub(crate) mod ring;
#[cfg(not(loom))]
mod segment;
pub(crate) mod sockopt;
pub(crate) mod stamps;
pub(crate) mod uring;
pub(crate) mod watched;
pub(crate) mod zerocopy;

#[cfg(loom)]
use {modelled_memory as memory, modelled_segment as segment};

//! System calls of the runner that no safe crate has.
#![allow(unsafe_code, reason = "each block states why it is sound")]

mod perf;
mod usage;

pub(super) use perf::{Event, Perf};
pub(super) use usage::{Usage, thread_usage};

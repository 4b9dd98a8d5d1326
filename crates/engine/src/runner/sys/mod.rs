//! System calls of the runner that no safe crate has.
#![allow(unsafe_code, reason = "each block states why it is sound")]

pub(super) mod epoll;
mod slice;
mod usage;

pub(super) use slice::request_slices;
pub(super) use usage::{Usage, thread_usage};

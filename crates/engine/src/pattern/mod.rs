//! What the two ends do with a connection: a file for each [`model::Pattern`].
//!
//! A pattern gives each end a [`Machine`]: it works as far as it can and then returns what it waits for. The same
//! machine runs in a thread that blocks, one that spins and one with an epoll set; it never sleeps itself.

mod check;
mod close_handshake;
mod credit;
mod crr;
mod datagrams;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod jitter;
mod leg;
mod machine;
mod machines;
mod pacer;
mod pingpong;
mod refusals;
mod rr;
mod sequence;
mod size_counts;
mod strategy;
mod stream;
mod transfer;

pub use check::check;
pub(crate) use close_handshake::Parting;
pub(crate) use leg::{open_leg, receive_leg, send_leg};
pub(crate) use machine::{DRAIN_READ, Env, Machine, Part};
pub(crate) use machines::machine;
pub(crate) use pacer::Pace;
pub(crate) use strategy::{MAX_THREADS, strategy};
